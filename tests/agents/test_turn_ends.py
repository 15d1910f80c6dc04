"""Turns that are cancelled or fail, wherever they are."""

import pytest

from local.agents.answering.turn import Next, Question, Turn
from local.agents.answering.turn_table import State
from local.errors import IllegalTransition
from local.models.chat import ContentDelta, Delta, ThinkingDelta, ToolCall
from local.protocol.messages import ErrorInfo, ToolSchema

BROKEN = ErrorInfo(kind="model_error", message="the server broke")
SCHEMAS = {"search": ToolSchema(tool="search", description="search", parameters={})}


def say(made: Turn, *deltas: Delta) -> Next:
    for delta in deltas:
        made.hear(delta)
    return made.message_ended()


def in_state(state: State) -> Turn:
    made = Turn(Question("q1", "A", "What is it?", (), True, 5))
    if state is State.IDLE:
        return made
    made.begin()
    if state in (State.DISPATCHING_TOOL, State.WAITING_FOR_TOOL):
        say(made, ThinkingDelta("Hm."), ContentDelta("So far."), ToolCall("search", {}))
        made.calls_to_make(SCHEMAS)
        if state is State.WAITING_FOR_TOOL:
            made.requests_sent()
    elif state is State.GENERATING:
        made.hear(ThinkingDelta("Hm."))
        made.hear(ContentDelta("So far."))
    else:
        say(made, ThinkingDelta("Hm."), ContentDelta("So far."))
    assert made.state is state
    return made


RUNNING = [State.GENERATING, State.DISPATCHING_TOOL, State.WAITING_FOR_TOOL]


@pytest.mark.parametrize("state", RUNNING)
def test_cancelling_keeps_what_was_said(state: State) -> None:
    made = in_state(state)
    assert made.cancel() is Next.PUBLISH
    response = made.response()
    assert (response.status, response.answer, response.thinking) == ("cancelled", "So far.", "Hm.")


@pytest.mark.parametrize("state", RUNNING)
def test_failing_keeps_what_was_said_and_says_why(state: State) -> None:
    made = in_state(state)
    assert made.fail(BROKEN) is Next.PUBLISH
    response = made.response()
    assert (response.status, response.answer, response.error) == ("failed", "So far.", BROKEN)


def test_once_publishing_neither_cancel_nor_fail_changes_anything() -> None:
    made = in_state(State.PUBLISHING)
    before = made.response()
    made.cancel()
    made.fail(BROKEN)
    assert made.response() == before
    assert made.state is State.PUBLISHING


def test_a_failure_after_a_cancellation_changes_nothing() -> None:
    made = in_state(State.GENERATING)
    made.cancel()
    made.fail(BROKEN)
    assert (made.response().status, made.response().error) == ("cancelled", None)


def test_before_it_has_begun_a_turn_can_not_be_cancelled_and_stays_as_it_is() -> None:
    made = in_state(State.IDLE)
    with pytest.raises(IllegalTransition):
        made.cancel()
    assert made.response().status == "answered"
    assert made.begin() is Next.CALL_MODEL
