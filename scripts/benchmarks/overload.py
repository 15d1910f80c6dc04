"""More queries than LoCAL2 can answer, at an even pace: how long those wait for LoCAL2 itself that it takes on, and
whether the others are told when to come again."""

from __future__ import annotations

import asyncio
import time
from statistics import quantiles

import httpx

from benchmarks.figure import BenchmarkFailed, Figure
from benchmarks.local_server import SECONDS
from benchmarks.whole_system import DEFAULT, order, whole_system

QUERIES_PER_SECOND = 120
LOAD_SECONDS = 30.0
MOST_SECONDS = 5.0  # max_wait_seconds of api.yaml
OK, TOO_MANY = 200, 429


async def run() -> list[Figure]:
    """The wait is from the first byte of a query to the moment at which the model server hears of it."""
    posted: dict[str, float] = {}
    async with whole_system(DEFAULT) as system:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(
            base_url=system.system.api_url, timeout=SECONDS, trust_env=False, limits=limits
        ) as client:
            asked = [order(tokens=8, n=n) for n in range(int(QUERIES_PER_SECOND * LOAD_SECONDS))]
            answers = await asyncio.gather(*(_ask(client, n, query, posted) for n, query in enumerate(asked)))
        heard = await system.model_log()
    taken = [query for query, answer in zip(asked, answers, strict=True) if answer.status_code == OK]
    refused = [answer for answer in answers if answer.status_code == TOO_MANY]
    if others := len(answers) - len(taken) - len(refused):
        raise BenchmarkFailed(f"{others} of {len(answers)} queries were neither answered nor refused as too many")
    waits = quantiles((heard[query] - posted[query] for query in taken), n=100)
    silent = sum(int(answer.headers.get("retry-after", 0)) < 1 for answer in refused)
    what = f"overload: {QUERIES_PER_SECOND} queries/s for {LOAD_SECONDS:g} s"
    return [
        Figure(f"{what}, answered", len(taken), ""),
        Figure("overload:   refused with 429", len(refused), ""),
        Figure("overload:   of them without Retry-After", silent, "", limit=0),
        Figure("overload:   wait for LoCAL2 itself of those answered, p50", waits[49], "s"),
        Figure("overload:   p90", waits[89], "s", limit=MOST_SECONDS),
        Figure("overload:   p99", waits[98], "s"),
    ]


async def _ask(client: httpx.AsyncClient, number: int, query: str, posted: dict[str, float]) -> httpx.Response:
    """At its time, each in a session of its own."""
    await asyncio.sleep(number / QUERIES_PER_SECOND)
    posted[query] = time.time()
    return await client.post("/query", json={"query": query})
