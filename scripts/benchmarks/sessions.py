"""Many sessions at once on a model that takes its time and serves them all: what the system adds to the wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median

from benchmarks.figure import Figure, alternate
from benchmarks.whole_system import order, whole_system

MODEL_SECONDS = 0.35
ROUNDS = 5
CASES = ((16, 1.5), (100, 1.5))  # sessions, and how much longer than the bare loop they may take
QUERY = order(tokens=8, wait=MODEL_SECONDS)


async def run() -> list[Figure]:
    """For each number of sessions the system and the bare loop take turns."""
    figures = []
    async with whole_system() as system:
        for count, limit in CASES:
            loops = [_all_at_once(system.ask, count), _all_at_once(system.bare.ask, count)]
            await alternate(1, *loops)  # to warm up
            ours, bare = (median(seconds) for seconds in await alternate(ROUNDS, *loops))
            figures.append(Figure(f"sessions: {count} at once, wall time", ours, "s", bare, ratio_limit=limit))
    return figures


def _all_at_once(ask: Callable[[str], Awaitable[str]], count: int) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(ask(QUERY) for _ in range(count)))
        return time.perf_counter() - started

    return measure
