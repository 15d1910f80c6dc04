"""What a plain turn costs each process, until every observer has finished with it, and what it costs later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from benchmarks.cpu_time import process_seconds
from benchmarks.whole_system import WholeSystem, order
from benchmarks.witness import LAST_OF_OBSERVERS, witness
from local.bus.envelope import new_id

IDLE_SECONDS = 3.0
EMBEDDED_SECONDS = 60.0
LAST_SECONDS = 1.0  # for what follows the observers' last word: acknowledgements and their commits


async def cost_of_a_turn(system: WholeSystem, turns: int, pause: float) -> tuple[dict[str, float], float]:
    """Milliseconds on a core for each process, without what it needs at rest; and those in which the memory embeds the
    exchange when nobody asks any more.
    """
    processes = await system.processes()
    await asyncio.sleep(LAST_SECONDS)
    await everything_is_embedded(system)
    idle = await seconds_at_rest(processes, IDLE_SECONDS)
    before, began = _spent(processes), time.monotonic()
    async with witness(system.system.facts, *LAST_OF_OBSERVERS) as here:
        ids = []
        for _ in range(turns):
            ids.append((await system.timed(order(tokens=8, cost=new_id()))).query_id)
            await asyncio.sleep(pause)
        await here.observers_are_done(ids)
        await asyncio.sleep(LAST_SECONDS)
    after, elapsed = _spent(processes), time.monotonic() - began
    await everything_is_embedded(system)
    (memory,) = (pid for pid, name in processes.items() if name == "memory")
    later = process_seconds(memory) - after[memory] - idle[memory] * (time.monotonic() - began - elapsed) / IDLE_SECONDS
    return {
        name: (after[pid] - before[pid] - idle[pid] * elapsed / IDLE_SECONDS) / turns * 1e3
        for pid, name in processes.items()
    }, later / turns * 1e3


async def everything_is_embedded(system: WholeSystem) -> None:
    """Wait until the memory has no exchange left to embed. Raises `TimeoutError`."""
    async with asyncio.timeout(EMBEDDED_SECONDS):
        while True:
            participants = (await system.client.get("/health")).json()["participants"]
            (memory,) = (each for each in participants if each["name"] == "memory")
            if not memory["counters"].get("embeddings_pending"):
                return
            await asyncio.sleep(LAST_SECONDS)


async def seconds_at_rest(pids: Iterable[int], seconds: float) -> dict[int, float]:
    """What each process takes in so many seconds."""
    before = _spent(pids)
    await asyncio.sleep(seconds)
    return {pid: spent - before[pid] for pid, spent in _spent(pids).items()}


def _spent(pids: Iterable[int]) -> dict[int, float]:
    return {pid: process_seconds(pid) for pid in pids}
