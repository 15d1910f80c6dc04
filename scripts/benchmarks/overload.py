"""More queries than LoCAL2 can answer, at an even pace: how long those wait for LoCAL2 itself that it takes on, and
whether the others are told when to come again."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from statistics import quantiles
from urllib.parse import urlsplit

from benchmarks.figure import BenchmarkFailed, Figure
from benchmarks.whole_system import DEFAULT, order, whole_system

QUERIES_PER_SECOND = 120
LOAD_SECONDS = 20.0
MOST_SECONDS = 5.0  # max_wait_seconds of api.yaml
LEAST = 100
OK, TOO_MANY = b"http/1.1 200 ", b"http/1.1 429 "
ANSWERED, REFUSED, SILENT = "answered", "refused with 429 and Retry-After", "refused without Retry-After"
NOT_CONNECTED, OTHERS = "whose connection failed", "with another answer"


async def run() -> list[Figure]:
    """The wait is from the last byte of a query to the moment at which the model server hears of it."""
    posted: dict[str, float] = {}
    async with whole_system(DEFAULT) as system:
        asked = [order(tokens=8, n=n) for n in range(int(QUERIES_PER_SECOND * LOAD_SECONDS))]
        address = urlsplit(system.system.api_url).netloc
        statuses = await asyncio.gather(*(_ask(address, n, query, posted) for n, query in enumerate(asked)))
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


async def _ask(address: str, number: int, query: str, posted: dict[str, float]) -> str:
    """At its time, each in a session and on a connection of its own, which costs little beside what is asked; gives
    what became of it."""
    body = json.dumps({"query": query})
    head = f"POST /query HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
    host, port = address.rsplit(":", 1)
    await asyncio.sleep(number / QUERIES_PER_SECOND)
    try:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        posted[query] = time.time()
        answer = (await reader.read()).lower()
        writer.close()
    except OSError:
        return NOT_CONNECTED
    if answer.startswith(TOO_MANY):
        return REFUSED if b"\r\nretry-after: " in answer else SILENT
    return ANSWERED if answer.startswith(OK) else OTHERS
