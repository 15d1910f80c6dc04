"""A process that the template has forked."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from multiprocessing.process import BaseProcess

REAP_SECONDS, KILLED_SECONDS = 1.0, 4.0  # to tell an exit status, and once more after a kill


class ForkedProcess:
    """A process that the template has forked for a child, or for several."""

    def __init__(self, process: BaseProcess, children: int = 1) -> None:
        assert process.pid is not None, "made from a started process"
        self.pid: int = process.pid
        self._process, self._children = process, children
        self._status: int | None = None

    def reap(self, said: int | None) -> int | None:
        """The exit status of one of its children that is gone, which has `said` it where others go on; negative for a
        signal; None if the template does not say. Blocks."""
        self._children -= 1
        if said is None or not self._children:
            self._wait()
        return self._status if said is None else said

    def _wait(self) -> None:
        if self._status is not None:
            return
        self._process.join(REAP_SECONDS)
        if self._process.exitcode is None:  # alive without a lifeline
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._process.join(KILLED_SECONDS)
        self._status = self._process.exitcode
        if self._status is not None:
            self._process.close()
