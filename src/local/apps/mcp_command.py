"""`local2 mcp`: the system for programs that speak the Model Context Protocol, on the standard input and output."""

from __future__ import annotations

import typer

from local.apps.command_line import ApiOption, DataDir
from local.apps.console.answering_system import AnsweringSystem
from local.errors import LocalError


def mcp(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Serve a running system to an MCP client, which starts this command: ask, search its memory, read conversations.

    Example: claude mcp add local2 -- local2 mcp
    """
    from local.apps.mcp_door import MCPDoor  # which takes a second

    system = AnsweringSystem(api, data_dir, may_start=False)
    try:
        system.find()
    except LocalError as error:
        typer.echo(f"local2 mcp: {error}; each call looks again", err=True)
    MCPDoor(system).server().run("stdio")
