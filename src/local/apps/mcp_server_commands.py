"""`local2 mcp list | add | remove`: which servers of tools there are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from local.apps.command_line import ConfigDir, DataDir, Many
from local.apps.console.answering_system import running_system
from local.apps.mcp_approval import told_tools
from local.apps.mcp_file import add_server, remove_server
from local.apps.restart_command import taken_over
from local.apps.terminal import visible
from local.config import layers_for
from local.config_mcp import load_mcp_servers
from local.environment import data_dir as find_data_dir
from local.errors import LocalError

if TYPE_CHECKING:
    from local.config_mcp import MCPServerConfig

Name = Annotated[str, typer.Argument(metavar="NAME", help="A server, as mcp.json calls it.")]
Pairs = Annotated[Many, typer.Option(metavar="NAME=VALUE", help="A variable of the command; may be repeated.")]


def listing(
    check: Annotated[bool, typer.Option("--check", help="Ask each what it says of its tools now.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show the servers, what was approved of each, and how it is in the system that runs."""
    from local.tools.mcp_servers.approved_tool import read_approved
    from local.tools.mcp_servers.mcp_group import approved_file, participant_name

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
    from local.secrets.secret_store import SecretStore
    from local.tools.mcp_servers.mcp_group import approved_file, participant_name
    from local.tools.mcp_servers.remote_login import RemoteLogin

    remove_server(layers_for(config_dir)[-1], name)
    RemoteLogin(name, "", SecretStore(find_data_dir(data_dir))).forget()
    file = approved_file(find_data_dir(data_dir), name)
    file.unlink(missing_ok=True)
    folder = file.with_suffix("")
    kept = f"; what it has kept lies in {folder}" if folder.is_dir() and any(folder.iterdir()) else ""
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
    from local.tools.mcp_servers.approved_tool import approvable, changes, read_approved
    from local.tools.mcp_servers.mcp_group import approved_file, connect

    try:
        tools, _ = approvable(name, asyncio.run(told_tools(connect(name, server, folder, settings))))
    except LocalError as error:
        return visible(str(error))
    told = changes(read_approved(approved_file(folder, name)), tools)
    different = [f"{change}: {visible(tool)}" for tool, change in told.items() if change != "as approved"]
    return ", ".join(different) or "as approved"
