"""One run with agents: users have tasks done by them, processes die, and at the end both judges report."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

from chaos_harness.agents_judge import Evidence, Journalled
from chaos_harness.agents_judge import judge as judge_agents
from chaos_harness.client import Client
from chaos_harness.driver import Blow, Driver
from chaos_harness.evidence import gather
from chaos_harness.history import Asked, Form, Question
from chaos_harness.judge import Violation, judge
from chaos_harness.load import Users, client_of
from chaos_harness.orders import Order, orders
from chaos_harness.system import ChaosSystem
from local.bus.envelope import decode
from local.bus.messages import QueryReceived, ResponseGeneration
from local.journal.store import JournalView

PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a run was and what was found. `seconds` were spent asking."""

    asked: Sequence[Asked]
    tasks: int
    struck: Sequence[Blow]
    seconds: float
    violations: Sequence[Violation]


async def agents_chaos(system: ChaosSystem, users: Users, *, every: float, goes_on: Callable[[], bool]) -> Result:
    """Hit somebody every so many seconds for as long as users ask."""
    given: list[tuple[Order, Asked]] = []
    driver = Driver(system.victims_that_bear_it, system.hang_seconds, system.count_strike)
    began = time.monotonic()
    async with client_of(system.api_url, PATIENCE) as client:
        async with asyncio.TaskGroup() as tasks, httpx.AsyncClient(base_url=system.model_url, trust_env=False) as model:
            driving = tasks.create_task(driver.run(users.seed, every), name="chaos driver")
            async with asyncio.TaskGroup() as asking:
                for session_id in users.sessions:
                    asking.create_task(_user(client, model, session_id, users.seed, goes_on, given.append))
            driving.cancel()
        seconds = time.monotonic() - began
        found = await _violations(system, client, given)
    return Result(
        [asked for _, asked in given], sum(len(order.tasks) for order, _ in given), driver.struck, seconds, found
    )


async def _user(
    client: Client,
    model: httpx.AsyncClient,
    session_id: str,
    seed: int,
    goes_on: Callable[[], bool],
    told: Callable[[tuple[Order, Asked]], None],
) -> None:
    chance = random.Random(f"{seed} {session_id}")
    for order in orders(session_id):
        if not goes_on():
            return
        (await model.post("/stand_in/script", json=order.script())).raise_for_status()
        question = Question(order.query_id, session_id, order.text, "")
        told((order, await client.ask(question, chance.choice(list(Form)))))


async def _violations(system: ChaosSystem, client: Client, given: Sequence[tuple[Order, Asked]]) -> list[Violation]:
    found = judge(await gather(system, client, [asked for _, asked in given]))
    agents = {order.query_id: await client.agents(order.query_id) for order, _ in given}
    journal = await asyncio.to_thread(_journal, system)
    return [*found, *judge_agents(Evidence(given, journal, agents, system.effects()))]


def _journal(system: ChaosSystem) -> Journalled:
    asked, answers = list[QueryReceived](), list[ResponseGeneration]()
    with JournalView(system.data_dir / "journal.db") as journal:
        for stored in journal.read_all(subjects=[QueryReceived.subject, ResponseGeneration.subject]):
            envelope = decode(stored.entry.frame)
            if envelope.subject == QueryReceived.subject:
                asked.append(QueryReceived.decode(envelope.payload))
            else:
                answers.append(ResponseGeneration.decode(envelope.payload))
    return Journalled(asked, answers)
