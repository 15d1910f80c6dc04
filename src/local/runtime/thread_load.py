"""How busy a thread is."""

from __future__ import annotations

import time
from pathlib import Path

SCHEDSTAT = Path("/proc/thread-self/schedstat")  # of Linux: nanoseconds run, nanoseconds ready to run, times
LEAST_SECONDS = 0.5
STEP = 10  # per cent: smaller changes say nothing


class ThreadLoad:
    """The share of the time in which a thread has run or, where the system tells that, was ready to and waited for a
    processor. Near 100 % more work makes everything that it does later, whoever keeps the processors busy."""

    def __init__(self) -> None:
        self._at, self._busy, self._percent = time.monotonic(), _busy_seconds(), 0

    def percent(self) -> int:
        """From 0 to 100, in tens, since the last look, which is half a second ago at least. For the thread itself."""
        now = time.monotonic()
        if now - self._at >= LEAST_SECONDS:
            busy = _busy_seconds()
            share = (busy - self._busy) / (now - self._at)
            self._percent = min(100, STEP * round(100 * share / STEP))
            self._at, self._busy = now, busy
        return self._percent


def _busy_seconds() -> float:
    try:
        run, ready, _ = SCHEDSTAT.read_text().split()
    except (OSError, ValueError):
        return time.thread_time()
    return (int(run) + int(ready)) / 1e9
