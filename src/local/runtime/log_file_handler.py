"""The log as a file, to which every process of a system appends."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 5 * 1024 * 1024
KEPT = 3  # files beside the one that is written
MODE = 0o600
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class LogFileHandler(logging.Handler):
    """Appends each line in one write, so that those of several processes do not mix, and follows the name: whoever
    finds the file full moves it aside (`.1` is the youngest of those), the others go on in the new one.

    It makes no folder, since one that has gone may be a data directory that was moved away. What cannot be written is
    left out, which is said on stderr once until it works again: nothing waits for a log.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        super().__init__()
        self._path, self._max_bytes, self._kept = path, max_bytes, kept
        self._file: int | None = None
        self._is_failing = False

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line; never raises."""
        try:
            data = f"{self.format(record)}\n".encode(errors="backslashreplace")
            self._follow_name()
            if self._file is not None:
                self._make_room(self._file)
            if self._file is not None:
                os.write(self._file, data)
            self._is_failing = False
        except OSError as error:
            self._complain(error)

    def close(self) -> None:
        """Give the file back."""
        self._leave()
        super().close()

    def _follow_name(self) -> None:
        """Have the file open that is there by the name now; where it cannot be opened, go on with the last one."""
        if self._file is not None and self._is_current(self._file):
            return
        try:
            new = os.open(self._path, FLAGS, MODE)
        except OSError:
            if self._file is None:
                raise
            return
        os.fchmod(new, MODE)
        self._leave()
        self._file = new

    def _make_room(self, file: int) -> None:
        """Move a full file aside, unless somebody else does so at this moment."""
        if os.fstat(file).st_size < self._max_bytes:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        try:
            if self._is_current(file):
                for number in range(self._kept, 0, -1):
                    with suppress(FileNotFoundError):
                        self._aside(number - 1).replace(self._aside(number))
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
        self._follow_name()

    def _aside(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(file))
        except FileNotFoundError:
            return False

    def _leave(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _complain(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            with suppress(OSError, ValueError):
                sys.stderr.write(f"the log file {self._path} cannot be written: {error.strerror}\n")
