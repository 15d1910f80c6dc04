"""MCP servers that stories bring along: Python programs beside them, which are approved as they are."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from local.apps.mcp_approval import told_tools
from local.config_mcp import FILE_NAME, SERVERS, load_mcp_servers
from local.tools.mcp_servers.approved_tool import approvable, write_approved
from local.tools.mcp_servers.mcp_group import approved_file, connect


def bring_along(programs: Mapping[str, Path], config_dir: Path, data_dir: Path) -> None:
    """Write `mcp.json` into a folder of settings, with servers by name, and approve the tools that each has. Raises
    `ConfigError`, and `ToolError` for one that cannot be used."""
    entries = {
        name: {
            "command": sys.executable,
            "args": [str(program)],
            "readable": [sys.prefix, sys.base_prefix, str(program.parent)],
        }
        for name, program in programs.items()
    }
    (config_dir / FILE_NAME).write_text(json.dumps({SERVERS: entries}), encoding="utf-8")
    for name, server in load_mcp_servers(config_dir).items():
        tools, _ = approvable(name, asyncio.run(told_tools(connect(name, server, data_dir, [config_dir]))))
        write_approved(approved_file(data_dir, name), tools)
