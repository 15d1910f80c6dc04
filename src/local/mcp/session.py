"""The session with a running MCP server, by the official SDK. Its import takes a second, so this module is imported
only when needed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mcp import Client, MCPError
from mcp.types import CONNECTION_CLOSED

from local.core.errors import ToolError
from local.mcp.client import CLOSED, ApprovedTool, RemoteServer, digest_of, output_of, remote_streams, streams_of
from local.sandbox.process import ContainedServer
from local.tools.tool import ToolOutput

logging.getLogger("mcp.client").setLevel(logging.CRITICAL)  # its failures are reported to the caller

MAX_PAGES = 100
Json = dict[str, Any]


class MCPSession:
    """A session with a running server, by the SDK. Every method raises `ToolError` with the server's error or the
    reason why it is not understood; of the kind `closed` if the session has ended.
    """

    def __init__(self, client: Client, name: str, lost: Callable[[str], object]) -> None:
        self._client, self._name, self._lost = client, name, lost

    @classmethod
    @asynccontextmanager
    async def opened(cls, server: ContainedServer | RemoteServer, name: str) -> AsyncIterator[MCPSession]:
        """Begin a session; `name` is the server's name in `mcp.json`. Raises the SDK's errors for a bad server."""
        if isinstance(server, RemoteServer):
            async with Client(remote_streams(server), cache=None) as client:
                yield cls(client, name, server.lose)
        else:
            async with Client(streams_of(server), cache=None) as client:
                yield cls(client, name, lambda why: None)

    async def tools(self) -> list[Json]:
        """Return the server's present descriptions of its tools, unchanged."""
        told, cursor = list[Json](), None
        with self._reporting():
            for _ in range(MAX_PAGES):
                page = await self._client.list_tools(cursor=cursor)
                told += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                cursor = page.next_cursor
                if not cursor:
                    break
        return told

    async def require(self, tool: ApprovedTool) -> None:
        """Raise `ToolError` (not_approved) for a tool that has changed since its approval."""
        if tool.digest not in map(digest_of, await self.tools()):
            raise ToolError(
                f"{tool.server_name} of {self._name} is not as it was approved, so it was not called; the"
                f" owner can review it with `local2 mcp approve {self._name}`",
                kind="not_approved",
            )

    async def call(self, tool: ApprovedTool, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool."""
        with self._reporting():
            return output_of(await self._client.call_tool(tool.server_name, dict(arguments)))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except MCPError as error:
            kind = CLOSED if error.code == CONNECTION_CLOSED else "tool_error"
            if kind == CLOSED:
                self._lost(error.message)
            raise ToolError(f"{self._name} says: {error.message}", kind=kind) from None
        except (ValueError, RuntimeError) as error:
            line = str(error).partition("\n")[0]
            raise ToolError(f"{self._name} said something that cannot be understood: {line}") from None
