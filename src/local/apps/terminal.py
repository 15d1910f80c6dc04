"""Foreign text made fit for a terminal."""

from __future__ import annotations

import re
from datetime import datetime

from rich.cells import cell_len, set_cell_size

_ASCII_SPACE = re.compile(r"[^\S\x00-\x7f]")  # white space outside ASCII, such as the no-break space


def visible(text: str) -> str:
    """One line without control characters: escapes, line ends, direction marks and the like show as `\\x1b`."""
    if text.isprintable():
        return text
    spaced = _ASCII_SPACE.sub(" ", text)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in spaced)


def cut(line: str, width: int | None) -> str:
    """A line that takes at most `width` columns (wide characters take two), with an ellipsis where it was cut."""
    if width is None or (len(line) <= width and cell_len(line) <= width):
        return line
    return set_cell_size(line[:width], width - 1).rstrip() + "…"


def clock_time(seconds: float | None) -> str:
    """Seconds since 1970 as local time, `12:03:04.123`; a sender can claim a time that no clock shows."""
    try:
        return datetime.fromtimestamp(seconds or 0.0).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return "??:??:??.???"
