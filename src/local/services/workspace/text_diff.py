"""How a text file has changed, in the unified form."""

from __future__ import annotations

import difflib

MOST_LINES = 400
MOST_CHARS_OF_LINE = 400
MOST_BYTES = 2_000_000  # of both sides; comparing more takes too long
NO_NEWLINE = "\\ No newline at end of file"


def text_diff(path: str, before: bytes, after: bytes) -> str:
    """The lines that differ, with three around them; in words for what is no text or too long to compare."""
    if len(before) + len(after) > MOST_BYTES:
        return f"{path}: {len(before)} bytes became {len(after)}, too much to compare"
    try:
        old, new = (_lines(side.decode()) for side in (before, after))
    except UnicodeDecodeError:
        return f"{path}: {len(before)} bytes became {len(after)}, no text"
    lines = list(difflib.unified_diff(old, new, path, path, lineterm=""))
    cut = [line if len(line) <= MOST_CHARS_OF_LINE else f"{line[:MOST_CHARS_OF_LINE]}…" for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        cut.append(f"… and {len(lines) - MOST_LINES} more lines")
    return "\n".join(cut)


def _lines(text: str) -> list[str]:
    """The lines, with a mark after a last one that does not end."""
    lines = text.split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}\n{NO_NEWLINE}"]
    return lines[:-1]
