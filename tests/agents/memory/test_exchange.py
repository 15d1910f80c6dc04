"""What of an answer is remembered, and where its content comes from."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import ResponseGeneration, ToolCallRecord
from local.memory.records import exchange_of, notes_of
from local.memory.store import Origin


def response(*calls: ToolCallRecord, **fields: Any) -> ResponseGeneration:
    told = {"query_id": "q", "status": "answered", "query": "Hi?", "answer": "Hello."} | fields
    return ResponseGeneration(tool_calls=calls, **told)


def call(tool: str, *sources: str, result: str | None = "found", error: ErrorInfo | None = None) -> ToolCallRecord:
    return ToolCallRecord(call_id="q:0:0", tool=tool, args={}, result=result, error=error, sources=sources)


def envelope(**fields: Any) -> Envelope:
    told = {"session_id": "s", "user_id": "ann", "sent_at": 5.0} | fields
    return Envelope("response.generation", "e", "generator", "i", 1, "q", b"{}", **told)


def origin(*calls: ToolCallRecord) -> Origin:
    exchange = exchange_of(response(*calls), envelope(), 9.0)
    assert exchange is not None
    return exchange.origin


def test_an_answer_is_remembered_with_its_user_and_session() -> None:
    exchange = exchange_of(response(respondent_id="B"), envelope(), 9.0)
    assert exchange is not None
    assert (exchange.user_id, exchange.session_id, exchange.respondent_id, exchange.asked_at) == ("ann", "s", "B", 5.0)
    assert exchange.by_user
    of_a_job = exchange_of(response(origin="schedule"), envelope(), 9.0)
    assert of_a_job is not None and not of_a_job.by_user
    exchange = exchange_of(response(), envelope(session_id=None, user_id=None, sent_at=None), 9.0)
    assert exchange is not None
    assert (exchange.user_id, exchange.session_id, exchange.asked_at) == ("owner", "q", 9.0)


@pytest.mark.parametrize(
    "fields", [{"status": "cancelled"}, {"status": "failed"}, {"incognito": True}, {"in_history": False}]
)
def test_what_is_no_answer_incognito_or_of_a_clients_own_history_is_not(fields: dict[str, Any]) -> None:
    assert exchange_of(response(**fields), envelope(), 9.0) is None


def test_the_origin_is_the_least_trustworthy_of_what_was_used() -> None:
    web, dice = call("web_fetch", "https://example.org"), call("dice")
    assert origin() is Origin.ASSISTANT
    assert origin(dice) is Origin.TOOL
    assert origin(dice, web) is Origin.WEB
    assert origin(call("web_fetch", result=None, error=ErrorInfo(kind="x", message="y"))) is Origin.ASSISTANT


def test_what_was_recalled_is_named_and_no_tool_of_its_own() -> None:
    recalls = call("search_memory", "engram:one", "engram:two", "engram:one")
    exchange = exchange_of(response(recalls), envelope(), 9.0)
    assert exchange is not None
    assert (exchange.origin, exchange.recalled) == (Origin.ASSISTANT, ("one", "two"))
    assert origin(call("my_memories", "engram:one")) is Origin.TOOL


def written(tool: str = "memory_write", index: int = 0, **args: Any) -> ToolCallRecord:
    return ToolCallRecord(call_id=f"q:{index}:0", tool=tool, args=args, result="noted")


def test_what_was_written_down_is_noted_also_in_a_turn_that_was_cancelled() -> None:
    calls = (
        written(text="Blue", category="paint"),
        written("memory_edit", 1, note="1a2b3c4d"),
        call("search_memory", "engram:one"),
        ToolCallRecord(
            call_id="q:2:0", tool="memory_write", args={"text": "no"}, error=ErrorInfo(kind="x", message="")
        ),
    )
    blue, edit = notes_of(response(*calls, status="cancelled"), envelope(), 9.0)
    assert (blue.text, blue.category, blue.replaces, blue.user_id, blue.session_id) == ("Blue", "paint", "", "ann", "s")
    assert (edit.text, edit.replaces, edit.recalled) == ("", "1a2b3c4d", ("one",))
    assert blue.origin is Origin.ASSISTANT
    assert blue.note_id != edit.note_id


@pytest.mark.parametrize("fields", [{"incognito": True}, {"in_history": False}, {"respondent_id": "B"}])
def test_nothing_is_noted_where_nothing_may_stay(fields: dict[str, Any]) -> None:
    assert notes_of(response(written(text="Blue"), **fields), envelope(), 9.0) == []


def test_a_note_beside_words_of_strangers_is_tainted_and_has_their_origin() -> None:
    (note,) = notes_of(
        response(call("web_fetch", "https://a.example"), written(text="x"), tainted=True), envelope(), 9.0
    )
    assert (note.tainted, note.origin) == (True, Origin.WEB)


def test_writing_a_note_is_no_tool_that_an_answer_rests_on() -> None:
    assert origin(written(text="Blue")) is Origin.ASSISTANT
