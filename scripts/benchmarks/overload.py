"""More queries than LoCAL2 can answer, at an even pace: how long those wait for LoCAL2 itself that it takes on, and
whether the others are told when to come again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from statistics import quantiles

import httpx

from benchmarks.figure import BenchmarkFailed, Figure
from benchmarks.local_server import SECONDS
from benchmarks.whole_system import DEFAULT, order, whole_system

QUERIES_PER_SECOND = 120
LOAD_SECONDS = 20.0
MOST_SECONDS = 5.0  # max_wait_seconds of api.yaml
LEAST = 100
OK, TOO_MANY = 200, 429
ANSWERED, REFUSED, SILENT = "answered", "refused with 429 and Retry-After", "refused without Retry-After"
NOT_CONNECTED, OTHERS = "without a connection within a minute", "with another answer"


async def run() -> list[Figure]:
    """The wait is from the first byte of a query to the moment at which the model server hears of it."""
    posted: dict[str, float] = {}
    async with whole_system(DEFAULT) as system:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(
            base_url=system.system.api_url, timeout=SECONDS, trust_env=False, limits=limits
        ) as client:
            asked = [order(tokens=8, n=n) for n in range(int(QUERIES_PER_SECOND * LOAD_SECONDS))]
            statuses = await asyncio.gather(*(_ask(client, n, query, posted) for n, query in enumerate(asked)))
        heard = await system.model_log()
    taken = [query for query, said in zip(asked, statuses, strict=True) if said == ANSWERED]
    if len(taken) < LEAST:
        raise BenchmarkFailed(f"of {len(asked)} queries too few were answered: {dict(Counter(statuses))}")
    waits = quantiles((heard[query] - posted[query] for query in taken), n=100)
    what = f"overload: {QUERIES_PER_SECOND} queries/s for {LOAD_SECONDS:g} s"
    return [
        Figure(f"{what}, answered", len(taken), ""),
        *(Figure(f"overload:   {status}", statuses.count(status), "") for status in (REFUSED, NOT_CONNECTED)),
        *(Figure(f"overload:   {status}", statuses.count(status), "", limit=0) for status in (SILENT, OTHERS)),
        Figure("overload:   wait for LoCAL2 itself of those answered, p50", waits[49], "s"),
        Figure("overload:   p90", waits[89], "s", limit=MOST_SECONDS),
        Figure("overload:   p99", waits[98], "s"),
    ]


async def _ask(client: httpx.AsyncClient, number: int, query: str, posted: dict[str, float]) -> str:
    """At its time, each in a session of its own; gives what became of it."""
    await asyncio.sleep(number / QUERIES_PER_SECOND)
    posted[query] = time.time()
    try:
        answer = await client.post("/query", json={"query": query})
    except httpx.TransportError:
        return NOT_CONNECTED
    if answer.status_code == TOO_MANY:
        return REFUSED if int(answer.headers.get("retry-after", 0)) else SILENT
    return ANSWERED if answer.status_code == OK else OTHERS
