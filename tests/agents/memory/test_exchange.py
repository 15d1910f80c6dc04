"""What of an answer is remembered, and where its content comes from."""

from __future__ import annotations

from typing import Any

import pytest

from local.agents.remembering.records import exchange_of
from local.protocol.envelope import Envelope
from local.protocol.messages import ErrorInfo, ResponseGeneration, ToolCallRecord
from local.services.engrams.engram import Origin


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
