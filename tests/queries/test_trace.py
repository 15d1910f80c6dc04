"""What the time of a query went into, folded from its messages."""

from __future__ import annotations

from typing import Any

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import (
    AgentTransition,
    ModelSpan,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
    UsageInfo,
)
from local.critic.messages import CritiqueResult
from local.memory.messages import MemoryIngested
from local.queries.view import QueryTrace, TraceSpan, message_summary

Told = tuple[Message | None, Envelope]


def at(seconds: float, message: Message, envelope_id: str = "", answers: str | None = None) -> Told:
    envelope_id = envelope_id or f"{message.routing_key} at {seconds}"
    header = Envelope(message.routing_key, envelope_id, "s", "i", 1, "q", b"{}", in_reply_to=answers, sent_at=seconds)
    return message, header


def changed(seconds: float, *states: str, respondent_id: str = "A") -> Told:
    before, first, *then = states
    message = AgentTransition(
        agent="g", query_id="q", respondent_id=respondent_id, from_state=before, action="X", to_state=first,
        then=tuple({"action": "X", "to": state} for state in then),
    )  # fmt: skip
    return at(seconds, message)


def called(seconds: float, call_id: str, tool: str = "dice", **fields: Any) -> Told:
    return at(seconds, ToolRequest(query_id="q", call_id=call_id, tool=tool, args={}, **fields), f"request {call_id}")


def settled(seconds: float, call_id: str, tool: str = "dice", **fields: Any) -> Told:
    return at(seconds, ToolResult(query_id="q", call_id=call_id, tool=tool, **fields), answers=f"request {call_id}")


def answered(seconds: float, *steps: ModelSpan, **fields: Any) -> Told:
    usage = UsageInfo(steps=steps)
    return at(
        seconds, ResponseGeneration(query_id="q", status="answered", query="?", answer="!", usage=usage, **fields)
    )


ASKED = at(0.0, QueryReceived(query_id="q", query="?"))
ACCEPTED = at(1.0, QueryAccepted(query_id="q"))
FIRST = ModelSpan(started=3.0, first_token=4.0, ended=5.0, prompt_tokens=9, completion_tokens=2, model="gemma")
SECOND = ModelSpan(started=8.0, first_token=8.5, ended=9.0, model="gemma")
WITH_TOOLS = [
    ASKED,
    ACCEPTED,
    changed(2.0, "IDLE", "RECEIVING", "GENERATING"),
    called(5.0, "q:0:0"),
    called(5.0, "q:0:1", "search_memory"),
    changed(5.0, "GENERATING", "DISPATCHING_TOOL", "WAITING_FOR_TOOL"),
    settled(6.0, "q:0:0", error=ErrorInfo(kind="timeout", message="late")),
    settled(8.0, "q:0:1", "search_memory", result="x"),
    changed(8.0, "WAITING_FOR_TOOL", "GENERATING"),
    changed(9.0, "GENERATING", "PUBLISHING"),
    answered(10.0, FIRST, SECOND),
    at(11.0, MemoryIngested(engram_id="e", query_id="q")),
    changed(11.5, "IDLE", "GRADING"),
    changed(11.9, "GRADING", "IDLE"),
    at(12.0, CritiqueResult(query_id="q", score=4, status="graded")),
]


def drawn(spans: list[TraceSpan]) -> list[tuple[str, str, float, float | None]]:
    return [(span.kind, span.name, span.started, span.ended) for span in spans]


def test_every_second_of_a_query_is_told() -> None:
    trace = QueryTrace.of("q", WITH_TOOLS)
    assert drawn(trace.spans()) == [
        ("other", "query", 0.0, 10.0),
        ("store", "recorded", 0.0, 1.0),
        ("line", "waits for its turn", 1.0, 2.0),
        ("model", "gemma", 3.0, 5.0),
        ("tool", "dice", 5.0, 6.0),
        ("memory", "search_memory", 5.0, 8.0),
        ("model", "gemma", 8.0, 9.0),
        ("memory", "remembered", 10.0, 11.0),
        ("critic", "grade", 11.5, 12.0),
    ]
    assert {span.parent for span in trace.spans()[1:]} == {"query"}
    assert trace.spans()[3].detail == {
        "first_token": 4.0, "prompt_tokens": 9, "completion_tokens": 2, "model": "gemma", "server": "",
        "thinking": 0.0,
    }  # fmt: skip
    assert trace.spans()[4].detail["error"]["kind"] == "timeout"
    assert trace.critical_path() == ["store-1", "line-1", "model-1", "memory-1", "model-2"]
    seconds = {"store": 1.0, "line": 1.0, "other": 2.0, "model": 3.0, "tool": 1.0, "memory": 2.0}
    assert trace.self_time() == seconds
    assert sum(seconds.values()) == 10.0
    assert trace.is_complete and trace.has_ended


def test_a_query_that_runs_has_open_spans() -> None:
    trace = QueryTrace.of("q", WITH_TOOLS[:6])
    assert drawn(trace.spans())[3:] == [
        ("model", "model", 2.0, 5.0), ("tool", "dice", 5.0, None), ("memory", "search_memory", 5.0, None),
    ]  # fmt: skip
    assert not trace.has_ended
    assert drawn(QueryTrace.of("q", WITH_TOOLS[:3]).spans())[3:] == [("model", "model", 2.0, None)]
    assert drawn(QueryTrace.of("q", WITH_TOOLS[:2]).spans())[2:] == [("line", "waits for its turn", 1.0, None)]


def test_the_call_that_died_with_its_process_is_told_beside_those_of_the_next_attempt() -> None:
    messages = [
        ASKED,
        ACCEPTED,
        changed(2.0, "IDLE", "RECEIVING", "GENERATING"),
        at(6.0, QueryAccepted(query_id="q", attempt=2)),
        changed(7.0, "IDLE", "RECEIVING", "GENERATING"),
        changed(9.0, "GENERATING", "PUBLISHING"),
        answered(10.0, SECOND),
    ]
    trace = QueryTrace.of("q", messages)
    models = [span for span in trace.spans() if span.kind == "model"]
    assert [(span.started, span.ended, span.attempt) for span in models] == [(2.0, 7.0, 1), (8.0, 9.0, 2)]
    assert models[0].detail == {"cut_off": True}
    attempts = [(each.attempt, each.started, each.ended) for each in trace.attempts()]
    assert attempts == [(1, 1.0, 6.0), (2, 6.0, 10.0)]
    assert trace.attempts()[1].reason == "the process that ran it was replaced"


def test_what_a_second_respondent_does_is_within_a_span_of_its_own_and_on_nobodys_path() -> None:
    messages = [
        *WITH_TOOLS,
        changed(20.0, "IDLE", "RECEIVING", "GENERATING", respondent_id="B"),
        called(21.0, "b", respondent_id="B"),
        settled(22.0, "b", respondent_id="B"),
        answered(23.0, SECOND.model_copy(update={"started": 22.0}),
                 respondent_id="B"),
    ]  # fmt: skip
    trace = QueryTrace.of("q", messages)
    spans = {span.id: span for span in trace.spans()}
    assert spans["other-1"].name == "respondent B"
    assert {span.kind for span in spans.values() if span.parent == "other-1"} == {"model", "tool"}
    assert trace.critical_path() == QueryTrace.of("q", WITH_TOOLS).critical_path()
    assert trace.self_time() == QueryTrace.of("q", WITH_TOOLS).self_time()


def test_what_was_removed_has_its_times_all_the_same() -> None:
    trace = QueryTrace.of("q", [(None, envelope) for _, envelope in WITH_TOOLS])
    assert drawn(trace.spans()) == [
        ("other", "query", 0.0, 10.0), ("tool", "dice", 5.0, 6.0), ("memory", "search_memory", 5.0, 8.0),
    ]  # fmt: skip
    assert not trace.is_complete


def test_a_query_that_was_refused_waited_until_then() -> None:
    failed = at(3.0, QueryFailed(query_id="q", error=ErrorInfo(kind="cancelled", message="stopped")))
    trace = QueryTrace.of("q", [ASKED, ACCEPTED, failed])
    assert drawn(trace.spans())[2:] == [("line", "waits for its turn", 1.0, 3.0)]
    assert QueryTrace.of("q", []).spans() == QueryTrace.of("q", []).attempts() == []
    assert QueryTrace.of("q", []).self_time() == {}


def test_a_message_is_told_in_one_short_line() -> None:
    assert message_summary("query.received", b'{"query_id":"q","query":"What\\n is it?"}') == "What is it?"
    assert message_summary("query.failed", b'{"error":{"kind":"busy","message":"Wait."}}') == "Wait."
    assert message_summary("agent.transition", b'{"from":"A","to":"B","then":[{"to":"C"}]}') == "A → B → C"
    assert message_summary("memory.ingested", b'{"engram_id":"e","query_id":"q","x":null}') == "engram_id=e"
    long = message_summary("response.generation", b'{"answer":"%s"}' % (b"a" * 500))
    assert long is not None and (len(long), long[-1]) == (160, "…")
    assert message_summary("x", b"") is message_summary("x", b"[1]") is message_summary("x", b"{") is None
