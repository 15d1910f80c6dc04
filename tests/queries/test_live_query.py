"""What a frontend knows of one query, fed by hand."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from local.bus.envelope import Envelope, new_id
from local.bus.message import ErrorInfo, Message
from local.bus.messages import (
    AgentTransition,
    GenerationThinking,
    GenerationToken,
    QueryAccepted,
    QueryFailed,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
)
from local.core.errors import LocalError
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.queries import view as module
from local.queries.asker import KEPT_ENDED, LiveQueries, LiveQuery
from local.queries.errors import QueryRefused
from local.queries.view import QueryEvent, QueryView

Q = "q1"


@pytest.fixture
async def query() -> LiveQuery:
    return LiveQuery(QueryView(Q, "why?", "s1"), itertools.count().__next__)


def tell(query: LiveQuery, *messages: Message, session_id: str = "s1", envelope_id: str = "") -> None:
    for message in messages:
        name = envelope_id or new_id()
        envelope = Envelope(message.routing_key, name, "generator", "i", 1, Q, message.encode(), session_id=session_id)
        query.receive(message, envelope)


def token(index: int, text: str, attempt: int = 1, **more: Any) -> GenerationToken:
    return GenerationToken(query_id=Q, index=index, text=text, attempt=attempt, **more)


def begun() -> AgentTransition:
    return AgentTransition(agent="g", query_id=Q, from_state="IDLE", action="RECEIVE_QUERY", to_state="RECEIVING")


def answer(text: str = "Because.", **more: Any) -> ResponseGeneration:
    return ResponseGeneration(query_id=Q, status="answered", query="why?", answer=text, **more)


def kinds(events: list[QueryEvent]) -> list[str]:
    return [event.kind for event in events]


async def test_what_it_has_recalled_is_known_as_soon_as_the_tool_has_answered(query: LiveQuery) -> None:
    assert not query.view.has_recalled("e1")
    call: dict[str, Any] = {"call_id": "c", "tool": "search_memory", "sources": ("engram:e1",)}
    tell(query, ToolResult(query_id=Q, result="tea", **call))
    assert query.view.has_recalled("e1")
    call |= {"args": {}, "sources": ("engram:e2",)}
    tell(query, answer(tool_calls=(ToolCallRecord(**call),)))
    assert query.view.has_recalled("e2")  # also where the result itself was missed
    assert not query.view.has_recalled("e")


async def test_every_event_is_kept_in_order_with_its_number(query: LiveQuery) -> None:
    repeated = [QueryAccepted(query_id=Q), QueryAccepted(query_id=Q)]
    tell(query, *repeated, begun(), token(0, "Be"), token(1, "cause."), answer())
    await query.accepted()
    events = query.events.after(0)
    assert json.loads(events[0].payload)["session_id"] == "s1"
    assert [(event.number, event.kind) for event in events] == [
        (1, "accepted"), (2, "state"), (3, "token"), (4, "token"), (5, "response"),
    ]  # fmt: skip
    assert kinds(query.events.after(3)) == ["token", "response"]
    assert query.events.after(5) == [] and query.has_nothing_after(5)
    assert (await query.outcome()).answer == "Because."


async def test_equal_subjects_in_a_row_are_one_line_of_the_log(query: LiveQuery) -> None:
    query.note("query.received")
    tell(query, QueryAccepted(query_id=Q), token(0, "a"), token(1, "b"), answer())
    assert [(line.subject, line.count) for line in query.view.log] == [
        ("query.received", 1), ("query.accepted", 1), ("generation.token", 2), ("response.generation", 1),
    ]  # fmt: skip


async def test_an_unknown_number_gets_a_snapshot_of_all_that_was_said(query: LiveQuery) -> None:
    call = {"call_id": "q1:0:0", "tool": "dice"}
    tell(query, QueryAccepted(query_id=Q), begun(), GenerationThinking(query_id=Q, index=0, text="Hm."))
    tell(query, ToolRequest(query_id=Q, args={"sides": 6}, **call), ToolResult(query_id=Q, result="4", **call))
    tell(query, token(1, "Be"))
    (snapshot,) = query.events.after(None)
    assert snapshot.number == 6
    data = json.loads(snapshot.payload)
    assert (data["thinking"], data["answer"], data["complete"]) == ("Hm.", "Be", True)
    [settled] = data["tool_calls"]
    assert (settled["args"], settled["result"]) == ({"sides": 6}, "4")
    assert query.events.after(99)[0].kind == "snapshot"


async def test_a_snapshot_after_the_end_is_followed_by_the_answer(query: LiveQuery) -> None:
    tell(query, QueryAccepted(query_id=Q), token(0, "Be"), answer())
    assert [(event.number, event.kind) for event in query.events.after(None)] == [(2, "snapshot"), (3, "response")]


async def test_events_beyond_what_is_kept_are_a_snapshot(query: LiveQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_EVENTS", 3)
    tell(query, QueryAccepted(query_id=Q), begun(), *(token(index, str(index)) for index in range(6)))
    assert kinds(query.events.after(1)) == ["snapshot"]
    assert kinds(query.events.after(6)) == ["token", "token"]
    assert query.view.partial_answer()["answer"] == "012345"


@pytest.mark.parametrize("messages", [[token(0, "a"), token(2, "c")], [begun(), token(1, "b")], [token(0, "a")], []])
async def test_what_was_not_heard_from_its_beginning_is_not_called_complete(
    query: LiveQuery, messages: list[Message]
) -> None:
    tell(query, QueryAccepted(query_id=Q), *messages)
    assert query.view.partial_answer()["complete"] is False


async def test_a_restarted_generator_says_it_again_and_the_stream_says_so(query: LiveQuery) -> None:
    tell(query, QueryAccepted(query_id=Q), begun(), token(0, "Be"), token(0, "Bec", attempt=2), token(1, "lost"))
    events = query.events.after(3)
    assert kinds(events) == ["snapshot", "token"]
    assert json.loads(events[0].payload)["answer"] == ""
    assert query.view.partial_answer()["answer"] == "Bec"


async def test_another_respondent_neither_speaks_in_the_stream_nor_ends_it(query: LiveQuery) -> None:
    tell(query, token(0, "B says", respondent_id="B"), answer("B's", respondent_id="B"))
    tell(query, ToolResult(query_id=Q, respondent_id="B", call_id="q1:0:0", tool="dice", result="6"))
    assert not query.view.ended and query.events.after(0) == []


def critique(**more: Any) -> CritiqueResult:
    return CritiqueResult(query_id=Q, score=4, status="graded", **more)


def compared() -> PairwiseResult:
    return PairwiseResult(query_id=Q, winner="A", status="graded")


async def test_only_judgements_are_news_after_the_end_each_once(query: LiveQuery) -> None:
    tell(query, answer(), token(0, "late"), answer("another"), session_id="recorded")
    with query.watched() as changed:
        for _ in range(2):  # heard live, and found on record
            tell(query, critique(), envelope_id="c")
        assert changed.is_set()
    tell(query, compared(), UserFeedback(query_id=Q, rating=1, rated_at=5.0))
    assert kinds(query.events.after(0)) == ["response", "critique", "pairwise", "feedback"]
    assert query.view.response is not None and query.view.response.answer == "Because."
    assert query.view.session_id == "recorded"


async def test_what_is_said_of_another_respondents_answer_is_not_shown_as_said_of_this_one(query: LiveQuery) -> None:
    tell(query, answer(), critique(respondent_id="B"))
    tell(query, UserFeedback(query_id=Q, respondent_id="B", rating=-1, rated_at=5.0))
    assert kinds(query.events.after(0)) == ["response"]
    assert query.view.judgements.as_json() == {"critique": None, "pairwise": None, "rating": None}


async def test_an_answer_lacks_the_judgements_that_have_not_come_yet(query: LiveQuery) -> None:
    assert not query.lacks({"critique"})
    tell(query, answer())
    assert query.lacks({"critique"}) and not query.lacks(())
    tell(query, critique())
    assert not query.lacks({"critique"}) and query.lacks({"critique", "pairwise"})


async def test_no_comparison_is_waited_for_once_the_second_respondent_has_failed(query: LiveQuery) -> None:
    tell(query, answer())
    of_b: dict[str, Any] = {"query_id": Q, "respondent_id": "B"}
    with query.watched() as changed:
        tell(query, QueryFailed(**of_b, error=ErrorInfo(kind="deleted", message="no")))
        assert changed.is_set()
    assert query.lacks({"critique", "pairwise"}) and not query.lacks({"pairwise"})
    query.close()
    assert not query.lacks({"critique"})


@pytest.mark.parametrize("more", [{"incognito": True}, {"status": "cancelled"}, {"status": "failed"}])
async def test_no_judgement_is_waited_for_of_an_answer_that_nobody_judges(
    query: LiveQuery, more: dict[str, Any]
) -> None:
    fields = {"query_id": Q, "query": "why?", "answer": "Because.", "status": "answered", **more}
    tell(query, ResponseGeneration.model_validate(fields))
    assert not query.lacks({"critique"})


async def test_a_refusal_reaches_whoever_waits_and_the_stream(query: LiveQuery) -> None:
    error = ErrorInfo(kind="busy", message="too many")
    tell(query, QueryFailed(query_id=Q, error=error))
    for wait in (query.accepted, query.outcome):
        with pytest.raises(QueryRefused, match="too many"):
            await wait()
    assert json.loads(query.events.after(0)[0].payload)["error"] == error.model_dump()
    assert query.view.failure is not None and query.view.response is None


async def test_the_answer_to_another_query_under_the_same_id_is_a_conflict(query: LiveQuery) -> None:
    tell(query, ResponseGeneration(query_id=Q, status="answered", query="really?", answer="Yes."))
    with pytest.raises(QueryRefused, match="used for another query"):
        await query.outcome()


# The queries that an asker knows


@pytest.fixture
async def other() -> LiveQuery:
    return LiveQuery(QueryView("q", "why?", "s"), lambda: 0.0)


async def test_an_open_one_that_was_deleted_is_followed_to_its_end_and_not_kept(other: LiveQuery) -> None:
    known = LiveQueries()
    known.add(other)
    known.forget(lambda each: each.query_id == "q")
    assert known.get("q") is other
    other.refuse(LocalError("no"))
    known.put_away(other)
    assert known.get("q") is None


async def test_one_that_is_followed_is_known_however_many_end_after_it(other: LiveQuery) -> None:
    known = LiveQueries()
    for number in range(KEPT_ENDED + 1):
        each = other if number == 0 else LiveQuery(QueryView(f"q{number}", "why?", "s"), lambda: 0.0)
        known.add(each)
        each.refuse(LocalError("no"))
        known.put_away(each)
    assert known.get("q") is other and other in known.known
    known.forget(lambda each: each.query_id == "q")
    assert known.get("q") is None
