"""An MCP server in its sandbox that reads a folder aloud, and the household's approval of it."""

from __future__ import annotations

import sys
from pathlib import Path

from local.core.mcp_servers import MCPServerConfig, approved_file
from local.mcp import tools as mcp_group
from local.mcp.client import approvable, write_approved
from local.mcp.tools import MCPGroup, connect
from local.runtime.participant import Resources

PROGRAM = Path(__file__).parents[2] / "mcp" / "plain_server.py"
PYTHON = Path(sys.executable).resolve()
READ = "plain__read"


class StrangeServer:
    """Its tools only read, as the owner states. `folder` is what it may read."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self._data = folder, data
        folder.mkdir()
        (folder / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
        self._config = MCPServerConfig(
            command=str(PYTHON), args=("-S", str(folder / PROGRAM.name)), safety="L0",
            readable=(Path(sys.base_prefix), folder),
        )  # fmt: skip

    async def group(self) -> MCPGroup:
        """Its tools, as they are approved now."""
        connection = connect("plain", self._config, self._data, [])
        try:
            tools, _ = approvable("plain", await connection.tools())
        finally:
            await connection.close()
        write_approved(approved_file(self._data, "plain"), [tool for tool in tools if tool.name == READ])
        kind: type[MCPGroup] = mcp_group.plain  # type: ignore[attr-defined]  # made for each name in mcp.json
        return kind.build(self._config, Resources(data_dir=self._data))
