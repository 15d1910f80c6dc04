"""GET /events: the bus as server-sent events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from local.api import bus_stream
from local.api.bus_stream import BusWatch, as_event
from local.api.http import ServerEvent
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.core.errors import BusNotReady

System = Any  # of conftest.py
Read = Any


def envelope(number: int = 1, payload: bytes = b'{"a":1}') -> Envelope:
    return Envelope("tool.result.dice", f"e{number}", "dice", "i", number, "q", payload)


def data_of(event: ServerEvent) -> Any:
    return json.loads(event.data)


async def watched(client: httpx.AsyncClient, events_of: Read, url: str, until: str) -> list[Any]:
    async with client.stream("GET", url) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        asking = asyncio.create_task(client.post("/query", json={"query": "tool please", "query_id": "q"}))
        seen = []
        async for _, _, data in events_of(response):
            seen.append(data)
            if data["subject"] == until:
                break
        await asking
    return seen


async def test_everything_on_the_bus_is_seen_with_header_and_payload(
    client: httpx.AsyncClient, events_of: Read
) -> None:
    seen = await watched(client, events_of, "/events", until="response.generation")
    result = next(one for one in seen if one["subject"] == "tool.result.dice")
    assert (result["sender"], result["correlation_id"], result["payload"]["result"]) == ("generator", "q", "4")
    assert {"query.received", "query.accepted", "generation.token"} <= {one["subject"] for one in seen}


async def test_only_the_subjects_asked_for_are_sent_and_each_once(client: httpx.AsyncClient, events_of: Read) -> None:
    url = "/events?subject=tool.&subject=tool.result.&subject=response.generation"
    seen = await watched(client, events_of, url, until="response.generation")
    assert [one["subject"] for one in seen] == ["tool.request.dice", "tool.result.dice", "response.generation"]


async def test_a_wrong_subject_is_refused(client: httpx.AsyncClient) -> None:
    for subject in ["Tool", "a..b", "a b", ".", "x" * 300]:
        refused = await client.get("/events", params={"subject": subject})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")


async def test_without_payloads_an_event_has_the_header_and_the_size_and_each_has_the_envelope_s_id(
    client: httpx.AsyncClient, events_of: Read
) -> None:
    async with client.stream("GET", "/events?subject=tool.&payload=none") as response:
        asking = asyncio.create_task(client.post("/query", json={"query": "tool please", "query_id": "q"}))
        _, number, data = await anext(events_of(response))
        await asking
    assert (data["subject"], data["id"], "payload" in data) == ("tool.request.dice", number, False)
    assert data["size"] > 20
    assert (await client.get("/events?payload=some")).status_code == 422


async def test_a_client_that_leaves_leaves_no_subscription(client: httpx.AsyncClient, system: System) -> None:
    # The bus itself receives all statuses, so only a subject of its own shows whether one is left.
    frame = envelope()._replace(subject="only.here").encode()

    def listeners() -> int:
        return sum(transport.wants(frame) for transport in system.hub.transports)

    async with system.client() as watcher, watcher.stream("GET", "/events?subject=only.here"):
        assert listeners() == 1
    async with asyncio.timeout(90):
        while listeners():
            await client.get("/participants")


async def test_by_head_a_stream_ends_with_its_head_and_the_connection_goes_on(
    client: httpx.AsyncClient, system: System
) -> None:
    frame = envelope()._replace(subject="only.here").encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", system.port)
    lines = b" HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n" % system.port
    async with asyncio.timeout(90):
        writer.write(b"HEAD /events?subject=only.here" + lines + b"\r\n")
        told = await reader.readuntil(b"\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 200") and b"content-type: text/event-stream" in told
        while any(transport.wants(frame) for transport in system.hub.transports):
            await client.get("/participants")
        writer.write(b"GET /sessions" + lines + b"connection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.transport.abort()


async def test_a_stopping_frontend_ends_the_stream(system: System) -> None:
    async with system.client() as client:
        async with system.frontend():
            stream = client.stream("GET", "/events?subject=only.here")
            response = await stream.__aenter__()
        assert await asyncio.wait_for(response.aread(), 90) == b": subscribed\n\n: keep-alive\n\n"
        await stream.__aexit__(None, None, None)


async def test_without_a_bus_there_is_no_stream(
    client: httpx.AsyncClient, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_ready(*_: Any) -> None:
        raise BusNotReady("memory:", 0.0)

    monkeypatch.setattr(Bus, "ready", not_ready)
    refused = await client.get("/events")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "bus_not_ready")


async def test_a_slow_client_is_told_how_much_it_lost_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_stream, "MAX_WAITING", 2)
    watch = BusWatch()
    for number in range(1, 6):
        watch.receive(envelope(number))
    taken = watch.take() + watch.take()
    watch.receive(envelope(6))
    events = taken + watch.take()
    assert [data_of(event).get("seq", data_of(event).get("lost")) for event in events] == [1, 2, 3, 6]
    assert events[2].name == "lost"


async def test_a_chunk_is_bounded_and_nothing_is_left_behind() -> None:
    watch = BusWatch()
    for number in range(1, 101):
        watch.receive(envelope(number, json.dumps({"text": "x" * 5_000}).encode()))
    chunks = []
    while chunk := watch.take():
        chunks.append(chunk)
    assert len(chunks) > 5 and max(sum(len(event.data) for event in chunk) for chunk in chunks) < 75_000
    assert sum(map(len, chunks)) == 100


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (b'{"a":\n1}', {"a": 1}),
        (b"no json\n\n", "no json\n\n"),
        (b"\xff", "�"),
        (b'{"a":NaN}', '{"a":NaN}'),
        (b'{"a":1e999}', {"a": None}),
    ],
)
def test_whatever_the_payload_is_the_event_is_one_line_of_json(payload: bytes, shown: Any) -> None:
    event = as_event(envelope(payload=payload))
    assert b"\n" not in event.data
    assert data_of(event)["payload"] == shown
