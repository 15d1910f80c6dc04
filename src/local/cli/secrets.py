"""`local2 secret set | list | remove`: keys and passwords that settings refer to by name."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from local.cli.main import DataDir, Many, echo_listed
from local.core.data_dir import RunDirectory
from local.core.environment import data_dir as find_data_dir
from local.core.secrets import MOST_CHARACTERS, SecretStore

NEVER_AN_ARGUMENT = (
    "a secret is not accepted as an argument, because the shell's history and the process list show it, so choose "
    "another value; 'local2 secret set NAME' asks for it, or reads it from its input"
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name that settings refer to as secret:NAME.")]

secret_app = typer.Typer(help="Store keys and passwords that settings refer to by name.")


@secret_app.command("set")
def keep(
    name: Name,
    value: Annotated[Many, typer.Argument(hidden=True)] = None,
    data_dir: DataDir = None,
) -> None:
    """Store a secret. The value is asked for without echo, or read from the standard input. Participants read it when
    they start.
    """
    if value:
        raise typer.BadParameter(NEVER_AN_ARGUMENT)
    _store(data_dir).set(name, _read(name))
    typer.echo(f"stored: secret:{name}; participants read it when they start ('local2 restart NAME')")


@secret_app.command("list")
def listing(data_dir: DataDir = None) -> None:
    """List the names of the secrets, without the values."""
    secrets = _store(data_dir).all().items()
    echo_listed((f"{name}  since {secret.set_at}" for name, secret in secrets), "there are no secrets")


@secret_app.command()
def remove(name: Name, data_dir: DataDir = None) -> None:
    """Delete a secret. A running process that has read it keeps it until it ends."""
    _store(data_dir).remove(name)
    typer.echo(f"{name} was deleted")


def _read(name: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(f"The value of {name} (not shown)", hide_input=True, err=True)).strip()
    try:
        return sys.stdin.read(MOST_CHARACTERS + 2).strip()
    except UnicodeDecodeError:
        raise typer.BadParameter(f"the value of {name} is not UTF-8 text") from None


def _store(data_dir: DataDir) -> SecretStore:
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    return SecretStore(directory.data_dir)
