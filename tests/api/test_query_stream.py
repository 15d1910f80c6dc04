"""A query as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from local.api.queries import NO_TRAIL, JudgementWindow, StreamSettings, batches, number_after, query_chunks
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import GenerationToken, ParticipantStatus, ResponseGeneration
from local.critic.messages import CritiqueResult, PairwiseResult
from local.queries.asker import LiveQuery
from local.queries.view import QueryView
from local.runtime.participant import on
from tests.api.hand_played import HandPlayed

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
    async with system.frontend() as client, ask(client, "hold on") as response:
        numbers = [number async for _, number, _ in until("token", events_of(response))]
    seen = {"last-event-id": numbers[-1]}
    async with system.frontend() as client, client.stream("GET", "/query/q/events", headers=seen) as response:
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


class Critic(HandPlayed):
    """Grades every answer, and compares it when the other one has arrived."""

    name = "critic"

    def __init__(self, details: dict[str, str]) -> None:
        super().__init__()
        self.other_is_there = asyncio.Event()
        self._details = details

    def details(self) -> dict[str, str]:
        return self._details

    @on(ResponseGeneration)
    async def grade(self, response: ResponseGeneration, envelope: Envelope) -> PairwiseResult:
        critique = CritiqueResult(query_id=response.query_id, score=4, status="graded")
        await self.bus.publish(critique, envelope.trace())
        await self.other_is_there.wait()
        return PairwiseResult(query_id=response.query_id, winner="A", status="graded")


async def hears_of(client: httpx.AsyncClient, bus: Bus, *names: str) -> None:
    """Wait until the API has received statuses of these as separate processes."""
    for pid, name in enumerate(names, 1):
        await bus.publish(ParticipantStatus(name=name, kind="agent", pid=pid, instance="i", state="ready"))
    await lists(client, *names)


async def lists(client: httpx.AsyncClient, *names: str) -> None:
    """Wait until the API lists these."""
    while set(names) - {row["name"] for row in (await client.get("/participants")).json()["participants"]}:
        pass


@asynccontextmanager
async def judged(system: System, *others: str, **details: str) -> AsyncIterator[tuple[httpx.AsyncClient, Critic]]:
    """An API with a long trail, which has received the status of a critic with these details, and of these others."""
    critic = Critic(details)
    async with system.frontend(trail_seconds=120) as client, system.bus("watcher") as bus, system.host(critic):
        await bus.ready()
        await hears_of(client, bus, *others)
        await lists(client, "critic")
        try:
            yield client, critic
        finally:
            critic.other_is_there.set()


async def test_the_stream_waits_for_the_critic_if_there_is_one(system: System, events_of: Read) -> None:
    async with asyncio.timeout(90), judged(system) as (client, _), ask(client, "hello") as response:
        names = [name for name, _, _ in await collected(events_of(response))]
    assert names[-2:] == ["response", "critique"]


async def test_the_stream_waits_for_the_comparison_where_a_second_respondent_is_there(
    system: System, events_of: Read
) -> None:
    async with (
        asyncio.timeout(90),
        judged(system, "generator_b") as (client, critic),
        ask(client, "hello") as response,
    ):
        events = events_of(response)
        assert [name async for name, _, _ in until("critique", events)][-2:] == ["response", "critique"]
        await client.post("/feedback", json={"query_id": "q", "rating": -1, "comment": "No."})
        name, _, data = await anext(events)
        assert (name, data["rating"], data["comment"]) == ("feedback", -1, "No.")
        critic.other_is_there.set()
        assert [name for name, _, _ in await collected(events)] == ["pairwise"]


async def test_a_client_that_comes_back_after_the_answer_goes_on_to_wait_for_the_scores(
    system: System, events_of: Read
) -> None:
    async with asyncio.timeout(90), judged(system, "generator_b") as (client, critic):
        async with ask(client, "hello") as response:
            seen = [number async for _, number, _ in until("critique", events_of(response))]
        async with client.stream("GET", "/query/q/events", headers={"last-event-id": seen[-1]}) as response:
            assert response.status_code == 200
            critic.other_is_there.set()
            assert [name for name, _, _ in await collected(events_of(response))] == ["pairwise"]
        done = await client.get("/query/q/events", headers={"last-event-id": seen[-1][:-1] + "8"})
        assert done.status_code == 204


@pytest.mark.parametrize("judges", ["critique", ""])
async def test_what_the_critic_does_not_judge_is_not_waited_for(system: System, events_of: Read, judges: str) -> None:
    judging = judged(system, "generator_b", judges=judges)
    async with asyncio.timeout(90), judging as (client, _), ask(client, "hello") as response:
        names = [name for name, _, _ in await collected(events_of(response))]
    assert "response" in names and "pairwise" not in names


async def test_a_stopping_frontend_ends_the_streams_that_wait_for_scores(system: System, events_of: Read) -> None:
    async with asyncio.timeout(90), system.bus("watcher") as bus, system.client() as client, AsyncExitStack() as stack:
        await bus.ready()
        async with system.frontend(trail_seconds=60):
            await hears_of(client, bus, "critic")
            events = events_of(await stack.enter_async_context(ask(client, "hello")))
            assert [name async for name, _, _ in until("response", events)][-1] == "response"
        assert await collected(events) == []  # a proper end, and not a connection that is cut


async def test_the_trail_of_an_answer_that_nobody_judges_in_time_is_as_long_as_it_may_be() -> None:
    clock = asyncio.get_running_loop().time
    query = LiveQuery(QueryView("q", "why?", "s"), clock)
    answer = ResponseGeneration(query_id="q", status="answered", query="why?", answer="Because.")
    query.receive(answer, Envelope(answer.subject, "e", "g", "i", 1, "q", answer.encode(), sent_at=1000.0))
    began, now, awaited = clock(), 1000.0, frozenset({"critique"})

    async def told() -> list[str]:
        trail = JudgementWindow(0.05, lambda: awaited, lambda: now + clock() - began)
        return [event.kind async for batch in batches(query, 0, tick_seconds=60, trail=trail) for event in batch]

    assert await told() == ["response"]
    assert clock() - began >= 0.05
    now = 2000.0
    async with asyncio.timeout(90):  # an answer of long ago has no trail any more
        assert await told() == ["response"]


async def test_a_trail_ends_when_whoever_was_awaited_has_gone() -> None:
    query = LiveQuery(QueryView("q", "why?", "s"), asyncio.get_running_loop().time)
    answer = ResponseGeneration(query_id="q", status="answered", query="why?", answer="Because.")
    query.receive(answer, Envelope(answer.subject, "e", "g", "i", 1, "q", answer.encode(), sent_at=1000.0))
    awaited = frozenset({"critique"})
    trail = JudgementWindow(60, lambda: awaited, lambda: 1000.0)
    async with asyncio.timeout(90):
        count = 0
        async for _ in batches(query, 0, tick_seconds=0.01, trail=trail):
            count += 1
            if count == 3:
                awaited = frozenset()
    assert count == 3


async def test_an_idle_stream_is_kept_alive_by_comments(system: System) -> None:
    async with system.frontend(keep_alive_seconds=0.01) as client, ask(client, "hold on") as response:
        text = ""
        async for part in response.aiter_text():
            text += part
            if text.count(": keep-alive\n\n") > 1:
                break


async def test_a_stream_of_a_stopping_frontend_ends_with_an_error(system: System, events_of: Read) -> None:
    async with system.client() as client:
        async with system.frontend():
            stream = ask(client, "hold on")
            response = await stream.__aenter__()
            events = events_of(response)
            assert (await anext(events))[0] == "accepted"
        name, _, data = (await collected(events))[-1]
        await stream.__aexit__(None, None, None)
    assert (name, data["error"]["kind"]) == ("error", "stopping")


async def test_events_that_are_ready_together_are_one_chunk() -> None:
    query = LiveQuery(QueryView("q", "why?", "s"), asyncio.get_running_loop().time)
    for index in range(100):
        token = GenerationToken(query_id="q", index=index, text="x\n")
        query.receive(token, Envelope(token.subject, "e", "g", "i", 1, "q", token.encode()))
    chunks = query_chunks(query, 0, StreamSettings("i", NO_TRAIL, 60))
    assert (await anext(chunks)).count(b"\n\n") == 100
    await chunks.aclose()


def test_a_last_event_id_is_only_believed_if_it_is_ours() -> None:
    for last_event_id, number in [
        (None, 0),
        ("", 0),
        ("me-7", 7),
        ("other-7", None),
        ("me-x", None),
        ("7", None),
        ("me-²", None),
        ("me-" + "9" * 99, None),
    ]:
        assert number_after(last_event_id, "me") == number
