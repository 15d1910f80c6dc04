"""What the envelopes of one query tell, live or on record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import (
    AgentTransition,
    ContextProvided,
    GenerationProgress,
    GenerationToken,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    RecalledExchange,
    ResponseGeneration,
    ToolCallRecord,
    ToolProgress,
    ToolRequest,
    ToolResult,
)
from local.critic.messages import CritiqueResult, UserFeedback
from local.queries.errors import QueryIdTaken
from local.queries.view import Judgements, QueryView

Q = "q1"
CALL: dict[str, Any] = {"query_id": Q, "call_id": "q1:0:0", "tool": "dice"}
ASKED = QueryReceived(query_id=Q, query="why?")
ANSWER = ResponseGeneration(query_id=Q, status="answered", query="why?", answer="Because.")


def envelope(message: Message, number: int = 1, in_reply_to: str | None = None) -> Envelope:
    """One that was sent `number` seconds after 1970."""
    return Envelope(
        message.routing_key, f"id-{number}", "generator", "i", number, Q, message.encode(), None, in_reply_to, "s1",
        sent_at=float(number),
    )  # fmt: skip


def folded(*messages: Message, view: QueryView | None = None) -> QueryView:
    view = view or QueryView(Q)
    for number, message in enumerate(messages, 1):
        view.receive(message, envelope(message, number), float(number))
    return view


def begun(**more: Any) -> AgentTransition:
    return AgentTransition(agent="g", query_id=Q, from_state="IDLE", action="RECEIVE", to_state="RECEIVING", **more)


def test_the_record_tells_the_same_answer_as_the_live_bus_but_for_what_was_heard_on_the_way() -> None:
    live = folded(QueryAccepted(query_id=Q), begun(), ANSWER, view=QueryView(Q, "why?", "s1"))
    recorded = QueryView.of(Q, [(ASKED, envelope(ASKED)), (ANSWER, envelope(ANSWER))])
    assert recorded.as_json() == {**live.as_json(), "events": [], "event_log": []}
    assert (recorded.query, recorded.session_id, recorded.answers.keys()) == ("why?", "s1", {"A"})


def test_an_open_query_on_record_is_known_by_its_text_alone() -> None:
    known = {"query_id": Q, "session_id": "s1", "query": "why?", "status": "open"}
    assert QueryView.of(Q, [(ASKED, envelope(ASKED))]).as_json() == known


@pytest.mark.parametrize(("kind", "status"), [("busy", "failed"), ("cancelled", "cancelled")])
def test_a_query_that_became_no_turn_tells_why(kind: str, status: str) -> None:
    view = folded(ASKED, QueryFailed(query_id=Q, error=ErrorInfo(kind=kind, message="not now")))
    assert (view.as_json()["status"], view.as_json()["error"]) == (status, {"kind": kind, "message": "not now"})
    assert (view.as_cancelled()["status"], view.as_cancelled()["answer"]) == ("cancelled", "")


def test_what_belongs_to_another_text_under_the_same_id_is_a_failure() -> None:
    for message in (ASKED, ANSWER):
        view = folded(message, view=QueryView(Q, "really?"))
        assert isinstance(view.failure, QueryIdTaken) and view.failure.kind == "conflict"


def test_what_an_earlier_attempt_says_after_a_later_one_has_begun_is_ignored() -> None:
    said = [GenerationToken(query_id=Q, index=0, text=text, attempt=attempt) for text, attempt in (("b", 2), ("a", 1))]
    assert folded(*said).answer == "b"


def test_changes_of_state_that_share_a_message_are_an_event_each() -> None:
    view, message = QueryView(Q), begun(then=({"action": "START", "to": "GENERATING"},))
    told = [json.loads(news.payload) for news in view.receive(message, envelope(message)) or ()]
    assert [(each["from"], each["to"]) for each in told] == [("IDLE", "RECEIVING"), ("RECEIVING", "GENERATING")]
    assert [state.to_state for state in view.states] == ["RECEIVING", "GENERATING"]


def test_calls_are_known_with_their_results_and_sources() -> None:
    view, second = QueryView(Q), CALL | {"call_id": "q1:1:0"}
    requests = [ToolRequest(args={}, **CALL), ToolRequest(args={}, **second)]
    for number, request in enumerate(requests, 1):
        view.receive(request, envelope(request, number))
    result = ToolResult(result="4", sources=("https://example.org/",), **CALL)
    view.receive(result, envelope(result, 7, in_reply_to="id-1"))
    assert [(call["call_id"], call.get("result")) for call in view.calls] == [("q1:0:0", "4"), ("q1:1:0", None)]
    recorded = ToolCallRecord(call_id="q1:2:0", tool="dice", args={}, sources=("https://example.org/2",))
    folded(ANSWER.model_copy(update={"tool_calls": (recorded,)}), view=view)
    assert view.sources == ["https://example.org/", "https://example.org/2"]


def test_what_a_call_writes_while_it_is_made_is_an_event_with_the_end_of_much_text() -> None:
    view = folded(ToolRequest(**CALL, args={}))
    short = ToolProgress(**CALL, start=0, text="one\n")
    (news,) = view.receive(short, envelope(short, 2)) or ()
    assert (news.kind, json.loads(news.payload)["text"]) == ("tool_progress", "one\n")
    long = ToolProgress(**CALL, start=4, text="a" * 5000 + "z")
    (news,) = view.receive(long, envelope(long, 3)) or ()
    assert json.loads(news.payload)["text"] == "a" * 1999 + "z"
    other = ToolProgress(**CALL, respondent_id="B", start=0, text="x")
    assert view.receive(other, envelope(other, 4)) is None
    view.receive(ANSWER, envelope(ANSWER, 5))
    assert view.receive(short, envelope(short, 6)) is None  # a job in the background goes on after the answer


def test_where_payloads_were_removed_the_headers_say_what_answers_what() -> None:
    view = QueryView(Q)
    for number, message in enumerate((ToolRequest(args={}, **CALL), ToolResult(result="4", **CALL), ANSWER), 1):
        view.receive(None, envelope(message, number, in_reply_to="id-1" if number == 2 else None))
    (call,) = view.calls
    assert (call["tool"], view.calls.is_removed(call), view.is_outcome_removed) == ("dice", True, True)


def test_another_respondent_has_a_view_of_its_own() -> None:
    answers = [ANSWER, ANSWER.model_copy(update={"respondent_id": "B", "answer": "No reason."})]
    view = folded(ASKED, *answers, view=QueryView(Q, respondent_id="B"))
    assert (view.answer, view.answers.keys()) == ("No reason.", {"A", "B"})


TOLD = ContextProvided(
    query_id=Q,
    facts=("allergies: hazelnuts (said 2026-11-20)",),
    recalled=(RecalledExchange(engram_id="e" * 32, query="Which lamp?", answer="Green.", asked_at=1.0),),
    engram_ids=("e" * 32, "f" * 32),
    tokens=40,
)


def test_what_a_model_is_told_unasked_is_an_event_and_part_of_the_query_before_and_after_its_end() -> None:
    view = QueryView(Q)
    (news,) = view.receive(TOLD, envelope(TOLD, 1)) or ()
    assert (news.kind, json.loads(news.payload)["facts"]) == ("context", list(TOLD.facts))
    assert view.partial_answer()["context"]["recalled"][0]["query"] == "Which lamp?"
    folded(ANSWER, view=view)
    assert view.as_json()["context"]["tokens"] == 40
    assert folded(ANSWER).as_json()["context"] is None


def test_a_query_has_recalled_what_its_model_was_told_of() -> None:
    view = folded(TOLD)
    assert view.has_recalled("e" * 32) and view.has_recalled("f" * 32) and not view.has_recalled("0" * 32)


def test_what_another_respondent_is_told_is_not_the_queries() -> None:
    view, other = QueryView(Q), TOLD.model_copy(update={"respondent_id": "B"})
    assert view.receive(other, envelope(other, 1)) is None and view.context is None


def test_how_far_the_model_has_read_is_said_until_it_says_something() -> None:
    read = [GenerationProgress(query_id=Q, attempt=1, done=done, total=4348) for done in (0, 1024)]
    view = folded(QueryAccepted(query_id=Q), begun(), *read)
    assert view.partial_answer()["reading"] == {"done": 1024, "total": 4348}
    view.receive(GenerationToken(query_id=Q, attempt=1, index=0, text="Be"), envelope(ANSWER, 9))
    assert "reading" not in view.partial_answer()


def test_progress_of_an_attempt_that_is_over_is_not_news() -> None:
    view = folded(QueryAccepted(query_id=Q, attempt=2))
    late = GenerationProgress(query_id=Q, attempt=1, done=1, total=9)
    assert view.receive(late, envelope(late, 9)) is None


def rated(rating: int | None, at: float) -> UserFeedback:
    return UserFeedback.model_validate({"query_id": "q", "rating": rating, "rated_at": at})


def test_the_latest_rating_counts_whichever_is_heard_last_and_null_withdraws_it() -> None:
    judgements = Judgements()
    assert judgements.as_json() == {"critique": None, "pairwise": None, "rating": None}
    assert judgements.receive(rated(1, 5.0), "first")
    assert judgements.receive(rated(-1, 9.0), "latest")
    assert not judgements.receive(rated(1, 7.0), "late")
    assert judgements.as_json()["rating"] == -1
    assert judgements.receive(rated(None, 10.0), "withdrawn")
    assert judgements.receive(CritiqueResult(query_id="q", score=None, status="unparsed"), "c")
    scores = judgements.as_json()
    assert scores["rating"] is None
    assert (scores["critique"]["score"], scores["critique"]["status"]) == (None, "unparsed")
