"""A process with all its descendants: how many they are, and how much memory they hold."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
_THREADS, _PAGES = 17, 21  # in /proc/<pid>/stat, counted from after the name


class ProcessTree:
    """The processes as /proc tells them, which is gone in a moment: numbers are those of just now."""

    def __init__(self, root: int) -> None:
        self.root = root

    def members(self, at_most: int = 100_000) -> list[int]:
        """The process ids, the root's first; no more than so many."""
        found = [self.root]
        for pid in found:
            if len(found) >= at_most:
                break
            found += _children(pid)
        return found

    def usage(self, at_most: int) -> tuple[int, int]:
        """How many threads of all processes there are, and how many bytes they hold, with what they share counted
        once for each of them; no more than `at_most` processes are looked at."""
        threads = pages = 0
        for pid in self.members(at_most + 1):
            with suppress(OSError, IndexError, ValueError):
                fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
                threads += int(fields[_THREADS])
                pages += int(fields[_PAGES])
        return threads, pages * PAGE

    def proportional_bytes(self) -> int:
        """How many bytes they hold, with what is shared divided among those that share it; slower to find out."""
        return sum(_proportional(pid) for pid in self.members())

    def signal(self, number: signal.Signals, spare: int = 0) -> None:
        """Send a signal to all but the first `spare` of them."""
        for pid in self.members()[spare:]:
            with suppress(OSError):
                os.kill(pid, number)


def _children(pid: int) -> Iterator[int]:
    with suppress(OSError, ValueError):
        for task in (PROC / str(pid) / "task").iterdir():
            yield from map(int, (task / "children").read_text().split())


def _proportional(pid: int) -> int:
    with suppress(OSError, ValueError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
