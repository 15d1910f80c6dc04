"""`local2 mcp list | add | remove`: the configured MCP servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from local.cli.client import AnsweringSystem, running_system, taken_over
from local.cli.main import ApiOption, ConfigDir, DataDir, Many, visible
from local.core.config import layers_for
from local.core.environment import data_dir as find_data_dir
from local.core.errors import ConfigError, LocalError
from local.core.mcp_servers import (
    add_server,
    approved_file,
    load_mcp_servers,
    participant_name,
    require_server,
)

if TYPE_CHECKING:
    from local.core.mcp_servers import MCPServerConfig
    from local.mcp.client import MCPConnection


# A server's present tools, for an owner who is to approve it.


async def list_tools(connection: MCPConnection) -> list[dict[str, Any]]:
    """Return the tools of a server, which is ended then. Raises `ToolError`."""
    try:
        return await connection.tools()
    finally:
        await connection.close()


Json = dict[str, Any]


# `local2 mcp login | logout`: at a remote server that requires a login.

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the server in mcp.json.")]


def login(
    name: Name,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Show the address instead of opening a browser.")
    ] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Log in to a server at a URL (OAuth). Its login page is opened; the token is stored with the secrets."""
    layers, folder = layers_for(config_dir), find_data_dir(data_dir)
    known = load_mcp_servers(layers[-1])
    require_server(layers[-1], name, known)
    if not known[name].url:
        raise ConfigError(f"{name} is started by a command; only servers at a URL have a login")
    visited = asyncio.run(_logged_in(name, known[name], folder, opens=not no_browser))
    typer.echo(
        f"logged in at {name}; a running system uses the login from its next call on"
        if visited
        else f"{name} needs no login"
    )


def logout(name: Name, data_dir: DataDir = None) -> None:
    """Delete a stored login. The server may keep its own record: check its page, too."""
    from local.core.secrets import SecretStore
    from local.mcp.client import RemoteLogin

    if not RemoteLogin(name, "", SecretStore(find_data_dir(data_dir))).forget():
        raise ConfigError(f"there is no login at {name}")
    typer.echo(f"the login at {name} was deleted")


async def _logged_in(name: str, server: MCPServerConfig, folder: Path, *, opens: bool) -> bool:
    """Log in, and return whether the server has redirected to its login page."""
    from local.mcp.client import LoginPrompt
    from local.mcp.stdio import LoginCallback
    from local.mcp.tools import connect

    visited = False

    async def visit(url: str) -> None:
        nonlocal visited
        visited = True
        typer.echo(f"Log in there: {visible(url)}", err=True)
        if opens:
            typer.launch(url)

    async with LoginCallback.listening() as callback:
        visitor = LoginPrompt(callback.redirect_uri, visit, callback.answer)
        await list_tools(connect(name, server, folder, [], visitor))
    return visited


Pairs = Annotated[
    Many, typer.Option(metavar="NAME=VALUE", help="An environment variable of the command. Can be repeated.")
]


def listing(
    check: Annotated[
        bool, typer.Option("--check", help="Connect to each server and compare its tools with the approved ones.")
    ] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """List the servers with their approved tools and their state in the running system."""
    from local.mcp.client import read_approved

    layers, folder = layers_for(config_dir), find_data_dir(data_dir)
    states, servers = _states(folder), load_mcp_servers(layers[-1])
    if not servers:
        typer.echo("there are no servers; `local2 mcp add` adds one", err=True)
    for name, server in servers.items():
        approved = read_approved(approved_file(folder, name))
        count = f"{len(approved)} tool{'' if len(approved) == 1 else 's'}" if approved else "no tool"
        is_approved = f"{count} approved, {server.safety}"
        where = server.url or " ".join((server.command, *server.args))
        typer.echo(f"{name}  {visible(where)}  {is_approved}  {states.get(participant_name(name), 'not running')}")
        if check:
            typer.echo(f"    {_checked(name, server, folder, layers[1:])}")


def add(
    name: Name,
    server: Annotated[
        list[str], typer.Argument(metavar="COMMAND… | URL", help="The command that starts the server, or its URL.")
    ],
    env: Pairs = None,
    header: Annotated[
        Many, typer.Option(metavar="NAME=VALUE", help="A header of each request to the URL. Can be repeated.")
    ] = None,
    readable: Annotated[
        Many, typer.Option(metavar="DIR", help="A folder that the command may read. Can be repeated.")
    ] = None,
    network: Annotated[bool, typer.Option("--network", help="Give the command network access.")] = False,
    config_dir: ConfigDir = None,
) -> None:
    """Add a server to mcp.json. Write keys and passwords as secret:NAME, because the shell keeps a history of
    commands.

    Example: local2 mcp add weather --readable /opt/weather -- python3 /opt/weather/server.py
    """
    from local.mcp.servers import MCPServerBook

    entry = MCPServerBook.new_entry(server, _pairs(env), _pairs(header), readable or (), network=network)
    add_server(layers_for(config_dir)[-1], name, entry)
    typer.echo(f"added; review and approve its tools with `local2 mcp approve {name}`")


def remove(name: Name, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Remove a server from mcp.json, with its approved tools and its login."""
    from local.mcp.servers import MCPServerBook

    folder = MCPServerBook(layers_for(config_dir), find_data_dir(data_dir)).remove(name)
    kept = f"; its data stays in {folder}" if folder else ""
    typer.echo(f"{name} was removed; {taken_over(participant_name(name), data_dir)}{kept}")


def _pairs(given: list[str] | None) -> dict[str, str]:
    pairs = dict[str, str]()
    for each in given or ():
        key, is_pair, value = each.partition("=")
        if not is_pair:
            raise typer.BadParameter(f"{key!r}: expected NAME=VALUE")
        pairs[key] = value
    return pairs


def _states(folder: Path) -> dict[str, str]:
    """Return the state of each participant of the running system; empty if none runs."""
    with suppress(LocalError), running_system(None, folder) as client:
        return {each["name"]: _state(each) for each in client.request("GET", "/participants")["participants"]}
    return {}


def _state(participant: dict[str, Any]) -> str:
    why = participant["details"].get("off") or participant["details"].get("server")
    return f"{participant['state']}: {visible(why)}" if why else str(participant["state"])


def _checked(name: str, server: MCPServerConfig, folder: Path, settings: Sequence[Path]) -> str:
    from local.mcp.client import approvable, changes, read_approved
    from local.mcp.tools import connect

    try:
        tools, _ = approvable(name, asyncio.run(list_tools(connect(name, server, folder, settings))))
    except LocalError as error:
        return visible(str(error))
    told = changes(read_approved(approved_file(folder, name)), tools)
    different = [f"{change}: {visible(tool)}" for tool, change in told.items() if change != "as approved"]
    return ", ".join(different) or "as approved"


# `local2 mcp`: the system for programs that speak the Model Context Protocol, and their tools for the system.

mcp_app = typer.Typer(
    help="Connect MCP servers, or serve the running system to an MCP client, which starts this command."
)
mcp_app.command("list")(listing)
mcp_app.command()(add)
mcp_app.command()(remove)
mcp_app.command()(login)
mcp_app.command()(logout)


@mcp_app.callback(invoke_without_command=True)
def serve(context: typer.Context, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Serve the running system to an MCP client, which starts this command. The client can ask questions, search the
    memory, read conversations and call tools.

    Example: claude mcp add local2 -- local2 mcp
    """
    if context.invoked_subcommand:
        return
    from local.mcp.stdio import (
        HTTPSystemClient,
        MCPServerFactory,  # which takes a second
    )

    system = AnsweringSystem(api, data_dir, may_start=False)
    try:
        system.find()
    except LocalError as error:
        typer.echo(f"local2 mcp: {visible(str(error))}; each call tries again", err=True)
    client = HTTPSystemClient(system)
    MCPServerFactory(lambda _: client).server().run("stdio")


@mcp_app.command()
def approve(
    server: Annotated[str, typer.Argument(metavar="NAME", help="Name of the server in mcp.json.")],
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking for confirmation.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show the tools of a server and approve them. The model is offered the approved descriptions; a changed tool must
    be approved again.

    Example: local2 mcp approve weather
    """
    approve_tools(server, yes, config_dir, data_dir)
    typer.echo(f"approved; {taken_over(participant_name(server), data_dir)}")


def approve_tools(server: str, yes: bool, config_dir: Path | None, data_dir: Path | None) -> None:
    """Show the tools of a server and store them as approved, without notifying a running system. Raises `ConfigError`,
    `ToolError`, and `typer.Exit` if the user declines.
    """
    from local.mcp.client import approvable, changes, read_approved, write_approved
    from local.mcp.tools import connect

    layers, folder = layers_for(config_dir), find_data_dir(data_dir)
    known = load_mcp_servers(layers[-1])
    require_server(layers[-1], server, known)
    connection = connect(server, known[server], folder, layers[1:])

    tools, refused = approvable(server, asyncio.run(list_tools(connection)))
    path = approved_file(folder, server)
    told = changes(read_approved(path), tools)
    for tool in tools:
        typer.echo(f"{visible(tool.name)} ({told.pop(tool.name)})\n{_indented(tool.description)}")
        typer.echo(_indented(json.dumps(tool.parameters, ensure_ascii=False)))
    for name, change in told.items():
        typer.echo(f"{visible(name)} ({change})")
    for why in refused:
        typer.echo(f"left out: {visible(why)}", err=True)
    if not yes and not typer.confirm(f"Approve these {len(tools)} tools, with calls of level {known[server].safety}?"):
        raise typer.Exit(1)
    write_approved(path, tools)


def _indented(text: str) -> str:
    return "\n".join(f"    {visible(line)}" for line in text.splitlines())
