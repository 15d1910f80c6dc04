"""Every command of `local2`, and the module in which it is: only the one that is asked for is imported."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Sequence
from typing import Annotated

import typer

from local.cli.main import exit_status, new_app
from local.core.capability import capabilities
from local.core.environment import environment

COMMANDS = {name: target for each in capabilities().values() for name, target in each.commands.items()}
_HIDDEN = {name for each in capabilities().values() for name in each.hidden}
_VERSION = "--version"


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"local2 {version('local2-assistant')}")
        raise typer.Exit


def local2(
    version: Annotated[
        bool, typer.Option(_VERSION, help="Tell the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """A local assistant whose every thought is on a bus you can watch."""


def run_command(arguments: Sequence[str]) -> int:
    """Do what the command line says, or complete it for a shell that asks; gives the exit status."""
    command = _completed_command() or (arguments[0] if arguments else "")
    app = new_app()
    app.callback()(local2)
    for name in [command] if command in COMMANDS else [] if command == _VERSION else COMMANDS:
        _add(name, app)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # only now is there something to be ended in order
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return exit_status(app, arguments or ["--help"], "local2")


def _completed_command() -> str:
    """The command whose options or arguments a shell asks for at the Tab key; empty if it asks for none."""
    words = environment().completed_words
    if not words:
        return ""
    from typer.completion import completion_init  # type: ignore[attr-defined] # re-exported on purpose

    completion_init()
    return words[1] if len(words) > 2 else ""


def _add(name: str, app: typer.Typer) -> None:
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
    else:
        app.command(name, hidden=name in _HIDDEN)(found)
