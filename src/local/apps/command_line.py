"""What all commands share: how an app of typer's is run and ends, the common options, points in time."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from local.apps.log_levels import LEVELS
from local.apps.terminal import STANDARD_OUTPUT, complain
from local.apps.utf8_text import NotUtf8
from local.errors import LocalError

EXIT_BAD_USE = 2
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what writing to the standard output fails with
_NO_UTF8 = "surrogates not allowed"  # with which Python refuses to encode what was no UTF-8 on the command line

_UsageError: Any = typer.BadParameter.__bases__[0]  # click's; typer brings a copy of its own


def new_app(**options: Any) -> typer.Typer:
    """An app whose help is plain text and whose errors are for `exit_status`."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options)


def exit_status(app: typer.Typer, arguments: Sequence[str], program: str) -> int:
    """Run a command: 2, after one line on the error output, for whatever the user can mend."""
    try:
        return int(app(args=list(arguments), prog_name=program, standalone_mode=False) or 0)
    except LocalError as error:
        sentence = str(error)
    except _UsageError as error:
        sentence = error.format_message()  # names the flag, which str() leaves out
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
    """Where the system has refused something: a file's name or number, the output, or nothing that it names."""
    if isinstance(error.filename, int):
        return f"the open file number {error.filename}"
    if error.filename is not None:
        return os.fsdecode(error.filename)[:200]
    return "the output cannot be written" if error.errno in _UNWRITABLE else "the system refuses what this needs"


def _forget_output() -> None:
    """What could not be written is tried no more: at the end of the process Python would, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STANDARD_OUTPUT)
    os.close(nowhere)


def _known_level(level: str) -> str:
    if level not in LEVELS:
        raise typer.BadParameter(f"{level!r} is none of {', '.join(LEVELS)}")
    return level


ConfigDir = Annotated[Path | None, typer.Option("--config-dir", help="Your settings (default: LOCAL2_CONFIG_DIR).")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Where everything is kept (default: LOCAL2_DATA_DIR).")
]
WorkspaceOption = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="The folder that the assistant works in (default: one in the data directory).",
        callback=lambda given: None if given is None else str(Path(given).expanduser().absolute()),
    ),
]
BusOption = Annotated[str | None, typer.Option("--bus", metavar="PUB,SUB", help="A bus by its two addresses.")]
ApiOption = Annotated[
    str | None, typer.Option("--api", help="Address of a running system (default: that of the data directory).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]
LogLevel = Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.", callback=_known_level)]
OFF = "off"
LogFileOption = Annotated[
    str | None,
    typer.Option("--log-file", metavar="FILE", help="The log file (logs/local2.log in the data directory); off: none."),
]
EndSeconds = Annotated[float | None, typer.Option("--seconds", min=0.1, help="End after so long.")]
Many = list[str] | None
Moment = Annotated[str | None, typer.Option(metavar="T", help="A time (2026-05-01T12:00), or how long ago (30m, 2h).")]
Subject = Annotated[Many, typer.Option(help="Only a subject, a family ('tool.') or a pattern ('tool.*').")]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


class BadMoment(LocalError):
    """A time that is neither a date nor a duration."""

    kind = "bad_moment"

    def __init__(self, option: str, text: str) -> None:
        example = "a time such as 2026-05-01T12:00, or how long ago: 90s, 30m, 2h, 7d, 1w"
        super().__init__(f"{option} {text!r}: expected {example}")


def moment(text: str, option: str, now: float) -> float:
    """Seconds since 1970: of an ISO 8601 date or time, local unless it names its zone, or of "2h" before `now`; 0 for
    what was earlier.

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
