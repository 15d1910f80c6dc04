"""What a door knows of one query, fed by hand."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from local.apps import exchange as module
from local.apps.exchange import Event, Exchange, QueryRefused
from local.protocol.envelope import Envelope, new_id
from local.protocol.judgement_messages import CritiqueResult, PairwiseResult, UserFeedback
from local.protocol.messages import (
    AgentTransition,
    ErrorInfo,
    GenerationThinking,
    GenerationToken,
    Message,
    QueryAccepted,
    QueryFailed,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
)

Q = "q1"


@pytest.fixture
async def exchange() -> Exchange:
    return Exchange(Q, "s1", "why?", itertools.count().__next__)


def tell(exchange: Exchange, *messages: Message, session_id: str = "s1", envelope_id: str = "") -> None:
    for message in messages:
        name = envelope_id or new_id()
        envelope = Envelope(message.routing_key, name, "generator", "i", 1, Q, message.encode(), session_id=session_id)
        exchange.receive(message, envelope)


def token(index: int, text: str, attempt: int = 1, **more: Any) -> GenerationToken:
    return GenerationToken(query_id=Q, index=index, text=text, attempt=attempt, **more)


def begun() -> AgentTransition:
    return AgentTransition(agent="g", query_id=Q, from_state="IDLE", action="RECEIVE_QUERY", to_state="RECEIVING")


def answer(text: str = "Because.", **more: Any) -> ResponseGeneration:
    return ResponseGeneration(query_id=Q, status="answered", query="why?", answer=text, **more)


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


async def test_what_it_has_recalled_is_known_as_soon_as_the_tool_has_answered(exchange: Exchange) -> None:
    assert not exchange.has_recalled("e1")
    call: dict[str, Any] = {"call_id": "c", "tool": "search_memory", "sources": ("engram:e1",)}
    tell(exchange, ToolResult(query_id=Q, result="tea", **call))
    assert exchange.has_recalled("e1")
    call |= {"args": {}, "sources": ("engram:e2",)}
    tell(exchange, answer(tool_calls=(ToolCallRecord(**call),)))
    assert exchange.has_recalled("e2")  # also where the result itself was missed
    assert not exchange.has_recalled("e")


async def test_every_event_is_kept_in_order_with_its_number(exchange: Exchange) -> None:
    tell(exchange, QueryAccepted(query_id=Q), begun(), token(0, "Be"), token(1, "cause."), answer())
    assert [(event.number, event.kind) for event in exchange.after(0)] == [
        (1, "accepted"), (2, "state"), (3, "token"), (4, "token"), (5, "response"),
    ]  # fmt: skip
    assert kinds(exchange.after(3)) == ["token", "response"]
    assert exchange.after(5) == [] and exchange.has_nothing_after(5)
    assert (await exchange.outcome()).answer == "Because."


async def test_accepted_tells_the_session(exchange: Exchange) -> None:
    tell(exchange, QueryAccepted(query_id=Q))
    await exchange.accepted()
    assert json.loads(exchange.after(0)[0].payload)["session_id"] == "s1"


async def test_an_acceptance_that_is_repeated_is_no_event(exchange: Exchange) -> None:
    tell(exchange, QueryAccepted(query_id=Q), QueryAccepted(query_id=Q), QueryAccepted(query_id=Q, attempt=2))
    assert kinds(exchange.after(0)) == ["accepted", "accepted"]


async def test_equal_subjects_in_a_row_are_one_line_of_the_log(exchange: Exchange) -> None:
    exchange.note("query.received")
    tell(exchange, QueryAccepted(query_id=Q), token(0, "a"), token(1, "b"), answer())
    assert [(line.subject, line.count) for line in exchange.log] == [
        ("query.received", 1), ("query.accepted", 1), ("generation.token", 2), ("response.generation", 1),
    ]  # fmt: skip


async def test_an_unknown_number_gets_a_snapshot_of_all_that_was_said(exchange: Exchange) -> None:
    call = {"call_id": "q1:0:0", "tool": "dice"}
    tell(exchange, QueryAccepted(query_id=Q), begun(), GenerationThinking(query_id=Q, index=0, text="Hm."))
    tell(exchange, ToolRequest(query_id=Q, args={"sides": 6}, **call), ToolResult(query_id=Q, result="4", **call))
    tell(exchange, token(1, "Be"))
    (snapshot,) = exchange.after(None)
    assert snapshot.number == 6
    data = json.loads(snapshot.payload)
    assert (data["thinking"], data["answer"], data["complete"]) == ("Hm.", "Be", True)
    [settled] = data["tool_calls"]
    assert (settled["args"], settled["result"]) == ({"sides": 6}, "4")
    assert exchange.after(99)[0].kind == "snapshot"


async def test_a_snapshot_after_the_end_is_followed_by_the_answer(exchange: Exchange) -> None:
    tell(exchange, QueryAccepted(query_id=Q), token(0, "Be"), answer())
    assert [(event.number, event.kind) for event in exchange.after(None)] == [(2, "snapshot"), (3, "response")]


async def test_events_beyond_what_is_kept_are_a_snapshot(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_EVENTS", 3)
    tell(exchange, QueryAccepted(query_id=Q), begun(), *(token(index, str(index)) for index in range(6)))
    assert kinds(exchange.after(1)) == ["snapshot"]
    assert kinds(exchange.after(6)) == ["token", "token"]
    assert exchange.said_so_far()["answer"] == "012345"


@pytest.mark.parametrize("messages", [[token(0, "a"), token(2, "c")], [begun(), token(1, "b")], [token(0, "a")], []])
async def test_what_was_not_heard_from_its_beginning_is_not_called_complete(
    exchange: Exchange, messages: list[Message]
) -> None:
    tell(exchange, QueryAccepted(query_id=Q), *messages)
    assert exchange.said_so_far()["complete"] is False


async def test_a_restarted_generator_says_it_again_and_the_stream_says_so(exchange: Exchange) -> None:
    tell(exchange, QueryAccepted(query_id=Q), begun(), token(0, "Be"), token(0, "Bec", attempt=2), token(1, "lost"))
    events = exchange.after(3)
    assert kinds(events) == ["snapshot", "token"]
    assert json.loads(events[0].payload)["answer"] == ""
    assert exchange.said_so_far()["answer"] == "Bec"


async def test_another_respondent_neither_speaks_in_the_stream_nor_ends_it(exchange: Exchange) -> None:
    tell(exchange, token(0, "B says", respondent_id="B"), answer("B's", respondent_id="B"))
    tell(exchange, ToolResult(query_id=Q, respondent_id="B", call_id="q1:0:0", tool="dice", result="6"))
    assert not exchange.ended and exchange.after(0) == []


def critique(**more: Any) -> CritiqueResult:
    return CritiqueResult(query_id=Q, score=4, status="graded", **more)


def compared() -> PairwiseResult:
    return PairwiseResult(query_id=Q, winner="A", status="graded")


async def test_only_judgements_are_news_after_the_end(exchange: Exchange) -> None:
    tell(exchange, answer(), token(0, "late"), answer("another"))
    tell(exchange, critique(), compared(), UserFeedback(query_id=Q, rating=1, rated_at=5.0))
    assert kinds(exchange.after(0)) == ["response", "critique", "pairwise", "feedback"]
    assert exchange.response is not None and exchange.response.answer == "Because."


async def test_what_is_said_of_another_respondents_answer_is_not_shown_as_said_of_this_one(exchange: Exchange) -> None:
    tell(exchange, answer(), critique(respondent_id="B"))
    tell(exchange, UserFeedback(query_id=Q, respondent_id="B", rating=-1, rated_at=5.0))
    assert kinds(exchange.after(0)) == ["response"]
    assert exchange.judgements.as_json() == {"critique": None, "pairwise": None, "rating": None}


async def test_a_judgement_heard_live_and_found_on_record_is_one_event(exchange: Exchange) -> None:
    tell(exchange, answer())
    tell(exchange, critique(), envelope_id="c")
    tell(exchange, critique(), envelope_id="c")
    assert kinds(exchange.after(0)) == ["response", "critique"]


async def test_an_answer_lacks_the_judgements_that_have_not_come_yet(exchange: Exchange) -> None:
    assert not exchange.lacks({"critique"})
    tell(exchange, answer())
    assert exchange.lacks({"critique"}) and not exchange.lacks(())
    tell(exchange, critique())
    assert not exchange.lacks({"critique"}) and exchange.lacks({"critique", "pairwise"})


@pytest.mark.parametrize("status", ["failed", "cancelled", None])
async def test_no_comparison_is_waited_for_once_the_second_respondent_has_failed(
    exchange: Exchange, status: str | None
) -> None:
    tell(exchange, answer())
    of_b: dict[str, Any] = {"query_id": Q, "respondent_id": "B"}
    if status is None:
        end: Any = QueryFailed(**of_b, error=ErrorInfo(kind="deleted", message="no"))
    else:
        end = ResponseGeneration(**of_b, query="why?", answer="", status=status)  # type: ignore[arg-type]
    with exchange.watched() as changed:
        tell(exchange, end)
        assert changed.is_set()
    assert exchange.lacks({"critique", "pairwise"}) and not exchange.lacks({"pairwise"})


async def test_a_door_that_closes_waits_for_no_more_judgements(exchange: Exchange) -> None:
    tell(exchange, answer())
    with exchange.watched() as changed:
        exchange.close()
        assert changed.is_set() and not exchange.lacks({"critique"})


@pytest.mark.parametrize("more", [{"incognito": True}, {"status": "cancelled"}, {"status": "failed"}])
async def test_no_judgement_is_waited_for_of_an_answer_that_nobody_judges(
    exchange: Exchange, more: dict[str, Any]
) -> None:
    fields = {"query_id": Q, "query": "why?", "answer": "Because.", "status": "answered", **more}
    tell(exchange, ResponseGeneration.model_validate(fields))
    assert not exchange.lacks({"critique"})


async def test_the_session_is_the_one_that_the_record_has(exchange: Exchange) -> None:
    tell(exchange, answer(), session_id="recorded")
    assert exchange.session_id == "recorded"


async def test_a_refusal_reaches_whoever_waits_and_the_stream(exchange: Exchange) -> None:
    error = ErrorInfo(kind="busy", message="too many")
    tell(exchange, QueryFailed(query_id=Q, error=error))
    for wait in (exchange.accepted, exchange.outcome):
        with pytest.raises(QueryRefused, match="too many"):
            await wait()
    assert json.loads(exchange.after(0)[0].payload)["error"] == error.model_dump()
    assert exchange.refused and exchange.response is None


async def test_the_answer_to_another_query_under_the_same_id_is_a_conflict(exchange: Exchange) -> None:
    tell(exchange, ResponseGeneration(query_id=Q, status="answered", query="really?", answer="Yes."))
    with pytest.raises(QueryRefused, match="used for another query"):
        await exchange.outcome()


async def test_watchers_are_told_of_each_change(exchange: Exchange) -> None:
    with exchange.watched() as changed:
        assert not changed.is_set()
        tell(exchange, token(0, "a"))
        assert changed.is_set()
    changed.clear()
    tell(exchange, token(1, "b"))
    assert not changed.is_set()
