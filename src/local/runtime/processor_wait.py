"""Tells a process that hangs from one that is kept waiting for a processor, because others are busy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NANOSECOND = 1e-9
MOST_OF_IT = 0.5  # of a silence
MOST_EXCUSES = 10  # of one silence, so that what hangs on a busy machine is found out all the same


@dataclass(frozen=True, slots=True)
class ProcessorStatus:
    """How the threads of a process stand with the processors, all together: for how many seconds they have run, and
    were ready to run while others did, which is counted once that is over; and whether one is ready at this moment."""

    ran_seconds: float = 0.0
    waited_seconds: float = 0.0
    is_ready: bool = False


def processor_status(pid: int) -> ProcessorStatus:
    """What the system says of a process; nothing where it says nothing, as macOS. The figures are the first and the
    second of Linux' `schedstat`, the state is that in its `stat`."""
    ran, waited, is_ready = 0, 0, False
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended, or tells otherwise
            run, wait, _ = (thread / "schedstat").read_text().split()
            ran, waited = ran + int(run), waited + int(wait)
            is_ready |= (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    return ProcessorStatus(ran * NANOSECOND, waited * NANOSECOND, is_ready)


class ProcessorWait:
    """What one silent process waits for, from its first `look` on; times are seconds of one monotonic clock."""

    def __init__(self, status_of: Callable[[int], ProcessorStatus] = processor_status) -> None:
        self._status_of = status_of
        self._begun: tuple[float, ProcessorStatus] | None = None  # when that was, and how the process was then
        self._latest = ProcessorStatus()
        self._ran_at = 0.0  # the first time that it was seen to have run for as long as it has
        self._excuses = 0

    def look(self, pid: int, now: float) -> None:
        """To be called now and then while the process is silent."""
        status = self._status_of(pid)
        if self._begun is None or status.ran_seconds != self._latest.ran_seconds:
            self._ran_at = now
        self._begun, self._latest = self._begun or (now, status), status

    def end(self) -> None:
        """Forget it: the process has said something, or is gone."""
        self._begun, self._excuses = None, 0

    def excuses(self, now: float) -> bool:
        """Whether the process has spent most of the time until the latest look waiting for a processor; then that
        begins anew. No more than ten times in one silence."""
        if self._begun is None or self._excuses >= MOST_EXCUSES:
            return False
        since, before = self._begun
        waited = self._latest.waited_seconds - before.waited_seconds
        if self._latest.is_ready:
            waited += now - self._ran_at
        if waited < MOST_OF_IT * (now - since):
            return False
        self._excuses += 1
        self._begun = now, self._latest
        return True

    @property
    def is_first_excuse(self) -> bool:
        """Whether the last excuse was the first one of this silence."""
        return self._excuses == 1
