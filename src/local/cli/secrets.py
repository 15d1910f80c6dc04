"""`local2 secret set | list | remove`: keys and passwords that tools get by name, and nobody is shown."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from local.cli.main import DataDir, Many, echo_listed
from local.core.data_dir import RunDirectory
from local.core.environment import data_dir as find_data_dir
from local.core.secrets import MOST_CHARACTERS, SecretStore

NEVER_AN_ARGUMENT = (
    "the value is no argument: your shell's history and the list of processes have what you wrote there, so take "
    "another one; 'local2 secret set NAME' asks for it, or reads it from its input"
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As settings name it: secret:NAME.")]

secret_app = typer.Typer(help="Keys and passwords that tools get by name, and nobody is shown.")


@secret_app.command("set")
def keep(
    name: Name,
    value: Annotated[Many, typer.Argument(hidden=True)] = None,
    data_dir: DataDir = None,
) -> None:
    """Keep a secret: its value is asked for, unseen, or read from the input. Who uses it reads it at its start."""
    if value:
        raise typer.BadParameter(NEVER_AN_ARGUMENT)
    _store(data_dir).set(name, _read(name))
    typer.echo(f"kept: secret:{name}; what uses it reads it when it starts ('local2 restart')")


@secret_app.command("list")
def listing(data_dir: DataDir = None) -> None:
    """Show which there are, not what they are."""
    secrets = _store(data_dir).all().items()
    echo_listed((f"{name}  since {secret.set_at}" for name, secret in secrets), "no secret is kept")


@secret_app.command()
def remove(name: Name, data_dir: DataDir = None) -> None:
    """Keep it no longer. A process that has read it knows it until it ends."""
    _store(data_dir).remove(name)
    typer.echo(f"{name} is kept no longer")


def _read(name: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(f"The value of {name}, which is not shown", hide_input=True, err=True)).strip()
    try:
        return sys.stdin.read(MOST_CHARACTERS + 2).strip()
    except UnicodeDecodeError:
        raise typer.BadParameter(f"the value of {name} is no text in UTF-8") from None


def _store(data_dir: DataDir) -> SecretStore:
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    return SecretStore(directory.data_dir)
