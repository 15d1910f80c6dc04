"""Many users at once, each with a session of its own, one question after the other."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx

from chaos_harness.client import Client
from chaos_harness.history import Asked, Form
from chaos_harness.questions import questions

REREADERS = 8


@asynccontextmanager
async def client_of(url: str, patience: float) -> AsyncIterator[Client]:
    """A client of the API at `url`."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    async with httpx.AsyncClient(base_url=url, timeout=patience, limits=limits, trust_env=False) as http:
        yield Client(http, patience)


class Users(NamedTuple):
    """So many users, who take `think_seconds` on average before they ask the next question."""

    sessions: Sequence[str]
    seed: int = 0
    think_seconds: float = 0.0


async def ask_as_many_users(
    client: Client, users: Users, goes_on: Callable[[int], bool], told: Callable[[Asked], None]
) -> None:
    """Each user asks while `goes_on(how many it has asked)`. `told` hears of each query when it has ended."""
    async with asyncio.TaskGroup() as tasks:
        for session_id in users.sessions:
            tasks.create_task(_user(client, session_id, users, goes_on, told))


async def read_everything_again(client: Client, everything: list[Asked]) -> dict[str, list[str]]:
    """Read each outcome in every form again; gives the questions of each session as the system shows them."""
    waiting = (asked for asked in everything if asked.reads)

    async def reread() -> None:
        for asked in waiting:
            await client.read_again(asked)

    async with asyncio.TaskGroup() as readers:
        for _ in range(REREADERS):
            readers.create_task(reread())
    sessions = dict.fromkeys(asked.question.session_id for asked in everything)
    return {session_id: await client.questions_of(session_id) for session_id in sessions}


async def _user(
    client: Client, session_id: str, users: Users, goes_on: Callable[[int], bool], told: Callable[[Asked], None]
) -> None:
    chance = random.Random(f"{users.seed} {session_id}")
    for number, question in enumerate(questions(session_id)):
        if users.think_seconds:
            await asyncio.sleep(chance.expovariate(1 / users.think_seconds))
        if not goes_on(number):
            return
        told(await client.ask(question, chance.choice(list(Form))))
