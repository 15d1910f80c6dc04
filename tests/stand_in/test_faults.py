"""Each fault does what it is named for, as often as asked, and the log tells."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import ollama
import pytest

from local.stand_in.server import StandInSettings

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


async def test_a_status_fault_strikes_as_often_as_asked_and_no_more(http: httpx.AsyncClient) -> None:
    await inject(http, "status", status=503, body={"error": "server busy"}, times=2)
    for _ in range(2):
        answer = await http.post("/api/chat", json=PARIS)
        assert (answer.status_code, answer.json()) == (503, {"error": "server busy"})
    assert (await streamed(http))[-1]["done"]


async def test_a_fault_can_skip_requests_and_choose_them_by_path_and_text(http: httpx.AsyncClient) -> None:
    await inject(http, "status", skip=1, match="France")
    await inject(http, "status", path="/api/show")
    other = {**PARIS, "messages": [{"role": "user", "content": "hello"}]}
    assert (await streamed(http, other))[-1]["done"]
    assert (await streamed(http))[-1]["done"]
    assert (await http.post("/api/chat", json=PARIS)).status_code == 500
    assert (await http.post("/api/show", json={"model": GEMMA})).status_code == 500
    assert (await http.post("/api/show", json={"model": GEMMA})).status_code == 200


async def test_deleted_faults_do_not_strike(http: httpx.AsyncClient) -> None:
    await inject(http, "status", times=99)
    await http.delete("/stand_in/fault")
    assert (await http.post("/api/chat", json=PARIS)).status_code == 200


async def test_an_end_without_done(http: httpx.AsyncClient) -> None:
    await inject(http, "eof", after=2)
    assert [part["done"] for part in await streamed(http)] == [False, False]
    await inject(http, "eof", after=9999)
    assert not any(part["done"] for part in await streamed(http))


async def test_an_error_line_in_the_middle_of_a_stream_is_what_the_ollama_client_raises(
    http: httpx.AsyncClient, url: str
) -> None:
    await inject(http, "error_line", after=1, message="model runner has crashed")
    async with ollama.AsyncClient(url, trust_env=False) as client:
        with pytest.raises(ollama.ResponseError, match="model runner has crashed"):
            _ = [part async for part in await client.chat(GEMMA, PARIS["messages"], stream=True)]  # type: ignore[arg-type]
    await inject(http, "error_line", message="model runner has crashed")
    whole = await http.post("/api/chat", json={**PARIS, "stream": False})
    assert (whole.status_code, whole.json()) == (500, {"error": "model runner has crashed"})


async def test_half_a_line_and_a_garbage_line(http: httpx.AsyncClient) -> None:
    await inject(http, "half_line", after=1)
    first, half = (await http.post("/api/chat", json=PARIS)).text.splitlines()
    assert json.loads(first)
    with pytest.raises(json.JSONDecodeError):
        json.loads(half)
    await inject(http, "garbage", after=1)
    lines = (await http.post("/api/chat", json=PARIS)).text.splitlines()
    assert "garbage" in lines[1]
    assert json.loads(lines[-1])["done"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_dropped_connection(http: httpx.AsyncClient, stream: bool) -> None:
    await inject(http, "disconnect", after=1)
    with pytest.raises(httpx.RemoteProtocolError):
        await http.post("/api/chat", json={**PARIS, "stream": stream})
    assert (await http.post("/api/chat", json=PARIS)).status_code == 200


@pytest.mark.parametrize(("style", "opening"), [("think", "<think>"), ("channel", "<|channel>thought\n")])
async def test_thinking_leaks_into_the_content_with_its_tags_cut_across_chunks(
    http: httpx.AsyncClient, style: str, opening: str
) -> None:
    await inject(http, "think_tags", style=style)
    parts = await streamed(http)
    assert content(parts).startswith(opening)
    assert content(parts).endswith("The capital of France is Paris.")
    assert not any("thinking" in part["message"] for part in parts)
    assert parts[0]["message"]["content"] != opening


async def test_a_call_as_text_an_empty_turn_and_a_flood(http: httpx.AsyncClient, tool: Callable[..., Json]) -> None:
    news = {"model": GEMMA, "messages": [{"role": "user", "content": "latest news"}], "tools": [tool("web_search")]}
    await inject(http, "call_as_text")
    assert json.loads(content(await streamed(http, news))) == {
        "name": "web_search",
        "arguments": {"query": "latest news"},
    }
    await inject(http, "empty")
    parts = await streamed(http, news)
    assert content(parts) == ""
    assert not any("tool_calls" in part["message"] for part in parts)
    await inject(http, "flood", tokens=500)
    parts = await streamed(http)
    assert parts[-1]["eval_count"] >= 500


async def test_the_same_call_again_after_its_result(http: httpx.AsyncClient, tool: Callable[..., Json]) -> None:
    call = {"function": {"name": "web_search", "arguments": {"query": "x"}}}
    messages = [
        {"role": "user", "content": "latest news"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "web_search", "content": "Nothing new."},
    ]
    await inject(http, "repeat_call")
    parts = await streamed(http, {"model": GEMMA, "messages": messages, "tools": [tool("web_search")]})
    again = [part["message"]["tool_calls"] for part in parts if "tool_calls" in part["message"]]
    assert again[0][0]["function"]["arguments"] == {"query": "x"}


async def test_delays_before_and_between_chunks_are_in_the_counts(http: httpx.AsyncClient) -> None:
    await inject(http, "first_token_delay", seconds=0.03)
    await inject(http, "chunk_delay", seconds=0.01)
    parts = await streamed(http)
    assert parts[-1]["prompt_eval_duration"] >= 30_000_000
    assert parts[-1]["eval_duration"] >= (len(parts) - 1) * 10_000_000


async def test_a_client_that_leaves_stops_the_generation_and_the_log_says_so(http: httpx.AsyncClient) -> None:
    await inject(http, "flood", tokens=100_000)
    await inject(http, "chunk_delay", seconds=0.001)
    async with http.stream("POST", "/api/chat", json=PARIS) as answer:
        async for _ in answer.aiter_lines():
            break
    (logged,) = (await http.get("/stand_in/log?idle=1", timeout=30)).json()["requests"]
    assert logged["started_at"] < logged["disconnected_at"] <= logged["finished_at"]
    assert 0 < logged["chunks"] < 100_000
    assert logged["faults"] == ["chunk_delay", "flood"] or logged["faults"] == ["flood", "chunk_delay"]


async def test_a_client_that_leaves_a_fast_stream_stops_it_too(http: httpx.AsyncClient) -> None:
    await inject(http, "flood", tokens=1_000_000)
    async with http.stream("POST", "/api/chat", json=PARIS) as answer:
        async for _ in answer.aiter_raw():
            break
    (logged,) = (await http.get("/stand_in/log?idle=1", timeout=30)).json()["requests"]
    assert logged["disconnected_at"]
    assert logged["chunks"] < 1_000_000


async def test_the_log_holds_what_was_sent(http: httpx.AsyncClient, tool: Callable[..., Json]) -> None:
    sent = {**PARIS, "tools": [tool("web_search")], "options": {"num_ctx": 2000}, "think": False, "truncate": False}
    await streamed(http, sent)
    answer = (await http.get("/stand_in/log?idle=1")).json()
    (logged,) = answer["requests"]
    assert {key: logged[key] for key in sent} == sent
    assert (logged["path"], logged["status"], logged["disconnected_at"]) == ("/api/chat", 200, None)
    assert logged["started_at"] <= logged["finished_at"] <= answer["now"]


async def test_refused_requests_are_logged_with_their_status(http: httpx.AsyncClient) -> None:
    await inject(http, "status", status=503)
    for body in (PARIS, {**PARIS, "model": "llama9"}, {**PARIS, "options": {"num_predict": "many"}}):
        assert (await http.post("/api/chat", json=body)).is_error
    logged = (await http.get("/stand_in/log?idle=1")).json()["requests"]
    assert [entry["status"] for entry in logged] == [503, 404, 400]


async def test_a_kept_connection_does_not_wait_for_delayed_acknowledgements(http: httpx.AsyncClient) -> None:
    async def seconds() -> float:
        started = time.monotonic()
        await streamed(http)
        return time.monotonic() - started

    took = sorted([await seconds() for _ in range(40)])
    assert took[10] < 0.040  # every answer would wait that long; a busy machine does not slow down all of them


async def test_the_log_is_bounded(serving: Any) -> None:
    async with (
        serving(StandInSettings(log_size=2)) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http,
    ):
        for _ in range(3):
            await streamed(http)
        assert [entry["number"] for entry in (await http.get("/stand_in/log")).json()["requests"]] == [2, 3]


async def test_one_at_a_time_means_that_answers_do_not_overlap_and_a_client_that_leaves_gives_way(serving: Any) -> None:
    settings = StandInSettings(served_at_once=1, latency_seconds=0.02)
    async with serving(settings) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http:
        both = await asyncio.gather(streamed(http), streamed(http))
        assert max(parts[-1]["load_duration"] for parts in both) >= 20_000_000
        await inject(http, "first_token_delay", seconds=60)
        async with asyncio.TaskGroup() as tasks:
            stuck = tasks.create_task(streamed(http))
            await http.get("/stand_in/log?begun=3")
            waiting = tasks.create_task(streamed(http))
            stuck.cancel()
            assert (await asyncio.wait_for(waiting, 30))[-1]["done"]


async def test_stopping_breaks_off_what_is_under_way(serving: Any) -> None:
    async with serving(StandInSettings()) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http:
        await inject(http, "flood", tokens=100_000)
        await inject(http, "chunk_delay", seconds=0.01)
        context = http.stream("POST", "/api/chat", json=PARIS)
        answer = await context.__aenter__()
        lines = answer.aiter_lines()
        await anext(lines)
    with pytest.raises(httpx.HTTPError):
        _ = [line async for line in lines]
    await context.__aexit__(None, None, None)
