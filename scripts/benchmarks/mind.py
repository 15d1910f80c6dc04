"""What a user waits longer because LoCAL2 has a mind of its own: turns with reflection and 20 jobs, and with neither.

The model is the stand-in, serves one call at a time and takes 0.35 s for it. The user reads for a while between two
turns; meanwhile a job falls due every second or so, and the routines of reflection are told in turn that it is time.
The two systems take turns; what counts is the median of the pairs.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from itertools import cycle
from random import Random
from statistics import median
from typing import Any, NamedTuple

import httpx

from benchmarks.figure import BenchmarkFailed, Figure, alternate
from benchmarks.local_server import client_of
from benchmarks.observers import COUNTRIES, MAX_ADDED_PERCENT, READ_SECONDS, serve_model
from benchmarks.peer import Peer
from benchmarks.whole_system import running

PAIRS = 5
WARM_UP, TURNS = 3, 20
MODEL = "gemma4:12b"
BARE = ("arbiter", "generator", "web_search", "web_fetch", "files", "memory", "memory_tools")
MIND = ("cron", "reflection")
JOBS, JOBS_SECONDS = 20, 1.2  # between two of them
NOW_SECONDS = 1.5
ROUTINES = {"dreams": "dreams", "monologue": "thought", "goals": "is_done"}  # each with a key of its model's replies
GOALS = ("Finish the thesis", "Learn the cello")
YIELD_SECONDS = 0.15  # in which a background call has made way
USERS_WORDS = "What is the capital of"
ALWAYS = {
    "dream_every_hours": 0.0001, "dream_idle_minutes": 0.0, "dream_least_exchanges": 1,
    "dream_tokens_per_day": 10_000_000, "monologue": True, "monologue_every_minutes": 0.001,
    "monologue_idle_minutes": 0.0, "monologue_tokens_per_day": 10_000_000, "heartbeat_idle_minutes": 0.0,
    "heartbeat_tokens_per_day": 10_000_000,
}  # fmt: skip


class Span(NamedTuple):
    """Seconds of the monotonic clock, which is the same for all processes."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Talk:
    """One system's: when the user waited, and when the model was busy with calls for nobody."""

    waits: Sequence[Span]
    background: Sequence[Span]

    @property
    def turn(self) -> float:
        """The median, in seconds."""
        return median(wait.end - wait.begin for wait in self.waits)

    @property
    def running_on(self) -> int:
        """How many calls for nobody ran while the user waited, but for those that made way at once."""
        late = [Span(wait.begin + YIELD_SECONDS, wait.end) for wait in self.waits]
        return sum(any(call.begin < wait.end and call.end > wait.begin for wait in late) for call in self.background)

    @property
    def making_way(self) -> list[float]:
        """The seconds from a question to the end of each call that it has broken off."""
        return [
            call.end - wait.begin
            for wait in self.waits
            for call in self.background
            if call.begin < wait.begin < call.end < wait.end
        ]


async def run() -> list[Figure]:
    """Five pairs, without and with. Raises `BenchmarkFailed` if nothing was done in the background."""
    without, having = await alternate(PAIRS, lambda: _talk(is_minded=False), lambda: _talk(is_minded=True))
    calls = median(len(talk.background) for talk in having)
    if calls < JOBS or any(talk.background for talk in without):
        raise BenchmarkFailed(f"{calls} calls in the background, and {[len(talk.background) for talk in without]}")
    added = sorted(100 * (after.turn / before.turn - 1) for before, after in zip(without, having, strict=True))
    making_way = [seconds for talk in having for seconds in talk.making_way]
    turns = [median(talk.turn for talk in talks) * 1e3 for talks in (having, without)]
    return [
        Figure("mind: a user's turn with reflection and 20 jobs, p50", turns[0], "ms", turns[1]),
        Figure("mind: added to it, median of five pairs", median(added), "%", limit=MAX_ADDED_PERCENT),
        Figure("mind:   in the best pair", added[0], "%"),
        Figure("mind:   in the worst pair", added[-1], "%"),
        Figure("mind: calls for nobody while a user waits", sum(talk.running_on for talk in having), "calls", limit=0),
        Figure(f"mind: calls for nobody beside {TURNS} turns", calls, "calls"),
        Figure("mind:   of them broken off by a question", len(making_way) / PAIRS, "calls"),
        Figure("mind:   until one of those had made way, median", median(making_way) * 1e3, "ms"),
    ]


async def _talk(*, is_minded: bool) -> Talk:
    """Start a system, talk to it as one user in one session, and stop it."""
    async with (
        Peer(serve_model) as model,
        running(_settings(model.greeting, (*BARE, *(MIND if is_minded else ())))) as url,
        client_of(url) as user,
        client_of(url) as owner,
        client_of(model.greeting) as log,
    ):
        await _turns(user, 0, WARM_UP)
        async with _mind(owner) if is_minded else nullcontext():
            await log.delete("/stand_in/log")
            waits = await _turns(user, WARM_UP, TURNS)
        requests = (await log.get("/stand_in/log")).json()["requests"]
    background = [each for each in requests if not _is_the_user_s(each)]
    if is_minded:
        _require_all(background)
    return Talk(waits, [_span(each) for each in background])


def _require_all(background: Sequence[dict[str, Any]]) -> None:
    """Raises `BenchmarkFailed` if a routine has not asked the model."""
    asked_for = [set((each["format"] or {}).get("properties", ())) for each in background]
    print("mind:", {name: sum(key in keys for keys in asked_for) for name, key in ROUTINES.items()}, file=sys.stderr)
    for name, key in ROUTINES.items():
        if not any(key in keys for keys in asked_for):
            raise BenchmarkFailed(f"{name}: the model was not asked")


async def _turns(user: httpx.AsyncClient, first: int, count: int) -> list[Span]:
    random, waits = Random(first), list[Span]()
    for number in range(first, first + count):
        await asyncio.sleep(random.uniform(*READ_SECONDS))
        begin = time.monotonic()
        query = f"{USERS_WORDS} {COUNTRIES[number % len(COUNTRIES)]}?"
        response = await user.post("/query", json={"query": query, "session_id": "bench"})
        waits.append(Span(begin, time.monotonic()))
        if response.is_error or response.json()["tool_calls"]:
            raise BenchmarkFailed(f"{query}: HTTP {response.status_code}: {response.text[:200]}")
    return waits


@asynccontextmanager
async def _mind(owner: httpx.AsyncClient) -> AsyncIterator[None]:
    """Make the jobs and the goals, and have each routine told all the while that it is time."""
    for number in range(JOBS):
        when = f"in {2 + int(number * JOBS_SECONDS)}s"
        await _posted(owner, "/cron", {"prompt": f"Job {number}: thank you.", "schedule": when})
    for goal in GOALS:
        await _posted(owner, "/goals", {"text": goal})
    telling = asyncio.create_task(_tell(owner), name="tell routines that it is time")
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])


async def _tell(owner: httpx.AsyncClient) -> None:
    for name in cycle(ROUTINES):
        await _posted(owner, f"/{name}/now", None)
        await asyncio.sleep(NOW_SECONDS)


async def _posted(owner: httpx.AsyncClient, path: str, body: dict[str, Any] | None) -> None:
    if (response := await owner.post(path, json=body)).is_error:
        raise BenchmarkFailed(f"POST {path}: HTTP {response.status_code}: {response.text[:200]}")


def _is_the_user_s(request: dict[str, Any]) -> bool:
    """Whether the user waits for a call: a question of theirs is the last that is said, and not one among others."""
    return str(request["messages"][-1]["content"]).startswith(USERS_WORDS)


def _span(request: dict[str, Any]) -> Span:
    end = request["finished_at"] or request["disconnected_at"] or time.monotonic()
    return Span(request["started_at"], end)


def _settings(model_url: str, participants: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {
        "system": {"backend": "ollama", "ollama_url": model_url, "participants": list(participants)},
        "generator": {"model": MODEL},
        "memory": {"classify": False},
        "reflection": ALWAYS,
    }
