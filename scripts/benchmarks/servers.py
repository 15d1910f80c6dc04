"""Two hundred users of three model servers, which answer two calls at once each, beside the same users of one: answers
a second, how many turns are asked at their conversation's server, and what a server's death costs."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import accumulate

import httpx

from benchmarks.figure import Figure
from benchmarks.model_server import MODEL, serve
from benchmarks.peer import Peer
from benchmarks.whole_system import Settings, order, running

USERS = 200
MODEL_SECONDS, SLOTS = 0.35, 2
QUERIES_PER_SECOND = 16.0  # what three servers can answer, and one cannot
TURNS = 3  # of each user
MOST_SECONDS = 120.0  # for an answer
AFTER_DEATH = 100  # queries
MORE, AT_HOME = 2.5, 0.95  # times the answers, and the share of turns


async def run() -> list[Figure]:
    """Queries are sent at random times by random users, whether those before them are answered or not."""
    async with _system(1) as (client, _):
        one = await _load(client, USERS * TURNS, waits=False)
    async with _system(3) as (client, peers):
        three = await _load(client, USERS * TURNS)
        at_home = await _share_at_home(client)
        await peers[0].__aexit__(None, None, None)
        bereft = await _load(client, AFTER_DEATH)
    what = f"servers: {USERS} users, {QUERIES_PER_SECOND:g} queries/s"
    return [
        Figure(f"{what}, answers of three beside one", three.rate, "1/s", one.rate, ratio_limit=MORE, at_least=True),
        Figure("servers:   turns that failed", three.failed, "", limit=0),
        Figure("servers:   turns at their conversation's server", at_home, "", limit=AT_HOME, at_least=True),
        Figure(
            f"servers:   turns that failed of {AFTER_DEATH} after one of three was killed", bereft.failed, "", limit=0
        ),
    ]


@dataclass(slots=True)
class _Answers:
    """What became of queries: `rate` is answers a second while they were sent."""

    rate: float = 0.0
    why: Counter[str] = field(default_factory=Counter)  # they failed

    @property
    def failed(self) -> int:
        """How many failed."""
        return self.why.total()


async def _load(client: httpx.AsyncClient, queries: int, *, waits: bool = True) -> _Answers:
    answers, answered = _Answers(), 0

    chance = random.Random(queries)
    times = list(accumulate(chance.expovariate(QUERIES_PER_SECOND) for _ in range(queries)))

    async def ask(number: int, user: int) -> None:
        nonlocal answered
        await asyncio.sleep(times[number])
        body = {"query": order(tokens=8, wait=MODEL_SECONDS, n=number), "session_id": f"user-{user}"}
        try:
            response = await client.post("/query", json=body)
            answered += response.is_success
            why = "" if response.is_success else response.text[:200]
        except httpx.HTTPError as error:
            why = repr(error)
        if why:
            answers.why[why] += 1

    asking = [asyncio.create_task(ask(number, chance.randrange(USERS))) for number in range(queries)]
    await asyncio.sleep(times[-1])
    answers.rate = answered / times[-1]
    for task in asking if not waits else ():
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=not waits)
    for why, count in answers.why.items():
        print(f"servers: {count} times: {why}", file=sys.stderr)
    return answers


async def _share_at_home(client: httpx.AsyncClient) -> float:
    """The share of the turns that were asked where most turns of their conversation were."""
    rows = (await client.get("/usage?by=session&by=server")).json()["rows"]
    answers: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        answers[row["session"]].append(row["answers"])
    return sum(map(max, answers.values())) / sum(map(sum, answers.values()))


@asynccontextmanager
async def _system(servers: int) -> AsyncIterator[tuple[httpx.AsyncClient, list[Peer]]]:
    async with AsyncExitStack() as stack:
        peers = [Peer(serve, SLOTS) for _ in range(servers)]
        urls = [(await stack.enter_async_context(peer)).greeting for peer in peers]
        url = await stack.enter_async_context(running(_settings(urls)))
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        client = httpx.AsyncClient(base_url=url, timeout=MOST_SECONDS, limits=limits, trust_env=False)
        yield await stack.enter_async_context(client), peers


def _settings(urls: list[str]) -> Settings:
    named = dict(zip("abc", urls, strict=False))
    providers = {name: {"kind": "ollama", "url": url, "start": False} for name, url in named.items()}
    group = {"of": [f"{name}/{MODEL}" for name in named], "slots": dict.fromkeys(named, SLOTS)}
    return {
        "system": {"participants": ["arbiter", "generator"]},
        "models": {"providers": providers, "groups": {"chat": group}},
        "generator": {"think": False, "make_titles": False},
        "api": {"max_wait_seconds": None},
    }
