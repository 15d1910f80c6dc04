"""POST /feedback, and the scores of an answer."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope, Trace, decode
from local.bus.message import Message
from local.bus.messages import ResponseGeneration
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.journal.store import JournalView

System = Any  # of conftest.py
NONE = {"critique": None, "pairwise": None, "rating": None}
CRITIQUE = CritiqueResult(query_id="q", score=4, status="graded", feedback="Brief.")
OF_B = CritiqueResult(query_id="q", respondent_id="B", score=1, status="graded")
PAIRWISE = PairwiseResult(query_id="q", winner="A", order_consistent=True, status="graded")


async def asked(client: httpx.AsyncClient, query: str = "hello") -> None:
    body = {"query": query, "query_id": "q", "session_id": "s", "user_id": "ann"}
    assert (await client.post("/query", json=body)).status_code in (200, 429)


async def rate(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/feedback", json={"query_id": "q", **body})


async def scores(client: httpx.AsyncClient) -> Any:
    return (await client.get("/query/q")).json()["scores"]


def feedback_on_record(system: System) -> list[Envelope]:
    with JournalView(system.journal_file) as journal:
        entries = journal.read(limit=10, subjects=[UserFeedback.subject], correlation_id="q")
        return [decode(stored.entry.frame) for stored in entries]


async def say(system: System, *messages: Message) -> None:
    """Publish them as a critic would; on record when it returns."""
    async with system.bus("critic", journaled=True) as bus:
        await bus.ready()
        for message in messages:
            await bus.publish(message, Trace("q", None, "s"))


async def test_a_rating_is_on_record_when_it_is_answered_with_the_trace_of_what_it_rates(
    client: httpx.AsyncClient, system: System
) -> None:
    await asked(client)
    rated = await rate(client, rating=1, comment="Just so.")
    assert (rated.status_code, rated.json()) == (202, {"query_id": "q", "respondent_id": "A", "rating": 1})
    [envelope] = feedback_on_record(system)
    message = UserFeedback.decode(envelope.payload)
    assert (message.rating, message.comment, message.respondent_id) == (1, "Just so.", "A")
    assert message.rated_at == pytest.approx(envelope.sent_at, abs=5)
    assert (envelope.correlation_id, envelope.session_id, envelope.user_id) == ("q", "s", "ann")


async def test_a_rating_can_be_changed_and_withdrawn_and_each_is_a_message_of_its_own(
    client: httpx.AsyncClient, system: System
) -> None:
    await asked(client)
    for count, rating in enumerate((1, -1, None, -1), 1):
        assert (await rate(client, rating=rating)).status_code == 202
        assert (await scores(client))["rating"] == rating
        assert len(feedback_on_record(system)) == count


@pytest.mark.parametrize("query", ["busy", "fail now"])
async def test_what_was_not_answered_cannot_be_rated(client: httpx.AsyncClient, query: str) -> None:
    await client.post("/query", json={"query": query, "query_id": "q"})
    refused = await rate(client, rating=1)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict")


async def test_an_open_query_cannot_be_rated_nor_an_answer_of_somebody_who_gave_none(
    client: httpx.AsyncClient, system: System
) -> None:
    await client.post("/query", json={"query": "hold on", "query_id": "q", "wait": False})
    assert (await rate(client, rating=1)).status_code == 409
    system.generator.release.set()
    await client.post("/query", json={"query": "hold on", "query_id": "q"})
    assert (await rate(client, rating=1)).status_code == 202
    assert (await rate(client, rating=1, respondent_id="B")).status_code == 409
    await say(system, ResponseGeneration(
        query_id="q", respondent_id="B", status="answered", query="hold on", answer="Hm."
    ))  # fmt: skip
    assert (await rate(client, rating=-1, respondent_id="B")).status_code == 202
    assert (await scores(client))["rating"] == 1


async def test_an_answer_that_is_not_on_record_yet_is_rated_a_little_later(system: System) -> None:
    async with system.frontend() as client:
        await client.post("/query", json={"query": "hold on", "query_id": "q", "session_id": "s", "wait": False})
        answer = ResponseGeneration(query_id="q", status="answered", query="hold on", answer="Hi there.")
        await system.generator.heard.wait()
        system.generator.outcomes["q"] = (answer, Trace("q", None, "s"))  # stored, and not published yet
        refused = await rate(client, rating=1)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "unavailable")
        assert refused.headers["retry-after"]
        await say(system, answer)
    async with system.frontend() as client:  # a second API, which has not received it live
        assert (await rate(client, rating=1)).status_code == 202


async def test_an_unknown_query_cannot_be_rated(client: httpx.AsyncClient) -> None:
    refused = await rate(client, rating=1)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (404, "not_found")


async def test_a_wrong_field_is_422_and_named(client: httpx.AsyncClient) -> None:
    for body, field in [
        ({}, "rating"),
        ({"rating": 0}, "rating"),
        ({"rating": 2}, "rating"),
        ({"rating": True}, "rating"),
        ({"rating": "1"}, "rating"),
        ({"rating": 1, "comment": "x" * 2001}, "comment"),
        ({"rating": 1, "comment": 7}, "comment"),
        ({"rating": 1, "query_id": "a b"}, "query_id"),
        ({"rating": 1, "respondent_id": ""}, "respondent_id"),
        ({"rating": 1, "mood": "good"}, "mood"),
    ]:
        refused = await rate(client, **body)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")
        assert refused.json()["error"]["message"].startswith(field)


async def test_scores_come_with_the_answer_as_soon_as_they_are_on_record(
    client: httpx.AsyncClient, system: System
) -> None:
    await asked(client)
    assert await scores(client) == NONE
    await say(system, OF_B, CRITIQUE, PAIRWISE)
    found = await scores(client)
    assert (found["critique"]["score"], found["critique"]["feedback"]) == (4, "Brief.")
    assert (found["pairwise"]["winner"], found["rating"]) == ("A", None)


async def test_scores_of_an_answer_from_before_this_frontend_are_found_on_record(
    system: System, events_of: Any
) -> None:
    async with system.frontend() as client:
        await asked(client)
        for rating in (1,) * 11 + (-1,):  # more than one page of the record
            await rate(client, rating=rating)
    await say(system, CRITIQUE, OF_B)
    async with system.frontend() as client:
        found = await scores(client)
        assert (found["critique"]["score"], found["pairwise"], found["rating"]) == (4, None, -1)
        async with client.stream("GET", "/query/q/events") as response:
            names = [name async for name, _, _ in events_of(response)]
        assert names == ["response", *["feedback"] * 12, "critique"]
        assert await scores(client) == found


async def test_without_a_journal_the_scores_are_those_that_this_frontend_has_heard(bare_system: System) -> None:
    async with bare_system.frontend() as client:
        async with bare_system.journal(), bare_system.host(bare_system.generator):
            await asked(client)
            await say(bare_system, CRITIQUE)
            assert (await scores(client))["critique"]["score"] == 4
        assert (await scores(client))["critique"]["score"] == 4
