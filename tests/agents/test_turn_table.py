"""Every state of a turn with every action."""

import pytest

from local.agents.answering.turn_table import TABLE, Action, State
from local.errors import IllegalTransition
from local.runtime.machine import Machine

ALLOWED = {
    ("IDLE", "RECEIVE_QUERY"): "RECEIVING",
    ("RECEIVING", "START_GENERATION"): "GENERATING",
    ("RECEIVING", "CANCEL"): "PUBLISHING",
    ("RECEIVING", "FAIL"): "PUBLISHING",
    ("GENERATING", "DISPATCH_TOOL"): "DISPATCHING_TOOL",
    ("GENERATING", "FINISH"): "PUBLISHING",
    ("GENERATING", "CANCEL"): "PUBLISHING",
    ("GENERATING", "FAIL"): "PUBLISHING",
    ("DISPATCHING_TOOL", "REQUEST_SENT"): "WAITING_FOR_TOOL",
    ("DISPATCHING_TOOL", "CANCEL"): "PUBLISHING",
    ("DISPATCHING_TOOL", "FAIL"): "PUBLISHING",
    ("WAITING_FOR_TOOL", "TOOL_RESULT"): "GENERATING",
    ("WAITING_FOR_TOOL", "TOOL_TIMEOUT"): "GENERATING",
    ("WAITING_FOR_TOOL", "CANCEL"): "PUBLISHING",
    ("WAITING_FOR_TOOL", "FAIL"): "PUBLISHING",
    ("PUBLISHING", "PUBLISHED"): "IDLE",
    ("PUBLISHING", "CANCEL"): "PUBLISHING",
    ("PUBLISHING", "FAIL"): "PUBLISHING",
}


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("state", State)
def test_every_action_leads_where_the_design_says_or_changes_nothing(state: State, action: Action) -> None:
    machine = Machine(TABLE, state)
    expected = ALLOWED.get((state.value, action.value))
    if expected is not None:
        assert machine.advance(action) is State(expected)
        return
    with pytest.raises(IllegalTransition, match=f"action {action} is not allowed in state {state}"):
        machine.advance(action)
    assert machine.state is state


def test_every_state_can_be_reached_and_left() -> None:
    reached = {after for row in TABLE.values() for after in row.values()}
    assert set(TABLE) == set(State) == reached
    assert all(TABLE.values())
