"""One run of random chaos: users ask, processes die, and at the end the judge speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chaos_harness.driver import Blow, Driver
from chaos_harness.evidence import gather
from chaos_harness.history import Asked
from chaos_harness.judge import Violation, judge
from chaos_harness.load import Users, ask_as_many_users, client_of
from chaos_harness.system import ChaosSystem

PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a run was and what was found."""

    asked: Sequence[Asked]
    struck: Sequence[Blow]
    violations: Sequence[Violation]


async def random_chaos(system: ChaosSystem, users: Users, *, every: float, goes_on: Callable[[int], bool]) -> Result:
    """Hit somebody every so many seconds for as long as users ask; a user asks while `goes_on(asked so far)`."""
    asked: list[Asked] = []
    driver = Driver(system.victims_that_bear_it, system.hang_seconds, system.count_strike)
    async with client_of(system.api_url, PATIENCE) as client:
        async with asyncio.TaskGroup() as tasks:
            driving = tasks.create_task(driver.run(users.seed, every), name="chaos driver")
            await ask_as_many_users(client, users, goes_on, asked.append)
            driving.cancel()
        return Result(asked, driver.struck, judge(await gather(system, client, asked)))
