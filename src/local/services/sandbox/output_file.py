"""All that a command has written, in the order in which it came."""

from __future__ import annotations

import tempfile
from typing import IO

SPOOLED = 1024 * 1024  # bytes that are held in memory before a file is made


class OutputFile:
    """Bytes at the end, any part of them again. The file has no name, and is gone with whoever holds it."""

    def __init__(self) -> None:
        self.size = 0
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=SPOOLED)  # noqa: SIM115 - closed by `close`

    def append(self, data: bytes) -> None:
        """More of it. Raises `OSError` on a full disk."""
        self._file.seek(0, 2)
        self._file.write(data)
        self.size += len(data)

    def part(self, start: int, length: int) -> bytes:
        """So many bytes from `start` on; fewer where there are no more."""
        self._file.seek(start)
        return self._file.read(length)

    def close(self) -> None:
        """Nothing is read any more."""
        self._file.close()
