"""What the system with its default participants takes while nobody asks anything: CPU and memory of each process."""

from __future__ import annotations

import asyncio

from benchmarks.cpu_cost import seconds_at_rest
from benchmarks.cpu_time import proportional_bytes
from benchmarks.figure import Figure
from benchmarks.whole_system import DEFAULT, order, whole_system
from benchmarks.witness import LAST_OF_OBSERVERS, witness

SETTLE_SECONDS = 5.0
SECONDS = 20.0
MB = 1e6


async def run() -> list[Figure]:
    """After one query, so that everything that comes with the first one is loaded."""
    async with whole_system(DEFAULT) as system:
        async with witness(system.system.facts, *LAST_OF_OBSERVERS) as here:
            await here.observers_are_done([(await system.timed(order(tokens=8))).query_id])
        await asyncio.sleep(SETTLE_SECONDS)
        processes = await system.processes()
        spent = await seconds_at_rest(processes, SECONDS)
        weights = {pid: proportional_bytes(pid) / MB for pid in processes}
    percent = {pid: 100 * seconds / SECONDS for pid, seconds in spent.items()}
    return [
        Figure("idle: all processes, CPU", sum(percent.values()), "%", limit=2),
        *(Figure(f"idle:   {processes[pid]}", value, "%") for pid, value in percent.items()),
        Figure("idle: all processes, PSS", sum(weights.values()), "MB"),
        *(Figure(f"idle:   {processes[pid]}", value, "MB") for pid, value in weights.items()),
    ]
