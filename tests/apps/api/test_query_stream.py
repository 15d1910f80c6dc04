"""A query as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.apps.api.query_stream import StreamSettings, number_after, query_chunks
from local.apps.exchange import Exchange
from local.config import Settings
from local.protocol.envelope import Envelope
from local.protocol.judgement_messages import CritiqueResult
from local.protocol.messages import GenerationToken, ResponseGeneration
from local.runtime.participant import Participant, on

System = Any  # of conftest.py
Read = Any
SSE = {"accept": "text/event-stream"}


def ask(client: httpx.AsyncClient, query: str, last: str = "") -> Any:
    headers = SSE | ({"last-event-id": last} if last else {})
    return client.stream("POST", "/query", json={"query": query, "query_id": "q"}, headers=headers)


async def until(last: str, events: AsyncIterator[tuple[str, str, Any]]) -> AsyncIterator[tuple[str, str, Any]]:
    async for event in events:
        yield event
        if event[0] == last:
            return


async def collected(events: AsyncIterator[tuple[str, str, Any]]) -> list[tuple[str, str, Any]]:
    return [event async for event in events]


async def test_events_come_in_order_and_the_last_is_the_whole_answer(
    client: httpx.AsyncClient, events_of: Read
) -> None:
    async with ask(client, "tool please") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert (response.headers["cache-control"], response.headers["x-accel-buffering"]) == ("no-store", "no")
        events = await collected(events_of(response))
    names = [name for name, _, _ in events]
    assert names == ["accepted", "state", "thinking", "tool_call", "tool_result", "token", "token", "response"]
    assert [number.rpartition("-")[2] for _, number, _ in events] == [str(n) for n in range(1, 9)]
    whole = (await client.post("/query", json={"query": "tool please", "query_id": "q"})).json()
    assert events[-1][2] == whole


async def test_a_token_is_sent_as_soon_as_it_is_there(
    client: httpx.AsyncClient, events_of: Read, system: System
) -> None:
    async with ask(client, "hold on") as response:
        events = events_of(response)
        text = [data["text"] async for name, _, data in until("token", events) if name == "token"]
        assert text == ["Hi "]
        system.generator.release.set()
        assert [name for name, _, _ in await collected(events)] == ["token", "response"]


async def test_a_stream_is_resumed_after_the_last_event_that_was_seen(
    client: httpx.AsyncClient, events_of: Read, system: System
) -> None:
    async with ask(client, "hold on") as response:
        numbers = [number async for _, number, _ in until("thinking", events_of(response))]
    system.generator.release.set()
    async with ask(client, "hold on", last=numbers[-1]) as response:
        assert [name for name, _, _ in await collected(events_of(response))] == ["token", "token", "response"]


async def test_an_event_source_resumes_by_get_and_is_told_when_it_has_everything(
    client: httpx.AsyncClient, events_of: Read
) -> None:
    await client.post("/query", json={"query": "hello", "query_id": "q"})
    async with client.stream("GET", "/query/q/events", headers=SSE) as response:
        events = await collected(events_of(response))
    assert [name for name, _, _ in events] == ["accepted", "state", "thinking", "token", "token", "response"]
    done = await client.get("/query/q/events", headers={"last-event-id": events[-1][1]})
    assert done.status_code == 204
    assert (await client.get("/query/never/events")).status_code == 404


async def test_a_resumed_stream_of_an_earlier_process_begins_with_a_snapshot(system: System, events_of: Read) -> None:
    async with system.door() as client, ask(client, "hold on") as response:
        numbers = [number async for _, number, _ in until("token", events_of(response))]
    seen = {"last-event-id": numbers[-1]}
    async with system.door() as client, client.stream("GET", "/query/q/events", headers=seen) as response:
        events = events_of(response)
        name, _, data = await anext(events)
        assert (name, data["complete"]) == ("snapshot", False)
        system.generator.release.set()
        assert (await collected(events))[-1][2]["answer"] == "Hi there."
    assert list(system.generator.turns) == ["q"]


async def test_a_refusal_before_the_stream_is_an_http_status(client: httpx.AsyncClient) -> None:
    for query, status in (("busy", 429), (" ", 422)):
        async with ask(client, query) as response:
            assert response.status_code == status
            assert "error" in json.loads(await response.aread())


async def test_a_query_cancelled_in_line_ends_the_stream_with_an_error(
    client: httpx.AsyncClient, events_of: Read
) -> None:
    async with ask(client, "queued") as response:
        events = events_of(response)
        assert (await anext(events))[0] == "accepted"
        await client.post("/query/q/cancel")
        [(name, _, data)] = await collected(events)
    assert (name, data["error"]["kind"]) == ("error", "cancelled")


async def test_a_failed_turn_ends_the_stream_with_what_there_is(client: httpx.AsyncClient, events_of: Read) -> None:
    async with ask(client, "fail now") as response:
        name, _, data = (await collected(events_of(response)))[-1]
    assert (name, data["status"], data["error"]["kind"]) == ("response", "failed", "model_error")


class Critic(Participant):
    """Grades every answer."""

    name = "critic"

    def __init__(self) -> None:
        super().__init__(Settings())

    @on(ResponseGeneration)
    async def grade(self, response: ResponseGeneration, envelope: Envelope) -> CritiqueResult:
        return CritiqueResult(query_id=response.query_id, score=4, status="graded")


async def test_the_stream_waits_for_the_critic_if_there_is_one(system: System, events_of: Read) -> None:
    async with system.door(trail_seconds=20) as client, system.bus("watcher") as bus, asyncio.timeout(10):
        beat = asyncio.Event()
        bus.subscribe("participant.status", lambda envelope: envelope.sender == "critic" and beat.set())
        await bus.ready()
        async with system.host(Critic()):
            await beat.wait()
            await client.get("/health")  # by now the door has heard that beat, too
            async with ask(client, "hello") as response:
                names = [name for name, _, _ in await collected(events_of(response))]
    assert names[-2:] == ["response", "critique"]


async def test_an_idle_stream_is_kept_alive_by_comments(system: System) -> None:
    async with system.door(keep_alive_seconds=0.01) as client, ask(client, "hold on") as response:
        text = ""
        async for part in response.aiter_text():
            text += part
            if text.count(": keep-alive\n\n") > 1:
                break


async def test_a_stream_of_a_stopping_door_ends_with_an_error(system: System, events_of: Read) -> None:
    async with system.client() as client:
        async with system.door():
            stream = ask(client, "hold on")
            response = await stream.__aenter__()
            events = events_of(response)
            assert (await anext(events))[0] == "accepted"
        name, _, data = (await collected(events))[-1]
        await stream.__aexit__(None, None, None)
    assert (name, data["error"]["kind"]) == ("error", "stopping")


async def test_events_that_are_ready_together_are_one_chunk() -> None:
    exchange = Exchange("q", "s", "why?", asyncio.get_running_loop().time)
    for index in range(100):
        token = GenerationToken(query_id="q", index=index, text="x\n")
        exchange.receive(token, Envelope(token.subject, "e", "g", "i", 1, "q", token.encode()))
    chunks = query_chunks(exchange, 0, StreamSettings("i", 0, 60))
    assert (await anext(chunks)).count(b"\n\n") == 100
    await chunks.aclose()


@pytest.mark.parametrize(
    ("last_event_id", "number"),
    [
        (None, 0),
        ("", 0),
        ("me-7", 7),
        ("other-7", None),
        ("me-x", None),
        ("7", None),
        ("me-²", None),
        ("me-" + "9" * 99, None),
    ],
)
def test_a_last_event_id_is_only_believed_if_it_is_ours(last_event_id: str | None, number: int | None) -> None:
    assert number_after(last_event_id, "me") == number
