"""`local2 skills tools`: the tools that a skill brings, looked at, approved, and taken back."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from local.apps.command_line import ConfigDir, DataDir
from local.apps.mcp_command import approve_tools
from local.apps.mcp_file import add_server, remove_server
from local.apps.restart_command import taken_over
from local.apps.terminal import visible
from local.config import layers_for
from local.config_mcp import load_mcp_servers
from local.environment import data_dir as find_data_dir
from local.errors import ConfigError

if TYPE_CHECKING:
    from local.config_mcp import MCPServerConfig


def tools(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of a skill with mcp.json in it.")],
    take_back: Annotated[bool, typer.Option("--remove", help="Have the model offered them no longer.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Without a question: you know what it says.")] = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Look at the tools that a skill brings, and have the model offered these as they are; a change asks again.

    Example: local2 skills tools ~/.config/local2/skills/weather
    """
    from local.tools.skill_tools.skill_folder import servers_of

    settings, data = layers_for(config_dir)[-1], find_data_dir(data_dir)
    if take_back:
        _forget(settings, data, folder.resolve())
        return
    servers = servers_of(folder)
    if not servers:
        raise ConfigError(f"{folder} brings no tools: it has no mcp.json")
    for name, server in servers.items():
        typer.echo(f"{name}: {visible(' '.join((server.command, *server.args)))}")
    if not yes and not typer.confirm("Start this in a sandbox, without a network, to see its tools?"):
        raise typer.Exit(1)
    _forget(settings, data, folder.resolve(), servers)  # what was approved was another one
    for name, server in servers.items():
        add_server(settings, name, server.model_dump(mode="json", exclude_unset=True))
        try:
            approve_tools(name, yes, config_dir, data_dir)
        except BaseException:
            remove_server(settings, name)
            raise
        typer.echo(f"approved; {_taken_over(name, data)}")


def _forget(settings: Path, data: Path, folder: Path, renewed: Collection[str] = ()) -> None:
    """`renewed` are those that are looked at anew now, so that a system that runs hears of them later."""
    from local.tools.mcp_servers.mcp_group import approved_file

    for name in _of(settings, folder):
        approved_file(data, name).unlink(missing_ok=True)
        remove_server(settings, name)
        typer.echo(f"{name} is offered no longer" + ("" if name in renewed else f"; {_taken_over(name, data)}"))


def _taken_over(server: str, data: Path) -> str:
    from local.tools.mcp_servers.mcp_group import participant_name

    return taken_over(participant_name(server), data)


def _of(settings: Path, folder: Path) -> dict[str, MCPServerConfig]:
    """The servers that this skill has brought."""
    return {name: server for name, server in load_mcp_servers(settings).items() if server.skill == folder}
