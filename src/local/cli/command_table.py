"""The command line after `local2`: finds a command, imports only its module, and shows the list of all commands."""

from __future__ import annotations

import difflib
import importlib
import signal
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from local.cli.main import EXIT_BAD_USE, complain, exit_status, new_app
from local.core.capability import Section, capabilities
from local.core.environment import environment
from local.core.errors import ConfigError

COMMANDS = {name: command for each in capabilities().values() for name, command in each.commands.items()}
ALIASES = {name: command.split() for each in capabilities().values() for name, command in each.aliases.items()}
_VERSION, _HELP = "--version", "--help"
_FIRST_STEPS = (
    "`local2 run` starts the system, `local2 open` opens its page, `local2 chat` talks in the terminal. "
    "`local2 COMMAND --help` shows options and examples of one command."
)


class _Sections(TyperGroup):
    """The group of all commands; its help shows them under the headings of `Section`."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write one list for each section that has a command."""
        widest = max(map(len, COMMANDS))
        for section in Section:
            rows = [(name.ljust(widest), each.summary) for name, each in COMMANDS.items() if each.section is section]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(sorted(rows))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"local2 {version('local2-assistant')}")
        raise typer.Exit


def local2(
    version: Annotated[
        bool, typer.Option(_VERSION, help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """An assistant that runs on your own machine, and shows on a bus all that it does."""


def run_command(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, or complete it for a shell that asks; returns the exit status."""
    words = _without_aliases(list(arguments)) or [_HELP]
    command = _completed_command() or words[0]
    app = new_app(cls=_Sections)
    app.callback(epilog=_FIRST_STEPS)(local2)
    if command in COMMANDS:
        if _add(command, app) and words == [command]:
            words.append(_HELP)
    elif command.startswith("-"):
        for name, each in COMMANDS.items():
            app.command(name, help=each.summary)(_listed_only)
    else:
        complain(_unknown(command))
        return EXIT_BAD_USE
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # only now is there something to be ended in order
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return exit_status(app, words, "local2")


def _without_aliases(words: list[str]) -> list[str]:
    """The words with the command's present name. A command is also found by its plural or singular."""
    if not words:
        return words
    first, *others = words
    if first == "help":
        return [*_without_aliases(others), _HELP]
    if first in COMMANDS or first.startswith("-"):
        return words
    number = first.removesuffix("s") if first.endswith("s") else f"{first}s"
    return [*ALIASES.get(first, [number if number in COMMANDS else first]), *others]


def _unknown(command: str) -> str:
    names = [*COMMANDS, *ALIASES]
    near = [name for name in names if len(command) > 2 and name.startswith(command)]
    near += difflib.get_close_matches(command, names, n=3, cutoff=0.6)
    meant = " or ".join(f"`local2 {' '.join(ALIASES.get(name, [name]))}`" for name in dict.fromkeys(near))
    hint = f"did you mean {meant}?" if near else "`local2 --help` lists the commands"
    return f"there is no command {command[:80]!r}; {hint}"


def _completed_command() -> str:
    """Return the command whose options or arguments a shell asks for at the Tab key, "--" for the command itself; empty
    if neither.
    """
    words = environment().completed_words
    if not words:
        return ""
    from typer.completion import completion_init  # type: ignore[attr-defined] # re-exported on purpose

    completion_init()
    return words[1] if len(words) > 2 and words[1] in COMMANDS else "--"


def _listed_only() -> None:
    """Stands for a command in the list of all."""


def _add(name: str, app: typer.Typer) -> bool:
    """Add one command; returns whether it is a group that does nothing without a further word."""
    module, _, attribute = COMMANDS[name].target.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        app.command(name)(found)
        return False
    app.add_typer(found, name=name)
    return found.registered_callback is None and not isinstance(found.info.cls, type)


def function_of(group: str, name: str) -> Callable[..., Any]:
    """Return the function of one command of a group, for another command that ends with it. Raises `ConfigError` if the
    capability of that group was removed.
    """
    if group not in COMMANDS:
        raise ConfigError(f"this needs `local2 {group}`, which this LoCAL2 was built without")
    module, _, attribute = COMMANDS[group].target.partition(":")
    commands = getattr(importlib.import_module(module), attribute).registered_commands
    found: Callable[..., Any] = next(each.callback for each in commands if each.callback.__name__ == name)
    return found
