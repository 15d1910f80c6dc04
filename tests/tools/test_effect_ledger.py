"""Which call a request is, and what its record says."""

from typing import Any

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import ToolRequest, ToolResult
from local.core.errors import ToolError
from local.tools.effects import FORGOTTEN, StoredEffect, key_of, on_record, request_digest


def request(**fields: Any) -> ToolRequest:
    given = {"query_id": "q1", "call_id": "q1:0:0", "tool": "note", "args": {"a": 1, "b": 2}}
    return ToolRequest(**{**given, **fields})


def test_a_call_is_known_by_its_id_and_its_respondent() -> None:
    assert key_of(request()) == key_of(request(args={}))
    assert len({key_of(request()), key_of(request(call_id="q1:0:1")), key_of(request(respondent_id="B"))}) == 3


def test_equal_arguments_ask_for_the_same_in_any_order() -> None:
    assert request_digest(request()) == request_digest(request(args={"b": 2, "a": 1}))
    assert (
        len({request_digest(request()), request_digest(request(args={"a": 1})), request_digest(request(tool="mail"))})
        == 3
    )


def test_a_call_that_ended_has_the_result_on_record() -> None:
    result = ToolResult(query_id="q1", call_id="q1:0:0", tool="note", result="noted", duration_ms=3.5)
    assert on_record(request(), StoredEffect(request_digest(request()), result.encode().decode())) == result


def test_a_call_of_which_only_the_beginning_is_known_may_have_happened() -> None:
    result = on_record(request(), StoredEffect(request_digest(request()), None))
    assert (result.query_id, result.call_id, result.tool, result.result) == ("q1", "q1:0:0", "note", None)
    assert result.error == ErrorInfo(
        kind="outcome_unknown",
        message="note was interrupted in this call: it may or may not have happened; it is not repeated",
    )


def test_a_call_whose_end_was_deleted_is_not_repeated_either() -> None:
    result = on_record(request(), StoredEffect(request_digest(request()), FORGOTTEN))
    assert result.error == ErrorInfo(
        kind="deleted", message="this call was made before; how it ended was deleted, and it is not repeated"
    )


@pytest.mark.parametrize("outcome", [None, "{}"])
@pytest.mark.parametrize("other", [{"args": {"a": 1, "b": 3}}, {"tool": "mail"}])
def test_another_call_under_the_same_id_is_refused(outcome: str | None, other: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="call q1:0:0 was made with other arguments before; nothing was done") as caught:
        on_record(request(**other), StoredEffect(request_digest(request()), outcome))
    assert caught.value.kind == "conflict"
