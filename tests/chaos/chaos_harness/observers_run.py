"""One run with observers: users ask and rate, processes die until all is done, and at the end both judges speak."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chaos_harness.driver import Blow, Driver
from chaos_harness.evidence import gather
from chaos_harness.history import Asked
from chaos_harness.judge import Violation, judge
from chaos_harness.load import Users, ask_as_many_users, client_of
from chaos_harness.observers_evidence import violations_at_the_end
from chaos_harness.ratings import Raters
from chaos_harness.system import ChaosSystem

PATIENCE = 30.0
SECONDS_FOR_A_QUERY = 1.0  # at most, until everybody has dealt with it


@dataclass(frozen=True, slots=True)
class Result:
    """What a run was and what both judges found. `settled_seconds` passed from the last blow until all was done."""

    asked: Sequence[Asked]
    ratings: int
    struck: Sequence[Blow]
    settled_seconds: float
    violations: Sequence[Violation]


async def observed_chaos(
    system: ChaosSystem, users: Users, *, every: float, faults: int, goes_on: Callable[[int], bool]
) -> Result:
    """Hit somebody every so many seconds until users have asked and so many were hit; see `random_chaos`."""
    asked: list[Asked] = []
    driver = Driver(system.victims_that_bear_it, system.hang_seconds, system.count_strike)
    async with client_of(system.api_url, PATIENCE) as client:
        async with asyncio.TaskGroup() as tasks, Raters(client) as raters:

            def told(each: Asked) -> None:
                asked.append(each)
                raters.hear(each)

            driving = tasks.create_task(driver.run(users.seed, every), name="chaos driver")
            await ask_as_many_users(client, users, goes_on, told)
            await driver.until(faults)
            driving.cancel()
        found = judge(await gather(system, client, asked))
        patience = PATIENCE + SECONDS_FOR_A_QUERY * len(asked)
        found += await violations_at_the_end(system.data_dir, client, asked, raters, patience)
    settled_seconds = time.monotonic() - driver.struck[-1].at
    return Result(asked, sum(map(len, raters.given.values())), driver.struck, settled_seconds, found)
