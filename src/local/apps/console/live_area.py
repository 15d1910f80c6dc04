"""The few lines below what has been printed that change: everything above them is never touched again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len, set_cell_size

MAX_LINES = 6
_ERASE_BELOW = "\r\x1b[J"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class LiveArea:
    """Writes to a terminal by `write`. The cursor rests at the beginning of the area, not at its end: whatever a resize
    does to its lines, they are all below the cursor, and are erased without being counted."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._shown: tuple[Sequence[str], int] = ((), 0)

    def show(self, lines: Sequence[str], width: int) -> None:
        """Show these lines, the last ones if there are too many, each cut to the width; without line ends or escapes
        but those for colours, which no line is longer by."""
        if (lines, width) == self._shown:
            return
        self._shown = (lines, width)
        body = "\r\n".join(lines[-MAX_LINES:])
        up = min(len(lines), MAX_LINES) - 1
        back = f"\x1b[{up}A\r" if up > 0 else "\r"
        self._write(f"{_HIDE_CURSOR}{_ERASE_BELOW}{body}{back}" if lines else f"{_ERASE_BELOW}{_SHOW_CURSOR}")

    def print(self, text: str) -> None:
        """Print finished lines, each with its end, above the area, which is empty then."""
        self._shown = ((), 0)
        self._write(f"{_ERASE_BELOW}{text}")

    def close(self) -> None:
        """Leave nothing of the area behind."""
        self._shown = ((), 0)
        self._write(f"{_ERASE_BELOW}{_SHOW_CURSOR}")


def fitted(text: str, width: int) -> str:
    """A line of text that takes fewer columns than the terminal has, with an ellipsis where it was cut: a character in
    the last column would be a line of its own on some terminals."""
    room = max(1, width - 1)
    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"
