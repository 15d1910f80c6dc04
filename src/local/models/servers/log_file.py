"""The log of a server: kept in the data directory, and never larger than twice its limit."""

from __future__ import annotations

from collections import deque
from pathlib import Path

MAX_BYTES = 2 * 1024 * 1024
_LAST_LINES = 3


class LogFile:
    """Appends to `path`; what is older goes to `<name>.1` when that is full, and what was there is forgotten.

    Blocks for the disk. Raises OSError where the file cannot be written.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def write(self, data: bytes) -> None:
        """Append what the server has said."""
        lines = (line.strip() for line in data.decode(errors="replace").splitlines())
        self._last.extend(line for line in lines if line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size + len(data) > self._max_bytes:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        with self.path.open("ab") as file:
            file.write(data)

    @property
    def last_words(self) -> str:
        """The end of what this process has written, on one line."""
        return " | ".join(self._last) or "nothing"
