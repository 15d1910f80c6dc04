"""Between the bus and the store: what of an answer is remembered, and what of it travels within a frame."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.envelope import FIELD_LIMIT, Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import ResponseGeneration, ToolCallRecord
from local.memory.messages import FactRecord, MemoryResult
from local.memory.records import PAGE_BYTES, WHOLE, engram_record, exchange_of, notes_of, page
from local.memory.store import Engram, Origin


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
    of_a_template = exchange_of(response(own_words=False), envelope(), 9.0)
    assert of_a_template is not None and not of_a_template.by_user
    exchange = exchange_of(response(), envelope(session_id=None, user_id=None, sent_at=None), 9.0)
    assert exchange is not None
    assert (exchange.user_id, exchange.session_id, exchange.asked_at) == ("owner", "q", 9.0)


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


def test_a_note_beside_words_of_strangers_is_tainted_and_has_their_origin() -> None:
    (note,) = notes_of(
        response(call("web_fetch", "https://a.example"), written(text="x"), tainted=True), envelope(), 9.0
    )
    assert (note.tainted, note.origin) == (True, Origin.WEB)


def test_nothing_is_remembered_or_noted_where_nothing_may_stay() -> None:
    for fields in ({"status": "cancelled"}, {"status": "failed"}, {"incognito": True}, {"in_history": False}):
        assert exchange_of(response(**fields), envelope(), 9.0) is None
    for fields in ({"incognito": True}, {"in_history": False}, {"respondent_id": "B"}):
        assert notes_of(response(written(text="Blue"), **fields), envelope(), 9.0) == []


def engram(query: str, answer: str) -> Engram:
    return Engram("e", "q", "A", "s", "u", query, answer, Origin.USER, 1.0)


def fact(value: str) -> FactRecord:
    return FactRecord(slot="s", value=value, stated_at=1.0, engram_id="e")


def test_a_page_ends_before_it_is_too_large_but_never_without_anything() -> None:
    facts = [fact("ö" * 5_000) for _ in range(20)]
    assert 2 < len(page(facts)) < 10
    assert sum(len(each.model_dump_json().encode()) for each in page(facts)) <= PAGE_BYTES
    assert page([fact("x" * 2 * PAGE_BYTES)]) != ()
    assert page([]) == ()


@pytest.mark.parametrize("query", ["short", "x" * 90_000])
@pytest.mark.parametrize("answer", ["short", "ö\n" * 30_000, "\x01" * 90_000])
def test_an_engram_alone_is_whole_or_says_that_it_is_cut_and_travels_within_a_frame(query: str, answer: str) -> None:
    record = engram_record(engram(query, answer))
    assert record.cut == ((record.query, record.answer) != (query, answer)) == (len(query + answer) > 10)
    assert len(MemoryResult(verb="get", engrams=(record,)).encode()) < FIELD_LIMIT
    for text, whole in ((record.query, query), (record.answer, answer)):
        assert text == whole or text.endswith(" … (cut)")
    if record.cut:
        assert len(record.model_dump_json(include={"query", "answer"})) > 0.7 * WHOLE
