"""Tells a process that hangs from one that is kept waiting for a processor, because others are busy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NANOSECOND = 1e-9
MOST_OF_IT = 0.5  # of a silence
MOST_EXCUSES = 10  # of one silence, so that what hangs on a busy machine is found out all the same


def waited_seconds(pid: int) -> float:
    """How long the threads of a process have been ready to run while others ran, all together, in seconds; 0 where the
    system does not say, as macOS. The figure is the second one of Linux' `schedstat`."""
    waited = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # it has ended, or tells otherwise
            waited += int(thread.read_text().split()[1])
    return waited * NANOSECOND


class ProcessorWait:
    """What one silent process waits for, from `begin` on; times are seconds of one monotonic clock."""

    def __init__(self, waited: Callable[[int], float] = waited_seconds) -> None:
        self._waited = waited
        self._begun: tuple[int, float, float] | None = None  # the process, when that was, and what it had waited
        self._excuses = 0

    def begin(self, pid: int, now: float) -> None:
        """Measure from now on, unless that has begun."""
        if self._begun is None:
            self._begun = pid, now, self._waited(pid)

    def end(self) -> None:
        """Forget it: the process has said something, or is gone."""
        self._begun, self._excuses = None, 0

    def excuses(self, now: float) -> bool:
        """Whether the process spent most of the time since `begin` waiting for a processor; then that begins anew. No
        more than ten times in one silence."""
        if self._begun is None or self._excuses >= MOST_EXCUSES:
            return False
        pid, since, before = self._begun
        if self._waited(pid) - before < MOST_OF_IT * (now - since):
            return False
        self._excuses += 1
        self._begun = None
        self.begin(pid, now)
        return True

    @property
    def is_first_excuse(self) -> bool:
        """Whether the last excuse was the first one of this silence."""
        return self._excuses == 1
