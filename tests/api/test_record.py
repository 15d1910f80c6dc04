"""The guarantees of the API that are based on the record: acceptance, idempotency over restarts, and deletion."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from local.bus.envelope import Trace
from local.bus.messages import QueryCancel, QueryReceived, ResponseGeneration
from local.core.errors import StoreFull
from local.journal.messages import JournalRedact, JournalRedacted
from local.journal.store import JournalStore, JournalView

System = Any  # of conftest.py
Read = Any
SSE = {"accept": "text/event-stream"}


def on_record(system: System, subject: str, query_id: str = "q") -> int:
    with JournalView(system.journal_file) as journal:
        return len(journal.read(limit=10, subjects=[subject], correlation_id=query_id))


@pytest.mark.parametrize("headers", [{}, SSE], ids=["202", "stream"])
async def test_a_query_is_accepted_only_when_it_is_on_record(bare_system: System, headers: dict[str, str]) -> None:
    body = {"query": "hello", "query_id": "q", "wait": bool(headers)}
    async with bare_system.bus("watcher") as bus, bare_system.frontend() as client:
        asked: asyncio.Queue[Any] = asyncio.Queue()
        bus.subscribe(QueryReceived.subject, asked.put_nowait, repeats=True)
        await bus.ready()
        asking = asyncio.create_task(
            client.send(client.build_request("POST", "/query", json=body, headers=headers), stream=True)
        )
        first, again = await asked.get(), await asked.get()
        assert first.id == again.id
        assert not asking.done()
        async with bare_system.journal():
            response = await asking
            assert response.status_code == (200 if headers else 202)
            assert on_record(bare_system, QueryReceived.subject) == 1
            await response.aclose()


async def test_a_full_disk_refuses_new_queries_and_those_that_run_finish_when_there_is_room(
    system: System, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = asyncio.create_task(client.post("/query", json={"query": "hold on", "query_id": "q"}))
    await system.generator.heard.wait()
    with monkeypatch.context() as full:
        full.setattr(JournalStore, "commit", _has_no_room)
        refused = await client.post("/query", json={"query": "hello", "query_id": "new"})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (507, "journal_full")
        system.generator.release.set()
    assert (await running).json()["answer"] == "Hi there."
    assert (await client.post("/query", json={"query": "hello", "query_id": "new"})).status_code == 200


async def _has_no_room(*_: object) -> None:
    raise StoreFull("the disk is full")


async def test_a_cancel_is_on_record_when_it_is_answered(client: httpx.AsyncClient, system: System) -> None:
    await client.post("/query", json={"query": "hold on", "query_id": "q", "wait": False})
    assert (await client.post("/query/q/cancel")).status_code == 202
    assert on_record(system, QueryCancel.subject) == 1


async def test_while_the_generator_is_away_a_query_is_open_and_its_answer_is_on_record(bare_system: System) -> None:
    async with bare_system.journal(), bare_system.frontend() as client:
        await client.post("/query", json={"query": "hello", "query_id": "new", "session_id": "s", "wait": False})
    async with bare_system.journal(), bare_system.frontend() as client:
        expected = {"query_id": "new", "session_id": "s", "query": "hello", "status": "open"}
        assert (await client.get("/query/new")).json() == expected
        async with bare_system.host(bare_system.generator):
            answer = (await client.post("/query", json={"query": "hello", "query_id": "new"})).json()
    assert (answer["answer"], answer["session_id"]) == ("Hi there.", "s")
    async with bare_system.journal(), bare_system.frontend() as client:
        assert (await client.get("/query/new")).json() == {**answer, "events": [], "event_log": []}
        again = (await client.post("/query", json={"query": "hello", "query_id": "new"})).json()
        assert (again["answer"], again["session_id"]) == ("Hi there.", "s")


async def test_known_ids_are_told_from_new_ones_while_the_generator_is_away(bare_system: System) -> None:
    async with bare_system.journal(), bare_system.frontend() as client:
        await client.post("/query", json={"query": "hello", "query_id": "q", "wait": False})
    async with bare_system.journal(), bare_system.frontend() as client:
        refused = await client.post("/query", json={"query": "something else", "query_id": "q", "wait": False})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict")
        known = await client.post("/query", json={"query": "hello", "query_id": "q", "wait": False})
        assert known.status_code == 202


async def test_an_event_id_of_an_earlier_frontend_gets_the_answer_that_was_given_meanwhile(
    system: System, events_of: Read
) -> None:
    async with system.frontend() as client:
        asking = client.stream("POST", "/query", json={"query": "hold on", "query_id": "q"}, headers=SSE)
        async with asking as response:
            _, number, _ = await anext(events_of(response))
    async with system.bus("watcher") as bus:
        answered = asyncio.Event()
        bus.subscribe(ResponseGeneration.subject, lambda _: answered.set())
        await bus.ready()
        system.generator.release.set()
        await answered.wait()
    seen = {"last-event-id": number}
    async with system.frontend() as client, client.stream("GET", "/query/q/events", headers=seen) as response:
        events = [(name, data) async for name, _, data in events_of(response)]
    assert [name for name, _ in events] == ["snapshot", "response"]
    assert events[-1][1]["answer"] == "Hi there."
    assert list(system.generator.turns) == ["q"]


ANSWERED = "Hi there."


async def redact(system: System, answer: str = ANSWERED) -> None:
    """Have the journal remove an answer, as when a memory is deleted that it rests on."""
    async with system.bus("memory") as bus:
        await bus.ready()
        assert (await bus.request(JournalRedact(mentioned=f'"answer":"{answer}"'), JournalRedacted, 5)).count


async def all_frontends(client: httpx.AsyncClient) -> list[httpx.Response]:
    """Everything that can be asked of the query "hello" with the id q."""
    return [
        await client.get("/query/q"),
        await client.post("/query", json={"query": "hello", "query_id": "q"}),
        await client.get("/query/q/events"),
        await client.post("/query/q/cancel"),
        await client.post("/feedback", json={"query_id": "q", "rating": 1}),
    ]


async def test_an_answer_that_the_journal_has_lost_with_a_memory_is_given_as_the_generator_has_it(
    system: System,
) -> None:
    async with system.frontend() as client:
        await client.post("/query", json={"query": "hello", "query_id": "q", "session_id": "s"})
    await redact(system)
    async with system.frontend() as client:
        answer, again, events, cancelled, rated = await all_frontends(client)
    assert (answer.json()["answer"], answer.json()["session_id"]) == (ANSWERED, "s")
    assert (again.json()["answer"], again.json()["session_id"]) == (ANSWERED, "s")
    assert ANSWERED in events.text
    assert cancelled.json()["status"] == "answered"
    assert rated.status_code == 202


async def test_one_that_the_generator_has_lost_too_is_deleted(system: System) -> None:
    async with system.frontend() as client:
        await client.post("/query", json={"query": "hello", "query_id": "q"})
    await redact(system)
    system.generator.turns.clear()
    async with system.frontend() as client:
        for response in await all_frontends(client):
            assert (response.status_code, response.json()["error"]["kind"]) == (410, "deleted")


async def test_a_query_is_open_also_where_another_respondents_answer_was_removed(system: System) -> None:
    async with system.frontend() as client, system.bus("generator_b") as bus:
        await client.post("/query", json={"query": "hold on", "query_id": "q", "wait": False})
        theirs = ResponseGeneration(
            query_id="q", respondent_id="B", status="answered", query="hold on", answer="Oh, hello."
        )
        await bus.ready()
        await bus.publish(theirs, Trace("q"))
    await redact(system, "Oh, hello.")
    async with system.frontend() as client:
        assert (await client.get("/query/q")).json()["status"] == "open"
        system.generator.release.set()
        answer = await client.post("/query", json={"query": "hold on", "query_id": "q"})
    assert answer.json()["answer"] == ANSWERED


async def test_a_deleted_query_is_gone_and_its_id_is_not_used_again(system: System) -> None:
    async with system.frontend() as client:
        await client.post("/query", json={"query": "hello", "query_id": "q", "session_id": "s1"})
        assert (await client.delete("/sessions/s1")).status_code == 200
        async with system.bus("generator") as bus:
            await bus.ready()
            redacted = await bus.request(JournalRedact(session_id="s1"), JournalRedacted, 5, Trace("q"))
        assert redacted.count
        for response in (
            await client.get("/query/q"),
            await client.post("/query/q/cancel"),
            await client.get("/query/q/events"),
            await client.post("/query", json={"query": "hello", "query_id": "q"}),
            await client.post("/query", json={"query": "hello", "query_id": "q", "wait": False}),
        ):
            assert (response.status_code, response.json()["error"]["kind"]) == (410, "deleted")
