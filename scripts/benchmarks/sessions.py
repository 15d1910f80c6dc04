"""Many sessions at once on a model that takes its time and serves them all: what the system with its default
participants adds to the wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median

from benchmarks.figure import Figure, alternate
from benchmarks.whole_system import Settings, WholeSystem, order, whole_system
from benchmarks.witness import LAST_OF_OBSERVERS, Witness, witness

MODEL_SECONDS = 0.35
ROUNDS = 5
CASES = ((16, 1.5), (100, 1.5))  # sessions, and how much longer than the bare loop they may take
QUERY = order(tokens=8, wait=MODEL_SECONDS)

SETTINGS: Settings = {"api": {"max_wait_seconds": None}}  # a slow machine refuses none of them either

Measure = Callable[[], Awaitable[float]]


async def run() -> list[Figure]:
    """For each number of sessions the system and the bare loop take turns."""
    figures = []
    async with whole_system(SETTINGS) as system, witness(system.system.facts, *LAST_OF_OBSERVERS) as heard:
        for count, limit in CASES:
            loops = [_ours(system, heard, count), _bare(system, count)]
            await alternate(1, *loops)  # to warm up
            ours, bare = (median(seconds) for seconds in await alternate(ROUNDS, *loops))
            figures.append(Figure(f"sessions: {count} at once, wall time", ours, "s", bare, ratio_limit=limit))
    return figures


def _ours(system: WholeSystem, heard: Witness, count: int) -> Measure:
    """The observers are done before the next measurement begins."""

    async def measure() -> float:
        started = time.perf_counter()
        asked = await asyncio.gather(*(system.timed(QUERY) for _ in range(count)))
        seconds = time.perf_counter() - started
        await heard.observers_are_done(each.query_id for each in asked)
        return seconds

    return measure


def _bare(system: WholeSystem, count: int) -> Measure:
    async def measure() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(system.bare.ask(QUERY) for _ in range(count)))
        return time.perf_counter() - started

    return measure
