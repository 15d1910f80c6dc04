"""One turn over HTTP on a model that takes no time, beside the bare loop that makes the same model calls."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from statistics import median

from benchmarks.figure import Figure, alternate
from benchmarks.whole_system import order, whole_system

ROUNDS = 20
TURNS = 10
PLAIN = order(tokens=8)
WITH_TOOL = order(tokens=8, call="instant")


async def run() -> list[Figure]:
    """Four loops take turns: the system and the bare loop, without and with a tool call."""
    async with whole_system() as system:
        loops = [
            _timed(system.ask, PLAIN), _timed(system.bare.ask, PLAIN),
            _timed(system.ask, WITH_TOOL), _timed(system.bare.ask, WITH_TOOL),
        ]  # fmt: skip
        await alternate(2, *loops)  # to warm up
        rounds = await alternate(ROUNDS, *loops)
    ours, bare, ours_tool, bare_tool = (median(seconds for turns in each for seconds in turns) * 1e3 for each in rounds)
    return [
        Figure("turn: plain, p50", ours, "ms", bare, ratio_limit=5),
        Figure("turn: with one tool call, p50", ours_tool, "ms", bare_tool, ratio_limit=4),
    ]


def _timed(ask: Callable[[str], Awaitable[str]], query: str) -> Callable[[], Awaitable[list[float]]]:
    async def measure() -> list[float]:
        seconds = []
        for _ in range(TURNS):
            started = time.perf_counter()
            await ask(query)
            seconds.append(time.perf_counter() - started)
        return seconds

    return measure
