"""`local2 mcp list | add | remove`: which servers of tools there are."""

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
    remove_server,
    require_server,
)

if TYPE_CHECKING:
    from local.core.mcp_servers import MCPServerConfig
    from local.mcp.client import MCPConnection


# What a server says of its tools now, for an owner who is to approve it.


async def told_tools(connection: MCPConnection) -> list[dict[str, Any]]:
    """The tools as the server tells them; the server is ended then. Raises `ToolError`."""
    try:
        return await connection.tools()
    finally:
        await connection.close()


Json = dict[str, Any]


# `local2 mcp login | logout`: at a server elsewhere that lets in who has logged in.

Name = Annotated[str, typer.Argument(metavar="NAME", help="A server, as mcp.json calls it.")]


def login(
    name: Name,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only show the address.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Log in at a server at a url (OAuth): its page is opened, and what it gives is kept among the secrets."""
    layers, folder = layers_for(config_dir), find_data_dir(data_dir)
    known = load_mcp_servers(layers[-1])
    require_server(layers[-1], name, known)
    if not known[name].url:
        raise ConfigError(f"{name} is started by a command: only a server at a url has a login")
    visited = asyncio.run(_logged_in(name, known[name], folder, opens=not no_browser))
    typer.echo(
        f"logged in at {name}; a system that runs uses it with its next call" if visited else f"{name} wants none"
    )


def logout(name: Name, data_dir: DataDir = None) -> None:
    """Forget a login. The server itself may keep it: look at its own page, too."""
    from local.core.secrets import SecretStore
    from local.mcp.client import RemoteLogin

    if not RemoteLogin(name, "", SecretStore(find_data_dir(data_dir))).forget():
        raise ConfigError(f"there is no login at {name}")
    typer.echo(f"the login at {name} is kept no longer")


async def _logged_in(name: str, server: MCPServerConfig, folder: Path, *, opens: bool) -> bool:
    """Whether the server has sent us to its page."""
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
        await told_tools(connect(name, server, folder, [], visitor))
    return visited


Pairs = Annotated[Many, typer.Option(metavar="NAME=VALUE", help="A variable of the command; may be repeated.")]


def listing(
    check: Annotated[bool, typer.Option("--check", help="Ask each what it says of its tools now.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show the servers, what was approved of each, and how it is in the system that runs."""
    from local.mcp.client import read_approved

    layers, folder = layers_for(config_dir), find_data_dir(data_dir)
    states, servers = _states(folder), load_mcp_servers(layers[-1])
    if not servers:
        typer.echo("there are no servers; `local2 mcp add` writes one into mcp.json", err=True)
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
    server: Annotated[list[str], typer.Argument(metavar="COMMAND… | URL", help="What serves, or where.")],
    env: Pairs = None,
    header: Annotated[Many, typer.Option(metavar="NAME=VALUE", help="What each request to a URL brings.")] = None,
    readable: Annotated[Many, typer.Option(metavar="DIR", help="A folder that it may read.")] = None,
    network: Annotated[bool, typer.Option("--network", help="It has this machine's network.")] = False,
    config_dir: ConfigDir = None,
) -> None:
    """Write a server into mcp.json. Keys and passwords are named, as secret:NAME: what you type here, your shell keeps.

    Example: local2 mcp add weather --readable /opt/weather -- python3 /opt/weather/server.py
    """
    entry: dict[str, Any] = {}
    if server[0].startswith(("https://", "http://")) and len(server) == 1:
        entry |= {"type": "http", "url": server[0]}
    else:
        entry |= {"command": server[0], "args": server[1:]}
    entry |= {key: given for key, given in (("env", _pairs(env)), ("headers", _pairs(header))) if given}
    if readable:
        entry["readable"] = [str(Path(each).expanduser().absolute()) for each in readable]
    if network:
        entry["network"] = True
    add_server(layers_for(config_dir)[-1], name, entry)
    typer.echo(f"added; look at its tools, and have the model offered them, with `local2 mcp approve {name}`")


def remove(name: Name, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Take a server out of mcp.json, and forget what was approved of it, and a login there."""
    from local.core.secrets import SecretStore
    from local.mcp.client import RemoteLogin

    remove_server(layers_for(config_dir)[-1], name)
    RemoteLogin(name, "", SecretStore(find_data_dir(data_dir))).forget()
    file = approved_file(find_data_dir(data_dir), name)
    file.unlink(missing_ok=True)
    folder = file.with_suffix("")
    kept = f"; its data is kept in {folder}" if folder.is_dir() and any(folder.iterdir()) else ""
    typer.echo(f"{name} is there no longer; {taken_over(participant_name(name), data_dir)}{kept}")


def _pairs(given: list[str] | None) -> dict[str, str]:
    pairs = dict[str, str]()
    for each in given or ():
        key, is_pair, value = each.partition("=")
        if not is_pair:
            raise typer.BadParameter(f"{key!r}: expected NAME=VALUE")
        pairs[key] = value
    return pairs


def _states(folder: Path) -> dict[str, str]:
    """How each participant of the system that runs is, if one does."""
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
        tools, _ = approvable(name, asyncio.run(told_tools(connect(name, server, folder, settings))))
    except LocalError as error:
        return visible(str(error))
    told = changes(read_approved(approved_file(folder, name)), tools)
    different = [f"{change}: {visible(tool)}" for tool, change in told.items() if change != "as approved"]
    return ", ".join(different) or "as approved"


# `local2 mcp`: the system for programs that speak the Model Context Protocol, and their tools for the system.

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
    from local.mcp.stdio import (
        HTTPSystemClient,
        MCPDoor,  # which takes a second
    )

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
    approve_tools(server, yes, config_dir, data_dir)
    typer.echo(f"approved; {taken_over(participant_name(server), data_dir)}")


def approve_tools(server: str, yes: bool, config_dir: Path | None, data_dir: Path | None) -> None:
    """Show the tools of a server, and keep them as approved; not in a system that runs. Raises `ConfigError`,
    `ToolError`, and `typer.Exit` of somebody who does not want them."""
    from local.mcp.client import approvable, changes, read_approved, write_approved
    from local.mcp.tools import connect

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
