"""A fork of the template: what a test may do with it is what it may do with a process that it has started itself."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress


class WarmProcess:
    """As `subprocess.Popen`. `told` is the pipe in which its number stands, and later how it ended; `said` the one of
    its standard error."""

    def __init__(self, told: int, said: int) -> None:
        self._told = os.fdopen(told)
        self.stderr = os.fdopen(said, errors="replace")
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and the template is about to tell how
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _status(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            with self._told:
                self.returncode = int(self._told.readline())
        return self.returncode
