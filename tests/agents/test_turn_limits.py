"""How far one turn may go: steps, calls and what tools tell; at a limit the model answers with what it has."""

from __future__ import annotations

import pytest

from local.bus.messages import ToolCallRecord, ToolSchema
from local.generator.config import GeneratorConfig
from local.generator.steps import NextStep, TurnInput, TurnLimits
from local.generator.tool_registry import does_more_than_read
from local.generator.turn import ANSWER_NOW, Turn
from local.models.chat import ContentDelta, ToolCall

READS = ToolSchema(tool="roll", description="roll", parameters={}, safety="L0", repeatable=True)
WRITES = ToolSchema(tool="write_file", description="write", parameters={}, safety="L1", repeatable=True)


def begun(limits: TurnLimits, *, acts: bool = True) -> Turn:
    turn = Turn(TurnInput("q1", "A", "What is it?", (), True, limits))
    turn.begin()
    turn.acts = acts
    return turn


def take_step(turn: Turn, calls: int = 1, told: str = "3") -> int:
    """One round of calls; returns how many were made by a tool."""
    for number in range(calls):
        turn.hear(ToolCall("roll", {"n": number, "step": len(turn.steps)}))
    assert turn.message_ended() is NextStep.CALL_TOOLS
    made, settled = turn.calls_to_make({"roll": READS})
    turn.requests_sent()
    for call in made:
        settled[call.call_id] = ToolCallRecord(call_id=call.call_id, tool="roll", args=call.args, result=told)
    turn.tools_settled(settled)
    return len(made)


def is_told_to_answer(turn: Turn) -> bool:
    return bool(turn.parts(()).steps) and turn.parts(()).steps[-1].get("content") == ANSWER_NOW


@pytest.mark.parametrize(("acts", "steps"), [(False, 5), (True, 20)])
def test_a_turn_that_may_act_takes_twenty_steps_and_one_that_only_reads_five(acts: bool, steps: int) -> None:
    turn = begun(GeneratorConfig().limits, acts=acts)
    for _ in range(steps):
        assert turn.offers_tools and not is_told_to_answer(turn)
        take_step(turn)
    assert not turn.offers_tools and is_told_to_answer(turn)
    turn.hear(ContentDelta("So far: three."))
    assert turn.message_ended() is NextStep.PUBLISH
    response = turn.response()
    assert (response.status, response.answer) == ("answered", "So far: three.")
    assert response.degraded == (
        f"it answered with what it had, as no more than {steps} steps are possible for one question",
    )
    totals = response.usage.totals
    assert totals is not None
    assert (totals.steps, totals.max_steps, totals.calls, totals.max_calls) == (steps, steps, steps, 50)


def test_calls_beyond_their_limit_are_not_made_and_the_model_answers() -> None:
    turn = begun(GeneratorConfig().limits)
    assert [take_step(turn, 16) for _ in range(4)] == [16, 16, 16, 2]
    refused = [record for record in turn.records if record.error is not None]
    assert len(refused) == 14 and {record.error.kind for record in refused if record.error} == {"too_many_calls"}
    assert turn.totals.calls == 50
    assert is_told_to_answer(turn) and "50 calls of tools" in turn.response().degraded[0]


def test_two_megabytes_of_what_tools_tell_end_it_counted_in_bytes() -> None:
    turn = begun(GeneratorConfig().limits)
    take_step(turn, told="ü" * 999_999)
    assert turn.offers_tools and turn.response().degraded == ()
    take_step(turn)
    take_step(turn)
    assert not turn.offers_tools and is_told_to_answer(turn)
    assert "2000000 bytes" in turn.response().degraded[0]


def test_an_answer_without_tools_has_no_totals_and_no_mark() -> None:
    turn = begun(TurnLimits(steps=0, acting_steps=0))
    assert not turn.offers_tools and not is_told_to_answer(turn)
    turn.hear(ContentDelta("Four."))
    turn.message_ended()
    assert (turn.response().usage.totals, turn.response().degraded) == (None, ())


def test_a_turn_made_from_the_steps_of_another_has_used_what_that_has() -> None:
    first = begun(TurnLimits())
    take_step(first, 3, told="abc")
    again = Turn(first.question, first.steps)
    again.acts = True
    assert again.totals == first.totals
    assert (again.totals.calls, again.totals.output_bytes) == (3, 9)


def test_a_tool_that_does_more_than_read_is_one_that_says_nothing_or_more_than_l0() -> None:
    assert not does_more_than_read([READS])
    assert does_more_than_read([READS, WRITES])
    assert does_more_than_read([ToolSchema(tool="x", description="x", parameters={})])


def test_more_steps_without_acting_are_more_with_it_too() -> None:
    assert GeneratorConfig(max_tool_iterations=30).limits.acting_steps == 30
