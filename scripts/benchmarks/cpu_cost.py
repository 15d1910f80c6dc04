"""What a plain turn costs each process, until every observer has finished with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from benchmarks.cpu_time import process_seconds
from benchmarks.whole_system import WholeSystem, order
from benchmarks.witness import LAST_OF_OBSERVERS, witness

IDLE_SECONDS = 3.0
LAST_SECONDS = 1.0  # for what follows the observers' last word: acknowledgements and their commits


async def cost_of_a_turn(system: WholeSystem, turns: int, pause: float) -> dict[str, float]:
    """Milliseconds on a core for each process, without what it needs at rest."""
    processes = await system.processes()
    await asyncio.sleep(LAST_SECONDS)
    idle = await seconds_at_rest(processes, IDLE_SECONDS)
    before, began = _spent(processes), time.monotonic()
    async with witness(system.system.facts, *LAST_OF_OBSERVERS) as here:
        ids = []
        for number in range(turns):
            ids.append((await system.timed(order(tokens=8, cost=number))).query_id)
            await asyncio.sleep(pause)
        await here.observers_are_done(ids)
        await asyncio.sleep(LAST_SECONDS)
    after, elapsed = _spent(processes), time.monotonic() - began
    return {
        name: (after[pid] - before[pid] - idle[pid] * elapsed / IDLE_SECONDS) / turns * 1e3
        for pid, name in processes.items()
    }


async def seconds_at_rest(pids: Iterable[int], seconds: float) -> dict[int, float]:
    """What each process takes in so many seconds."""
    before = _spent(pids)
    await asyncio.sleep(seconds)
    return {pid: spent - before[pid] for pid, spent in _spent(pids).items()}


def _spent(pids: Iterable[int]) -> dict[int, float]:
    return {pid: process_seconds(pid) for pid in pids}
