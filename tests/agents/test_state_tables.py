"""Every state of each agent with every action."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from local.core.errors import IllegalTransition
from local.critic.agent import GRADING_TABLE, GradingAction, GradingState
from local.generator import steps as turn_table
from local.memory.classifier import CLASSIFICATION_TABLE, ClassificationAction, ClassificationState
from local.runtime.machine import Machine, Table
from local.swarm.agents import AGENT_TABLE, AgentAction, AgentState

Pair = tuple[StrEnum, StrEnum]


class Written(NamedTuple):
    """A table as the code has it, and as it should be: for each state `ACTION -> STATE, ACTION -> STATE`."""

    code: Table[Any, Any]
    states: type[StrEnum]
    actions: type[StrEnum]
    lines: dict[str, str]

    @property
    def allowed(self) -> dict[Pair, StrEnum]:
        """Where each action that is allowed leads."""
        return {
            (self.states(state), self.actions(action)): self.states(after)
            for state, line in self.lines.items()
            for action, after in (entry.split(" -> ") for entry in line.split(", "))
        }


END = "CANCEL -> PUBLISHING, FAIL -> PUBLISHING"
JUDGED = "JUDGED -> PUBLISHING, UNPARSED -> PUBLISHING, FAIL -> PUBLISHING"
TABLES = {
    "turn": Written(
        turn_table.TABLE,
        turn_table.TurnState,
        turn_table.TurnAction,
        {
            "IDLE": "RECEIVE_QUERY -> RECEIVING",
            "RECEIVING": f"START_GENERATION -> GENERATING, {END}",
            "GENERATING": f"DISPATCH_TOOL -> DISPATCHING_TOOL, FINISH -> PUBLISHING, {END}",
            "DISPATCHING_TOOL": f"ASK_LEAVE -> WAITING_FOR_LEAVE, REQUEST_SENT -> WAITING_FOR_TOOL, {END}",
            "WAITING_FOR_LEAVE": f"LEAVE_DECIDED -> DISPATCHING_TOOL, {END}",
            "WAITING_FOR_TOOL": f"TOOL_RESULT -> GENERATING, TOOL_TIMEOUT -> GENERATING, {END}",
            "PUBLISHING": f"PUBLISHED -> IDLE, {END}",
        },
    ),
    "grading": Written(
        GRADING_TABLE,
        GradingState,
        GradingAction,
        {
            "IDLE": "GRADE -> GRADING, COMPARE -> COMPARING, SKIP -> PUBLISHING",
            "GRADING": JUDGED,
            "COMPARING": JUDGED,
            "PUBLISHING": "PUBLISHED -> IDLE",
        },
    ),
    "agent": Written(
        AGENT_TABLE,
        AgentState,
        AgentAction,
        {
            "READY": "GIVE_TASK -> WORKING, STOP -> ENDED",
            "WORKING": "TASK_ENDED -> READY, STOP -> STOPPING",
            "STOPPING": "TASK_ENDED -> ENDED, STOP -> STOPPING",
            "ENDED": "STOP -> ENDED",
        },
    ),
    "classification": Written(
        CLASSIFICATION_TABLE,
        ClassificationState,
        ClassificationAction,
        {
            "IDLE": "BEGIN -> CLASSIFYING",
            "CLASSIFYING": "RETRY -> CLASSIFYING, DECIDE -> STORING, FAIL -> IDLE",
            "STORING": "STORED -> IDLE, FAIL -> IDLE",
        },
    ),
}
PAIRS = [(name, state, action) for name, each in TABLES.items() for state in each.states for action in each.actions]


@pytest.mark.parametrize(("name", "state", "action"), PAIRS, ids=lambda value: str(value))
def test_every_action_leads_where_it_should_or_changes_nothing(name: str, state: StrEnum, action: StrEnum) -> None:
    changes: list[tuple[StrEnum, StrEnum, StrEnum]] = []
    machine = Machine(TABLES[name].code, state, lambda *change: changes.append(change))
    expected = TABLES[name].allowed.get((state, action))
    assert machine.allows(action) is (expected is not None)
    if expected is not None:
        assert machine.advance(action) is expected
        assert changes == ([] if expected is state else [(state, action, expected)])
        return
    with pytest.raises(IllegalTransition, match=f"action {action} is not allowed in state {state}"):
        machine.advance(action)
    assert (machine.state, changes) == (state, [])


@pytest.mark.parametrize("name", TABLES)
def test_every_state_can_be_reached_and_left(name: str) -> None:
    table = TABLES[name].code
    reached = {after for row in table.values() for after in row.values()}
    assert set(table) == set(TABLES[name].states) == reached
    assert all(table.values())
