"""`local2 mcp`: the system for programs that speak the Model Context Protocol, and their tools for the system."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from local.apps.command_line import ApiOption, ConfigDir, DataDir
from local.apps.console.answering_system import AnsweringSystem
from local.apps.mcp_approval import told_tools
from local.apps.mcp_file import require_server
from local.apps.mcp_login_commands import login, logout
from local.apps.mcp_server_commands import add, listing, remove
from local.apps.restart_command import taken_over
from local.apps.terminal import visible
from local.config import layers_for
from local.config_mcp import load_mcp_servers
from local.environment import data_dir as find_data_dir
from local.errors import LocalError

mcp_app = typer.Typer(
    help="Serve a running system to an MCP client, which starts this command; use tools of MCP servers."
)
mcp_app.command("list")(listing)
mcp_app.command()(add)
mcp_app.command()(remove)
mcp_app.command()(login)
mcp_app.command()(logout)


@mcp_app.callback(invoke_without_command=True)
def serve(context: typer.Context, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Serve a running system to an MCP client, which starts this command: ask, search its memory, read conversations,
    call its tools.

    Example: claude mcp add local2 -- local2 mcp
    """
    if context.invoked_subcommand:
        return
    from local.apps.mcp_client import HTTPSystemClient
    from local.apps.mcp_door import MCPDoor  # which takes a second

    system = AnsweringSystem(api, data_dir, may_start=False)
    try:
        system.find()
    except LocalError as error:
        typer.echo(f"local2 mcp: {visible(str(error))}; each call looks again", err=True)
    client = HTTPSystemClient(system)
    MCPDoor(lambda _: client).server().run("stdio")


@mcp_app.command()
def approve(
    server: Annotated[str, typer.Argument(metavar="NAME", help="A server, as mcp.json calls it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Without a question: you know what it says.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Look at the tools of a server as it describes them now, and have the model offered these, as they are.

    Example: local2 mcp approve weather
    """
    from local.tools.mcp_servers.mcp_group import participant_name

    approve_tools(server, yes, config_dir, data_dir)
    typer.echo(f"approved; {taken_over(participant_name(server), data_dir)}")


def approve_tools(server: str, yes: bool, config_dir: Path | None, data_dir: Path | None) -> None:
    """Show the tools of a server, and keep them as approved; not in a system that runs. Raises `ConfigError`,
    `ToolError`, and `typer.Exit` of somebody who does not want them."""
    from local.tools.mcp_servers.approved_tool import approvable, changes, read_approved, write_approved
    from local.tools.mcp_servers.mcp_group import approved_file, connect

    layers, folder = layers_for(config_dir), find_data_dir(data_dir)
    known = load_mcp_servers(layers[-1])
    require_server(layers[-1], server, known)
    connection = connect(server, known[server], folder, layers[1:])

    tools, refused = approvable(server, asyncio.run(told_tools(connection)))
    path = approved_file(folder, server)
    told = changes(read_approved(path), tools)
    for tool in tools:
        typer.echo(f"{visible(tool.name)} ({told.pop(tool.name)})\n{_indented(tool.description)}")
        typer.echo(_indented(json.dumps(tool.parameters, ensure_ascii=False)))
    for name, change in told.items():
        typer.echo(f"{visible(name)} ({change})")
    for why in refused:
        typer.echo(f"left out: {visible(why)}", err=True)
    if not yes and not typer.confirm(
        f"Have the model offered these {len(tools)}, each call of level {known[server].safety}?"
    ):
        raise typer.Exit(1)
    write_approved(path, tools)


def _indented(text: str) -> str:
    return "\n".join(f"    {visible(line)}" for line in text.splitlines())
