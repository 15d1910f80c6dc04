"""Lines for a terminal, a pipe or a file: foreign text made fit for them, and the writing itself."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from local.errors import LocalError
from local.errors.base import without_passwords

STANDARD_OUTPUT = 1
LEAST_WIDTH = 80  # columns of a line that is cut

_ASCII_SPACE = re.compile(r"[^\S\x00-\x7f]")  # white space outside ASCII, such as the no-break space


class OutputFailed(LocalError):
    """The output cannot be written, for another reason than that its reader has gone."""

    kind = "output_failed"


def visible(text: str) -> str:
    """One line without control characters: escapes, line ends, direction marks and the like show as `\\x1b`."""
    if text.isprintable():
        return text
    spaced = _ASCII_SPACE.sub(" ", text)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in spaced)


def complain(sentence: str) -> None:
    """Say on the error output, in one line, what went wrong."""
    print(f"local2: {visible(without_passwords(sentence))}", file=sys.stderr, flush=True)  # noqa: T201


def cut(line: str, width: int | None) -> str:
    """A line that takes at most `width` columns (wide characters take two), with an ellipsis where it was cut."""
    if width is None:
        return line
    from rich.cells import cell_len, set_cell_size  # only where there is a terminal

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
    """What was found: as JSON, or as lines cut to a terminal's width; that there is `nothing` is said on the error
    output. A narrow terminal folds a line: cut off would be what it is about. Raises `OutputFailed`."""
    if as_json:
        return write_lines([json.dumps(found)])
    width = terminal_width()
    return write_listed((cut(line, width and max(width, LEAST_WIDTH)) for line in lines), nothing)


def echo_listed(lines: Iterable[str], nothing: str) -> None:
    """Print a few lines, or say on the error output that there is `nothing`."""
    for line in (shown := list(lines)):
        print(line)  # noqa: T201
    if not shown:
        print(nothing, file=sys.stderr)  # noqa: T201


def write_listed(lines: Iterable[str], nothing: str) -> None:
    """Write lines, or say on the error output that there is `nothing`. Raises `OutputFailed`."""
    shown = list(lines)
    if not shown:
        print(nothing, file=sys.stderr)  # noqa: T201
    write_lines(shown)


def write_lines(lines: Iterable[str], file: Path | int = STANDARD_OUTPUT) -> None:
    """Write lines that must all arrive: a slow reader is waited for, where a tap drops. Raises `OutputFailed`.

    A reader that has seen enough ends the writing quietly. A file is made for its owner alone: it holds what was
    talked about.
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
