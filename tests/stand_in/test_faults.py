"""Each fault does what it is named for, as often as asked, and the log tells."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.stand_in.server import StandInSettings

Json = dict[str, Any]

GEMMA = "gemma4:12b"
PARIS = {"model": GEMMA, "messages": [{"role": "user", "content": "What is the capital of France?"}]}


async def inject(http: httpx.AsyncClient, kind: str, **fields: Any) -> None:
    (await http.post("/stand_in/fault", json={"kind": kind, **fields})).raise_for_status()


async def streamed(http: httpx.AsyncClient, body: Json = PARIS) -> list[Json]:
    answer = await http.post("/api/chat", json=body)
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]


def content(parts: list[Json]) -> str:
    return "".join(part["message"]["content"] for part in parts)


async def test_a_fault_can_skip_requests_and_choose_them_by_path_and_text(http: httpx.AsyncClient) -> None:
    await inject(http, "status", skip=1, match="France")
    await inject(http, "status", path="/api/show")
    other = {**PARIS, "messages": [{"role": "user", "content": "hello"}]}
    assert (await streamed(http, other))[-1]["done"]
    assert (await streamed(http))[-1]["done"]
    assert (await http.post("/api/chat", json=PARIS)).status_code == 500
    assert (await http.post("/api/show", json={"model": GEMMA})).status_code == 500
    assert (await http.post("/api/show", json={"model": GEMMA})).status_code == 200


async def test_a_client_that_leaves_stops_the_generation_and_the_log_says_so(http: httpx.AsyncClient) -> None:
    await inject(http, "flood", tokens=100_000)
    await inject(http, "chunk_delay", seconds=0.001)
    async with http.stream("POST", "/api/chat", json=PARIS) as answer:
        async for _ in answer.aiter_lines():
            break
    (logged,) = (await http.get("/stand_in/log?idle=1", timeout=90)).json()["requests"]
    assert logged["started_at"] < logged["disconnected_at"] <= logged["finished_at"]
    assert 0 < logged["chunks"] < 100_000
    assert logged["faults"] == ["chunk_delay", "flood"] or logged["faults"] == ["flood", "chunk_delay"]


async def test_the_log_holds_what_was_sent(http: httpx.AsyncClient, tool: Callable[..., Json]) -> None:
    sent = {**PARIS, "tools": [tool("web_search")], "options": {"num_ctx": 2000}, "think": False, "truncate": False}
    await streamed(http, sent)
    answer = (await http.get("/stand_in/log?idle=1")).json()
    (logged,) = answer["requests"]
    assert {key: logged[key] for key in sent} == sent
    assert (logged["path"], logged["status"], logged["disconnected_at"]) == ("/api/chat", 200, None)
    assert logged["started_at"] <= logged["finished_at"] <= answer["now"]


async def test_one_at_a_time_means_that_answers_do_not_overlap_and_a_client_that_leaves_gives_way(serving: Any) -> None:
    settings = StandInSettings(served_at_once=1)
    async with serving(settings) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=90) as http:
        await inject(http, "first_token_delay", seconds=60)
        async with asyncio.TaskGroup() as tasks:
            stuck = tasks.create_task(streamed(http))
            await http.get("/stand_in/log?begun=1")
            waiting = tasks.create_task(streamed(http))
            await http.get("/stand_in/log?begun=2")
            await asyncio.sleep(0.05)
            stuck.cancel()
            assert (await asyncio.wait_for(waiting, 90))[-1]["load_duration"] >= 20_000_000


async def test_stopping_breaks_off_what_is_under_way(serving: Any) -> None:
    async with serving(StandInSettings()) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=90) as http:
        await inject(http, "flood", tokens=100_000)
        await inject(http, "chunk_delay", seconds=0.01)
        context = http.stream("POST", "/api/chat", json=PARIS)
        answer = await context.__aenter__()
        lines = answer.aiter_lines()
        await anext(lines)
    with pytest.raises(httpx.HTTPError):
        _ = [line async for line in lines]
    await context.__aexit__(None, None, None)
