"""`local2 mcp login | logout`: at a server elsewhere that lets in who has logged in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from local.apps.command_line import ConfigDir, DataDir
from local.apps.mcp_approval import told_tools
from local.apps.mcp_file import require_server
from local.apps.terminal import visible
from local.config import layers_for
from local.config_mcp import load_mcp_servers
from local.environment import data_dir as find_data_dir
from local.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from local.config_mcp import MCPServerConfig

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
    from local.secrets.secret_store import SecretStore
    from local.tools.mcp_servers.remote_login import RemoteLogin

    if not RemoteLogin(name, "", SecretStore(find_data_dir(data_dir))).forget():
        raise ConfigError(f"there is no login at {name}")
    typer.echo(f"the login at {name} is kept no longer")


async def _logged_in(name: str, server: MCPServerConfig, folder: Path, *, opens: bool) -> bool:
    """Whether the server has sent us to its page."""
    from local.apps.login_callback import LoginCallback
    from local.tools.mcp_servers.mcp_group import connect
    from local.tools.mcp_servers.remote_login import Visitor

    visited = False

    async def visit(url: str) -> None:
        nonlocal visited
        visited = True
        typer.echo(f"Log in there: {visible(url)}", err=True)
        if opens:
            typer.launch(url)

    async with LoginCallback.listening() as callback:
        visitor = Visitor(callback.redirect_uri, visit, callback.answer)
        await told_tools(connect(name, server, folder, [], visitor))
    return visited
