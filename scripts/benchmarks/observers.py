"""What a user waits longer because the system learns: turns with all observers, and with none, on a busy model.

The model is the stand-in, serves one call at a time and takes 0.35 s for it. The user reads for a while between two
turns, so that a question meets the critic, the classifier or the second respondent in the middle of a call. The two
systems take turns; what counts is the median of the pairs.
"""

from __future__ import annotations

import asyncio
import socket
import time
from argparse import Namespace
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any

import httpx

from benchmarks.figure import BenchmarkFailed, Figure, alternate
from benchmarks.local_server import client_of
from benchmarks.peer import Peer, Pipe
from benchmarks.whole_system import running
from tests.stand_in.server import StandInSettings, serve

MODEL_SECONDS = 0.35
PAIRS = 5
WARM_UP, TURNS = 3, 20
READ_SECONDS = (0.2, 1.0)
MAX_ADDED_PERCENT = 5.0
LOG_SIZE = 10_000
MODEL = "gemma4:12b"
BARE = ("arbiter", "generator", "web_search", "web_fetch")
OBSERVERS = ("memory", "search_memory", "critic", "compare_answers", "reward")
COUNTRIES = ("France", "Italy", "Spain", "Germany", "Poland", "Austria", "Norway", "Sweden", "Japan", "Greece")


@dataclass(frozen=True, slots=True)
class Talk:
    """One system's: seconds of each of the user's turns, and the model's calls for anybody else during them."""

    seconds: list[float]
    background_calls: int

    @property
    def turn(self) -> float:
        """The median, in seconds."""
        return median(self.seconds)


async def run(options: Namespace) -> list[Figure]:
    """Five pairs, without and with. Raises `BenchmarkFailed` if the observers did nothing."""
    flags = ["--respondent-b"] if options.respondent_b else []
    without, having = await alternate(PAIRS, lambda: _talk(BARE, []), lambda: _talk((*BARE, *OBSERVERS), flags))
    calls = median(talk.background_calls for talk in having)
    if not calls or any(talk.background_calls for talk in without):
        raise BenchmarkFailed("the observers did not ask the model, or something else did")
    added = [100 * (after.turn / before.turn - 1) for before, after in zip(without, having, strict=True)]
    who = "observers and a second respondent" if options.respondent_b else "observers"
    turns = [median(talk.turn for talk in talks) * 1e3 for talks in (having, without)]
    return [
        Figure(f"observers: a user's turn with {who}, p50", turns[0], "ms", turns[1]),
        Figure("observers: added to it, median of five pairs", median(added), "%", limit=MAX_ADDED_PERCENT),
        Figure("observers:   in the worst pair", max(added), "%"),
        Figure(f"observers: their calls of the model beside {TURNS} turns", calls, "calls"),
    ]


def serve_model(pipe: Pipe) -> None:
    """The model server's process; its first word is its address."""
    sock = socket.create_server(("127.0.0.1", 0))
    pipe.send(f"http://127.0.0.1:{sock.getsockname()[1]}")
    asyncio.run(serve(StandInSettings(latency_seconds=MODEL_SECONDS, served_at_once=1), sock, log_size=LOG_SIZE))


async def _talk(participants: tuple[str, ...], flags: list[str]) -> Talk:
    """Start a system, talk to it as one user in one session, and stop it."""
    async with (
        Peer(serve_model) as model,
        running(_settings(model.greeting, participants), *flags) as url,
        client_of(url) as user,
        client_of(model.greeting) as log,
    ):
        return await _measure(user, log)


async def _measure(user: httpx.AsyncClient, log: httpx.AsyncClient) -> Talk:
    random, seconds = Random(1), list[float]()
    for number in range(WARM_UP + TURNS):
        if number == WARM_UP:
            await log.delete("/stand_in/log")
        await asyncio.sleep(random.uniform(*READ_SECONDS))
        started = time.perf_counter()
        await _ask(user, f"What is the capital of {COUNTRIES[number % len(COUNTRIES)]}?")
        seconds.append(time.perf_counter() - started)
    calls = (await log.get("/stand_in/log")).json()["requests"]
    return Talk(seconds[WARM_UP:], len(calls) - TURNS)


async def _ask(user: httpx.AsyncClient, query: str) -> None:
    """One turn with one call of the model. Raises `BenchmarkFailed`."""
    response = await user.post("/query", json={"query": query, "session_id": "bench"})
    answer: dict[str, Any] = response.json()
    if response.is_error or answer["tool_calls"]:
        raise BenchmarkFailed(f"{query}: HTTP {response.status_code}: {response.text[:200]}")


def _settings(model_url: str, participants: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {"system": {"backend": "ollama", "ollama_url": model_url, "participants": list(participants)},
            "generator": {"model": MODEL}}  # fmt: skip
