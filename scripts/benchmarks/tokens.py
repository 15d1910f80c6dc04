"""Streamed tokens: how late the first one is at a client of the server-sent events, what each further one costs."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from statistics import median, quantiles
from typing import Any

from benchmarks.cpu_time import cpu_seconds
from benchmarks.figure import BenchmarkFailed, Figure, alternate
from benchmarks.whole_system import WholeSystem, order, whole_system

FIRST_TOKENS = 100
MANY = 5_000
SOME = 500
ROUNDS = 5
PAYERS = ("generator", "proxy", "api")
STAMPED = order(tokens=2, pause=0.005, stamp=1)
PAUSE = 0.002
SSE = {"Accept": "text/event-stream"}


async def run() -> list[Figure]:
    """CPU time is the difference between a long and a short stream, so that it holds the tokens alone."""
    async with whole_system() as system:
        late = [await _first_token_ms(system) for _ in range(FIRST_TOKENS + 10)][10:]
        pids = await system.pids()
        payers = [pids[name] for name in PAYERS]
        back_to_back = [_cost(system, payers, count, burst=1) for count in (MANY, 1)]
        spaced_out = [_cost(system, payers, count, pause=PAUSE) for count in (SOME, 1)]
        costs = await alternate(ROUNDS, *back_to_back, *spaced_out)
    many, one, spaced, spaced_one = (median(each) * 1e6 for each in costs)
    return [
        Figure("tokens: the first one arrives late by, p50", median(late), "ms", limit=3),
        Figure("tokens: the first one arrives late by, p95", quantiles(late, n=20)[-1], "ms"),
        Figure("tokens: CPU of each further one, back to back", (many - one) / (MANY - 1), "µs", limit=100),
        Figure("tokens: CPU of each further one, every 2 ms", (spaced - spaced_one) / (SOME - 1), "µs"),
    ]


async def _first_token_ms(system: WholeSystem) -> float:
    late = None
    async for name, data in _events(system, STAMPED):
        if name == "token" and late is None:
            late = time.monotonic_ns() - int(data["text"])
    if late is None:
        raise BenchmarkFailed("a stream of POST /query held no token")
    return late / 1e6


def _cost(system: WholeSystem, payers: list[int], tokens: int, **how: float) -> Callable[[], Awaitable[float]]:
    query = {"query": order(tokens=tokens, **how)}
    last = f"word{tokens - 1} ".encode()

    async def measure() -> float:
        before = cpu_seconds(payers)
        async with system.client.stream("POST", "/query", json=query, headers=SSE) as response:
            streamed = b"".join([chunk async for chunk in response.aiter_raw()])
        if last not in streamed:
            raise BenchmarkFailed(f"a stream of POST /query lacks the last of its {tokens} tokens")
        return cpu_seconds(payers) - before

    return measure


async def _events(system: WholeSystem, query: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    async with system.client.stream("POST", "/query", json={"query": query}, headers=SSE) as response:
        name = ""
        async for line in response.aiter_lines():
            if line.startswith("event:"):
                name = line.removeprefix("event:").strip()
            elif line.startswith("data:"):
                yield name, json.loads(line.removeprefix("data:"))
