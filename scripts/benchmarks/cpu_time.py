"""What processes have cost so far, as the kernel counts it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def cpu_seconds(pids: Iterable[int]) -> float:
    """Seconds on a core of all threads of these processes; exact to the nanosecond where `times` counts in 10 ms."""
    return sum(process_seconds(pid) for pid in pids)


def process_seconds(pid: int) -> float:
    """The CPU seconds of one process. Threads that have ended meanwhile are in no file of the kernel's that is so
    exact."""
    return sum(_thread_seconds(task) for task in Path(f"/proc/{pid}/task").iterdir())


def _thread_seconds(task: Path) -> float:
    with suppress(FileNotFoundError, ProcessLookupError):
        return int((task / "schedstat").read_text().split()[0]) / 1e9
    return 0.0


def proportional_bytes(pid: int) -> int:
    """The proportional set size: what a process has for itself, and its share of what it has in common with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
