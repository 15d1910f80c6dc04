"""The table of the classification, walked pair by pair."""

from __future__ import annotations

import pytest

from local.agents.remembering.classification_table import TABLE, Action, State
from local.errors import IllegalTransition
from local.runtime.machine import Machine

LEADS_TO = {
    (State.IDLE, Action.BEGIN): State.CLASSIFYING,
    (State.CLASSIFYING, Action.RETRY): State.CLASSIFYING,
    (State.CLASSIFYING, Action.DECIDE): State.STORING,
    (State.CLASSIFYING, Action.FAIL): State.IDLE,
    (State.STORING, Action.STORED): State.IDLE,
    (State.STORING, Action.FAIL): State.IDLE,
}


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("state", State)
def test_every_action_in_every_state_leads_where_it_should_or_changes_nothing(state: State, action: Action) -> None:
    changes: list[tuple[State, Action, State]] = []
    machine = Machine(TABLE, state, lambda *change: changes.append(change))
    expected = LEADS_TO.get((state, action))
    assert machine.allows(action) == (expected is not None)
    if expected is None:
        with pytest.raises(IllegalTransition):
            machine.advance(action)
        assert (machine.state, changes) == (state, [])
    else:
        assert machine.advance(action) is expected
        assert changes == ([] if expected is state else [(state, action, expected)])
