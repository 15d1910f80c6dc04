"""Shared parts of all commands: running and ending a typer app, the common options, points in time."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined] # re-exported on purpose

from local.core.errors import LocalError, without_passwords
from local.core.text import LEVELS as LEVELS
from local.core.text import NotUtf8
from local.core.text import visible as visible

# Lines for a terminal, a pipe or a file: foreign text made fit for them, and the writing itself.

STANDARD_OUTPUT = 1
LEAST_WIDTH = 80  # columns of a line that is cut


class OutputFailed(LocalError):
    """The error for an output that cannot be written, unless its reader has gone."""

    kind = "output_failed"


def complain(sentence: str) -> None:
    """Print an error on the error output, in one line."""
    print(f"local2: {visible(without_passwords(sentence))}", file=sys.stderr, flush=True)  # noqa: T201


def cut(line: str, width: int | None) -> str:
    """A line that takes at most `width` columns (wide characters take two), with an ellipsis where it was cut."""
    if width is None:
        return line
    from rich.cells import (
        cell_len,  # only where there is a terminal
        set_cell_size,  # only where there is a terminal
    )

    if len(line) <= width and cell_len(line) <= width:
        return line
    return set_cell_size(line[:width], width - 1).rstrip() + "…"


def clock_time(seconds: float | None) -> str:
    """Seconds since 1970 as local time, `12:03:04.123`; a sender can claim a time that no clock shows."""
    try:
        return datetime.fromtimestamp(seconds or 0.0).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return "??:??:??.???"


def date_and_time(seconds: float) -> str:
    """Seconds since 1970 as local date and time."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def terminal_width() -> int | None:
    """The columns of the terminal that the output goes to, None if the output goes elsewhere."""
    try:
        return os.get_terminal_size(STANDARD_OUTPUT).columns or None
    except OSError:
        return None


def write_found(found: Any, lines: Iterable[str], *, as_json: bool, nothing: str) -> None:
    """Write a result as JSON, or as lines cut to a terminal's width; for an empty result `nothing` goes to the error
    output. A narrow terminal wraps lines instead of cutting them. Raises `OutputFailed`.
    """
    if as_json:
        return write_lines([json.dumps(found)])
    width = terminal_width()
    return write_listed((cut(line, width and max(width, LEAST_WIDTH)) for line in lines), nothing)


def echo_listed(lines: Iterable[str], nothing: str) -> None:
    """Print a few lines, or `nothing` on the error output if there are none."""
    for line in (shown := list(lines)):
        print(line)  # noqa: T201
    if not shown:
        print(nothing, file=sys.stderr)  # noqa: T201


def write_listed(lines: Iterable[str], nothing: str) -> None:
    """Write lines, or `nothing` on the error output if there are none. Raises `OutputFailed`."""
    shown = list(lines)
    if not shown:
        print(nothing, file=sys.stderr)  # noqa: T201
    write_lines(shown)


def of_user(path: str, user: str | None) -> str:
    """Return the path of a request, for that user if one is named."""
    return path if user is None else f"{path}{'&' if '?' in path else '?'}user_id={quote(user, safe='')}"


def write_lines(lines: Iterable[str], file: Path | int = STANDARD_OUTPUT) -> None:
    """Write lines that must all arrive: a slow reader is waited for, while a tap drops lines. Raises `OutputFailed`.

    A reader that closes early ends the writing without an error. A file is readable by its owner alone: it contains
    conversations.
    """
    try:
        with (
            suppress(BrokenPipeError),
            open(
                file, "w", encoding="utf-8", errors="backslashreplace", closefd=not isinstance(file, int),
                opener=functools.partial(os.open, mode=0o600),
            ) as out,
        ):  # fmt: skip
            for line in lines:
                out.write(f"{line}\n")
    except OSError as error:
        name = str(file) if isinstance(file, Path) else "the output"
        raise OutputFailed(f"{name} cannot be written: {error.strerror}") from None


EXIT_BAD_USE = 2
EXIT_INTERRUPTED = 130
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of writing to the standard output
_NO_UTF8 = "surrogates not allowed"  # Python's message when the command line contained invalid UTF-8

_UsageError: Any = typer.BadParameter.__bases__[0]  # click's; typer contains a copy of its own


def new_app(**options: Any) -> typer.Typer:
    """Return a typer app with plain-text help and errors that `exit_status` handles."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options)


def exit_status(app: typer.Typer, arguments: Sequence[str], program: str) -> int:
    """Run a command. The exit status is 2, after one line on the error output, for errors that the user can fix, and
    130 after Ctrl-C.
    """
    try:
        return int(app(args=list(arguments), prog_name=program, standalone_mode=False) or 0)
    except LocalError as error:
        sentence = str(error)
    except _UsageError as error:
        sentence = error.format_message()  # names the flag, which str() leaves out
    except typer.Abort as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            return EXIT_INTERRUPTED
        print(file=sys.stderr)  # noqa: T201 - behind the question
        sentence = "nothing was changed, because the question was not answered; answer it on a terminal, or use --yes"
    except UnicodeEncodeError as error:
        if error.reason != _NO_UTF8:
            raise
        sentence = str(NotUtf8(error.object, error.start))
    except OSError as error:
        if error.strerror is None:
            raise
        sentence = f"{_place(error)}: {error.strerror}"
        if error.filename is None and error.errno in _UNWRITABLE:
            _forget_output()
    complain(sentence)
    return EXIT_BAD_USE


def _place(error: OSError) -> str:
    """Return the object of the operating system's error: a file's name or number, the output, or an unnamed
    operation.
    """
    if isinstance(error.filename, int):
        return f"the open file number {error.filename}"
    if error.filename is not None:
        return os.fsdecode(error.filename)[:200]
    return (
        "the output cannot be written"
        if error.errno in _UNWRITABLE
        else "the operating system refuses a required operation"
    )


def _forget_output() -> None:
    """Discard the unwritten output, which Python would otherwise try to write at the end of the process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STANDARD_OUTPUT)
    os.close(nowhere)


def _known_level(level: str) -> str:
    if level not in LEVELS:
        raise typer.BadParameter(f"{level!r} is not one of {', '.join(LEVELS)}")
    return level


ConfigDir = Annotated[
    Path | None, typer.Option("--config-dir", help="Folder of your settings (default: LOCAL2_CONFIG_DIR).")
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The data directory (default: LOCAL2_DATA_DIR).")]
WorkspaceOption = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="The folder that the assistant works in (default: one in the data directory).",
        callback=lambda given: None if given is None else str(Path(given).expanduser().absolute()),
    ),
]
BusOption = Annotated[
    str | None,
    typer.Option("--bus", metavar="PUB,SUB", help="The two addresses of a bus (default: the running system's)."),
]
ApiOption = Annotated[
    str | None, typer.Option("--api", help="Address of a running system (default: that of the data directory).")
]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="For the owner: what belongs to this user.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LogLevel = Annotated[
    str, typer.Option("--log-level", help="Lowest level to log: debug, info, warning or error.", callback=_known_level)
]
OFF = "off"
LogFileOption = Annotated[
    str | None,
    typer.Option(
        "--log-file", metavar="FILE", help="The log file (default: logs/local2.log in the data directory); off: none."
    ),
]
EndSeconds = Annotated[float | None, typer.Option("--seconds", min=0.1, help="Stop after this many seconds.")]
Many = list[str] | None
Moment = Annotated[str | None, typer.Option(metavar="T", help="A time (2026-05-01T12:00) or an age (30m, 2h).")]
Subject = Annotated[
    Many, typer.Option(help="Only this subject, family ('tool.') or pattern ('tool.*'). Can be repeated.")
]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


class BadMoment(LocalError):
    """The error for a time that is neither a date nor a duration."""

    kind = "bad_moment"

    def __init__(self, option: str, text: str) -> None:
        example = "a time such as 2026-05-01T12:00 or an age such as 90s, 30m, 2h, 7d, 1w"
        super().__init__(f"{option} {text!r}: expected {example}")


def moment(text: str, option: str, now: float) -> float:
    """Return seconds since 1970: of an ISO 8601 date or time, local unless it names its zone, or of "2h" before `now`;
    0 for earlier times.

    Raises `BadMoment`, which names the option.
    """
    if duration := _DURATION.fullmatch(text):
        return max(0.0, now - float(duration[1]) * _SECONDS[duration[2]])
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        raise BadMoment(option, text) from None


def sized(count: int) -> str:
    """Bytes for a person: `8.1 GB`."""
    value, units = float(count), iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    for larger in units:
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit in ("B", "kB") else f"{value:.1f} {unit}"


# `local2 completion SHELL`: completion of commands and options at the Tab key.

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LOCAL2_COMPLETE"  # set where the shell asks, as typer's scripts do it


def completion(shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the completion script for a shell.

    Example: local2 completion bash >> ~/.bashrc; for fish: local2 completion fish >
    ~/.config/fish/completions/local2.fish
    """
    if shell not in SHELLS:
        raise typer.BadParameter(f"{shell!r} is not one of {', '.join(SHELLS)}", param_hint="SHELL")
    typer.echo(get_completion_script(prog_name="local2", complete_var=VARIABLE, shell=shell))


# The command line's output during a start.


@dataclass(frozen=True, slots=True)
class Flags:
    """The options of `local2 run`. None leaves an option to the configuration."""

    api: bool = False
    headless: bool = False
    config_dir: Path | None = None
    data_dir: Path | None = None
    log_level: str = "info"
    system: Mapping[str, Any] = field(default_factory=dict)  # overrides of system.yaml
    generator: Mapping[str, Any] = field(default_factory=dict)  # overrides of generator.yaml
    respondent_b: Mapping[str, Any] | None = None  # further ones for the second respondent; None: not asked for
    starter: int | None = None  # a pipe that closes when the starter of this system has ended
    desktop: bool = False  # whether the user insists on a desktop window

    @property
    def models(self) -> Mapping[str, Any]:
        """Overrides of models.yaml: a model that is named here answers, and no chain of others."""
        return {"roles": {"chat": []}} if "model" in self.generator else {}


def repeated_lines(repeated: Sequence[str] | None) -> Iterator[str]:
    """Return the rest after a deletion: the engrams that may repeat deleted content; None if they are unknown."""
    if repeated is None:
        yield "whether others repeat it the memory was not there to tell"
    elif repeated:
        yield f"{len(repeated)} may repeat it, and stay until they are deleted, too:"
        yield from (f"  {visible(each)}" for each in repeated)
