"""A command on a real pseudo-terminal, and what a person would see there."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

SECONDS = 120.0
ROWS = 24


class PseudoTerminal:
    """Runs `local2` with these arguments on a terminal of `columns`. `sent` is every byte that it has written."""

    def __init__(self, *arguments: str | Path, columns: int = 80) -> None:
        self._arguments, self._columns = [str(argument) for argument in arguments], columns
        self.screen = pyte.HistoryScreen(columns, ROWS, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""

    def __enter__(self) -> Self:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, self._columns, 0, 0))
        command = [sys.executable, "-m", "local.cli.entry", *self._arguments]
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.screen.write_process_input = self.type  # the terminal's own answers, such as where its cursor is
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until the text has been on the terminal so often."""
        self._wait(lambda: self.text.count(text) >= times, text)

    def end(self) -> int:
        """Wait for the end; gives the exit status."""
        self._wait(lambda: self.process.poll() is not None, "its end")
        return self.process.wait()

    @property
    def text(self) -> str:
        """All that can be found in the scrollback."""
        past = ["".join(line[column].data for column in sorted(line)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*past, *self.screen.display])

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.type("\x03")

    def _wait(self, holds, what: str) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < end, f"no {what!r} in:\n{self.text}"
            if select.select([self._ours], [], [], 0.05)[0]:
                try:
                    piece = os.read(self._ours, 65_536)
                except OSError:  # the other end is closed
                    self.process.wait(SECONDS)
                    continue
                self.sent += piece
                self._stream.feed(piece)
