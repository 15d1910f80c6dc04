"""Turns that are cancelled or fail, wherever they are."""

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import AnswerOptions, ToolSchema
from local.core.errors import IllegalTransition
from local.generator.steps import NextStep, TurnInput, TurnLimits, TurnState
from local.generator.turn import Turn
from local.models.chat import ContentDelta, Delta, ThinkingDelta, ToolCall

BROKEN = ErrorInfo(kind="model_error", message="the server broke")
SCHEMAS = {"search": ToolSchema(tool="search", description="search", parameters={})}


def say(made: Turn, *deltas: Delta) -> NextStep:
    for delta in deltas:
        made.hear(delta)
    return made.message_ended()


def in_state(state: TurnState) -> Turn:
    made = Turn(TurnInput("q1", "A", "What is it?", (), True, TurnLimits()))
    if state is TurnState.IDLE:
        return made
    made.begin()
    if state in (TurnState.DISPATCHING_TOOL, TurnState.WAITING_FOR_TOOL):
        say(made, ThinkingDelta("Hm."), ContentDelta("So far."), ToolCall("search", {}))
        made.calls_to_make(SCHEMAS)
        if state is TurnState.WAITING_FOR_TOOL:
            made.requests_sent()
    elif state is TurnState.GENERATING:
        made.hear(ThinkingDelta("Hm."))
        made.hear(ContentDelta("So far."))
    else:
        say(made, ThinkingDelta("Hm."), ContentDelta("So far."))
    assert made.state is state
    return made


RUNNING = [TurnState.GENERATING, TurnState.DISPATCHING_TOOL, TurnState.WAITING_FOR_TOOL]


@pytest.mark.parametrize("state", RUNNING)
def test_cancelling_keeps_what_was_said(state: TurnState) -> None:
    made = in_state(state)
    assert made.cancel() is NextStep.PUBLISH
    response = made.response()
    assert (response.status, response.answer, response.thinking) == ("cancelled", "So far.", "Hm.")


@pytest.mark.parametrize("state", RUNNING)
def test_failing_keeps_what_was_said_and_says_why(state: TurnState) -> None:
    made = in_state(state)
    assert made.fail(BROKEN) is NextStep.PUBLISH
    response = made.response()
    assert (response.status, response.answer, response.error) == ("failed", "So far.", BROKEN)


def test_a_turn_with_functions_of_its_asker_fails_before_the_model_has_said_anything() -> None:
    function = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    asked = TurnInput("q1", "A", "Hi", (), True, TurnLimits(), options=AnswerOptions(functions=(function,)))
    for end in (lambda made: made.fail(BROKEN), lambda made: made.cancel()):
        made = Turn(asked)
        made.begin()
        assert end(made) is NextStep.PUBLISH
        response = made.response()
        assert (response.answer, response.client_calls) == ("", ())


def test_once_publishing_neither_cancel_nor_fail_changes_anything() -> None:
    made = in_state(TurnState.PUBLISHING)
    before = made.response()
    made.cancel()
    made.fail(BROKEN)
    assert made.response() == before
    assert made.state is TurnState.PUBLISHING


def test_a_failure_after_a_cancellation_changes_nothing() -> None:
    made = in_state(TurnState.GENERATING)
    made.cancel()
    made.fail(BROKEN)
    assert (made.response().status, made.response().error) == ("cancelled", None)


def test_before_it_has_begun_a_turn_can_not_be_cancelled_and_stays_as_it_is() -> None:
    made = in_state(TurnState.IDLE)
    with pytest.raises(IllegalTransition):
        made.cancel()
    assert made.response().status == "answered"
    assert made.begin() is NextStep.CALL_MODEL
