"""Which calls a second respondent does not make."""

from __future__ import annotations

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import ToolCallRecord, ToolSchema
from local.generator.builtin_tools import READ_RESULT_SCHEMA as SCHEMA
from local.generator.steps import READ_RESULT, PlannedCall
from local.generator.turn import SideEffectPolicy

READS = ToolSchema(tool="look", description="", parameters={}, safety="L0")
WRITES = ToolSchema(tool="look", description="", parameters={}, effect="write")


def made(result: str | None = None, kind: str = "", **args: object) -> ToolCallRecord:
    error = ErrorInfo(kind=kind, message="why not") if kind else None
    return ToolCallRecord(call_id="q:0:0", tool="look", args=args, result=result, error=error, duration_ms=9.0)


def call(**args: object) -> PlannedCall:
    return PlannedCall(call_id="q:2:0", tool="look", args=args)


def test_an_equal_call_takes_the_result_under_its_own_id_costs_no_time_and_says_whose_it_is() -> None:
    settled = SideEffectPolicy([made("there", a=1, b=2)]).settle(call(b=2, a=1), READS)
    expected = ToolCallRecord(call_id="q:2:0", tool="look", args={"a": 1, "b": 2}, result="there", made_by="A")
    assert settled == expected


def test_a_call_with_other_arguments_is_made() -> None:
    assert SideEffectPolicy([made("there", a=1)]).settle(call(a=2), READS) is None
    assert SideEffectPolicy().settle(call(a=1), READS) is None


def test_of_equal_calls_the_first_with_a_result_counts_and_else_the_error() -> None:
    late = made(kind="timeout", a=1)
    settled = SideEffectPolicy([late, made("one", a=1), made("two", a=1)]).settle(call(a=1), READS)
    assert settled is not None and settled.result == "one"
    settled = SideEffectPolicy([late]).settle(call(a=1), READS)
    assert settled is not None and settled.error == late.error


@pytest.mark.parametrize("kind", ["too_many_calls", "unknown_tool", "repeated_call"])
def test_a_call_that_reached_no_tool_is_made(kind: str) -> None:
    assert SideEffectPolicy([made(kind=kind, a=1)]).settle(call(a=1), READS) is None


def test_what_was_read_on_is_no_result_of_another_turns_calls() -> None:
    """The ids of calls in its arguments mean other calls there."""
    args = {"call_id": "0:0", "start": 1000}
    read = ToolCallRecord(call_id="q:2:0", tool=READ_RESULT, args=args, result="the rest")
    planned = PlannedCall(call_id="q:2:0", tool=READ_RESULT, args=args)
    assert SideEffectPolicy([read]).settle(planned, SCHEMA) is None


def test_a_call_with_effects_is_refused_even_if_the_first_has_made_it() -> None:
    settled = SideEffectPolicy([made("sent", a=1)]).settle(call(a=1), WRITES)
    assert settled is not None and settled.error is not None
    assert (settled.result, settled.error.kind) == (None, "fenced")
