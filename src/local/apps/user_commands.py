"""`local2 user add | list | remove`: who may use the system besides its owner, also while it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from local.apps.command_line import DataDir
from local.apps.run_directory import RunDirectory
from local.apps.terminal import echo_listed
from local.apps.users import Users
from local.environment import data_dir as find_data_dir

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user_id of what is theirs.")]

user_app = typer.Typer(help="Who may use the system besides you: other users of this machine, other machines.")


@user_app.command()
def add(name: Name, data_dir: DataDir = None) -> None:
    """Give somebody a token: the only line on the output, told now and never again."""
    token = _users(data_dir).add(name)
    typer.echo(f"{name} sends it as 'Authorization: Bearer …'; it is not shown again:", err=True)
    typer.echo(token)


@user_app.command("list")
def listing(data_dir: DataDir = None) -> None:
    """Show who has one."""
    users = _users(data_dir).all().items()
    echo_listed((f"{name}  since {user.added_at}" for name, user in users), "nobody besides you has a token")


@user_app.command()
def remove(name: Name, data_dir: DataDir = None) -> None:
    """Take it back, at once. What the user has asked stays."""
    _users(data_dir).remove(name)
    typer.echo(f"the token of {name} is good for nothing now")


def _users(data_dir: DataDir) -> Users:
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    return Users(directory.data_dir)
