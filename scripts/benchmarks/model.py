"""The model side: what our clients cost beside bare httpx, and how soon a cancel is noticed."""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.figure import BenchmarkFailed, Figure, alternate
from benchmarks.peer import Peer, Pipe
from local.models.chat import ChatModel, ContentDelta
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel
from tests.stand_in.server import StandInSettings, serve

SYSTEM_TESTS = Path(__file__).resolve().parents[2] / "tests" / "system"
MODEL = "gemma4:12b"
MESSAGES = ({"role": "user", "content": "Talk."},)
MANY, FEW = 4_000, 1_000
ROUNDS = 5
WORD = "word"
LIMITS: dict[str, Any] = {"first_token_seconds": 60.0, "between_tokens_seconds": 60.0, "timeout_seconds": 60.0}
BODY = {"model": MODEL, "messages": MESSAGES, "stream": True}
CANCELS = 20
NOTICED_BY = {
    "thinking": "the model server while it thinks",
    "content": "the model server while it speaks",
    "tool": "a tool",
}

Talk = Callable[[], Awaitable[int]]


async def run() -> list[Figure]:
    """The clients first, on the stand-in alone; then the cancels, on the whole system."""
    async with Peer(serve_stand_in) as server:
        ollama = OllamaModel(server.greeting, **LIMITS)
        figures = await _cost("OllamaModel", ollama, server.greeting, "/api/chat", {"think": False})
        openai = OpenAIModel(f"{server.greeting}/v1", **LIMITS)
        path = "/v1/chat/completions"
        figures += await _cost("OpenAIModel", openai, server.greeting, path, {"reasoning_effort": "none"})
    return figures + await asyncio.to_thread(_cancels)


def serve_stand_in(pipe: Pipe) -> None:
    """The model server's process; its first word is its address."""
    sock = socket.create_server(("127.0.0.1", 0))
    pipe.send(f"http://127.0.0.1:{sock.getsockname()[1]}")
    asyncio.run(serve(StandInSettings(), sock))


async def _cost(name: str, model: ChatModel, url: str, path: str, extra: dict[str, Any]) -> list[Figure]:
    """CPU time of this process for a token: the difference between a long and a short answer, so that it holds the
    tokens alone. Bare httpx reads the same bytes and looks at none of them."""
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:

        async def ours() -> int:
            async with aclosing(model.chat(MODEL, MESSAGES)) as deltas:
                return sum([delta.text.count(WORD) async for delta in deltas if isinstance(delta, ContentDelta)])

        async def bare() -> int:
            async with http.stream("POST", path, json=BODY | extra) as response:
                return b"".join([data async for data in response.aiter_raw()]).count(WORD.encode())

        talks = [_timed(http, talk, tokens) for talk in (ours, bare) for tokens in (MANY, FEW)]
        await alternate(1, *talks)  # to warm up
        many, few, bare_many, bare_few = (median(each) * 1e6 for each in await alternate(ROUNDS, *talks))
    await model.close()
    token, bare_token = (many - few) / (MANY - FEW), (bare_many - bare_few) / (MANY - FEW)
    return [
        Figure(f"model: {name}, CPU of a token beside bare httpx", token, "µs", bare_token),
        Figure(f"model: {name}, what it adds", token - bare_token, "µs", limit=15),
    ]


def _timed(http: httpx.AsyncClient, talk: Talk, tokens: int) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        (await http.post("/stand_in/fault", json={"kind": "flood", "tokens": tokens})).raise_for_status()
        before = time.process_time()
        heard = await talk()
        seconds = time.process_time() - before
        if heard != tokens:
            raise BenchmarkFailed(f"of an answer of {tokens} tokens {heard} were heard")
        return seconds

    return measure


def _cancels() -> list[Figure]:
    sys.path.insert(0, str(SYSTEM_TESTS))
    harness = importlib.import_module("cancel_harness")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, harness.running(Path(folder)) as stage:
        measured = {phase: [stage.seconds_until_noticed(phase) * 1e3 for _ in range(CANCELS)] for phase in NOTICED_BY}
    return [figure for phase, ms in measured.items() for figure in _cancel_figures(NOTICED_BY[phase], ms)]


def _cancel_figures(who: str, ms: Sequence[float]) -> list[Figure]:
    return [
        Figure(f"model: a cancel is noticed by {who}, p50", median(ms), "ms"),
        Figure(f"model: a cancel is noticed by {who}, at most", max(ms), "ms", limit=200),
    ]
