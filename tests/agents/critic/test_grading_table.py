"""Every state of a critic's work with every action."""

import pytest

from local.agents.grading.table import TABLE, Action, State
from local.errors import IllegalTransition
from local.runtime.machine import Machine

ALLOWED = {
    ("IDLE", "GRADE"): "GRADING",
    ("IDLE", "COMPARE"): "COMPARING",
    ("GRADING", "JUDGED"): "PUBLISHING",
    ("GRADING", "UNPARSED"): "PUBLISHING",
    ("GRADING", "FAIL"): "PUBLISHING",
    ("COMPARING", "JUDGED"): "PUBLISHING",
    ("COMPARING", "UNPARSED"): "PUBLISHING",
    ("COMPARING", "FAIL"): "PUBLISHING",
    ("PUBLISHING", "PUBLISHED"): "IDLE",
}


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("state", State)
def test_every_action_leads_where_it_should_or_changes_nothing(state: State, action: Action) -> None:
    machine = Machine(TABLE, state)
    expected = ALLOWED.get((state.value, action.value))
    if expected is not None:
        assert machine.advance(action) is State(expected)
        return
    with pytest.raises(IllegalTransition):
        machine.advance(action)
    assert machine.state is state


def test_every_state_can_be_reached_and_left() -> None:
    reached = {after for row in TABLE.values() for after in row.values()}
    assert set(TABLE) == set(State) == reached
    assert all(TABLE.values())
