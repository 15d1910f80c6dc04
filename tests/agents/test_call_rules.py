"""Which calls of a model need no tool."""

from local.bus.message import ErrorInfo
from local.bus.messages import ToolCallRecord, ToolSchema
from local.generator import turn as call_rules
from local.generator.steps import ModelStep, PlannedCall, ToolStep, TurnInput, TurnLimits
from local.generator.turn import settle_here
from local.models.chat import ToolCall

SEARCH = {"search": ToolSchema(tool="search", description="", parameters={}, repeatable=False)}


def planned(call_id: str, **args: object) -> PlannedCall:
    return PlannedCall(call_id=call_id, tool="search", args=args)


def made(call: PlannedCall, result: str | None) -> list[ModelStep | ToolStep]:
    error = None if result is not None else ErrorInfo(kind="timeout", message="late")
    record = ToolCallRecord(
        call_id=call.call_id, tool="search", args=call.args, result=result, error=error, duration_ms=9
    )
    return [ModelStep(content="", calls=(call,)), ToolStep(records=(record,))]


def test_a_new_call_of_a_tool_that_is_there_needs_the_tool() -> None:
    assert settle_here(planned("a", q=1), 0, SEARCH, made(planned("b", q=2), "other")) is None


def test_a_call_of_a_tool_that_nobody_offers_is_refused() -> None:
    record = settle_here(planned("a"), 0, {}, [])
    assert record is not None
    assert record.error is not None and record.error.kind == "unknown_tool"


def test_an_equal_call_is_answered_from_the_record_under_its_own_id_and_cost_nothing() -> None:
    record = settle_here(planned("b", q=1), 0, SEARCH, made(planned("a", q=1), "found"))
    assert record is not None
    assert (record.call_id, record.result, record.duration_ms) == ("b", "found", 0.0)


def test_an_empty_result_counts_as_one() -> None:
    record = settle_here(planned("b", q=1), 0, SEARCH, made(planned("a", q=1), ""))
    assert record is not None
    assert record.result == ""


def test_a_failed_call_is_no_record() -> None:
    assert settle_here(planned("b", q=1), 0, SEARCH, made(planned("a", q=1), None)) is None


def test_the_seventeenth_call_of_a_message_is_one_too_many() -> None:
    assert settle_here(planned("a"), 15, SEARCH, []) is None
    record = settle_here(planned("a"), 16, SEARCH, [])
    assert record is not None
    assert record.error is not None
    assert record.error.kind == "too_many_calls"


def test_half_a_character_among_arguments_is_replaced_before_anybody_is_asked() -> None:
    call = ToolCall("pen", {"path": "a\ud800.txt", "lines": [{"\udc00": "ä\U0001f600"}]})
    question = TurnInput("q", "A", "Write!", (), think=False, limits=TurnLimits())
    [made] = call_rules.planned([call], question, 0, offers_tools=True)
    assert made.args == {"path": "a\ufffd.txt", "lines": [{"\ufffd": "ä\U0001f600"}]}
    assert made.model_dump_json()


def test_arguments_that_are_nested_too_deep_for_a_message_are_refused_and_nobody_is_sent_them() -> None:
    def nested(levels: int) -> object:
        return [nested(levels - 1)] if levels else "x"

    deep, flat = ({"q": nested(levels)} for levels in (300, 20 - 1))
    question = TurnInput("q", "A", "Search!", (), think=False, limits=TurnLimits())
    calls = [ToolCall("search", deep), ToolCall("search", flat)]
    first, second = call_rules.planned(calls, question, 0, offers_tools=True)
    record = settle_here(first, 0, SEARCH, [])
    assert record is not None and record.error is not None
    assert record.error.kind == "bad_arguments" and "nested too deep, at most 20" in record.error.message
    assert "x" not in str(record.args)
    assert (second.args, settle_here(second, 1, SEARCH, [])) == (flat, None)
