"""Every command of `local2`, and the module in which it is: only the one that is asked for is imported."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Sequence
from typing import Annotated

import typer

from local.apps.command_line import exit_status, new_app
from local.environment import environment

COMMANDS = {
    "run": "local.apps.run_command:run",
    "ask": "local.apps.console.commands:ask_once",
    "chat": "local.apps.console.commands:chat",
    "repl": "local.apps.console.commands:chat",
    "status": "local.apps.status_command:status",
    "logs": "local.apps.log_command:logs",
    "sessions": "local.apps.session_commands:session_app",
    "memory": "local.apps.memory_commands:memory_app",
    "skills": "local.apps.skill_commands:skills_app",
    "dream": "local.apps.dream_commands:dream_app",
    "monologue": "local.apps.monologue_commands:monologue_app",
    "goals": "local.apps.goal_commands:goal_app",
    "undo": "local.apps.undo_commands:undo_app",
    "approvals": "local.apps.approval_commands:approvals_app",
    "agents": "local.apps.agent_commands:agents_app",
    "usage": "local.apps.usage_command:usage",
    "cron": "local.apps.cron_commands:cron_app",
    "trace": "local.apps.console.commands:trace",
    "restart": "local.apps.restart_command:restart",
    "mcp": "local.apps.mcp_command:mcp_app",
    "tap": "local.apps.tap.commands:tap_app",
    "journal": "local.apps.journal.commands:journal_app",
    "model": "local.apps.model_commands:model_app",
    "pull": "local.apps.model_commands:pull",
    "prompt": "local.apps.prompt_commands:prompt_app",
    "profiles": "local.apps.profile_commands:profile_app",
    "soul": "local.apps.soul_commands:soul_app",
    "secret": "local.apps.secret_commands:secret_app",
    "trust": "local.apps.trust_command:trust",
    "user": "local.apps.user_commands:user_app",
    "participant": "local.apps.participant_cli:participant",
    "doctor": "local.apps.doctor.doctor_command:doctor",
    "backup": "local.apps.upkeep_commands:backup",
    "restore": "local.apps.upkeep_commands:restore",
    "rebuild": "local.apps.upkeep_commands:rebuild",
    "stories": "local.apps.stories_command:stories",
    "completion": "local.apps.completion_command:completion",
}
_HIDDEN = ("repl", "pull")  # other names of chat, and of model pull
_VERSION = "--version"


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"local2 {version('local2')}")
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
