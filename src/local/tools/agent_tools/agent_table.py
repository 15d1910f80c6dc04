"""The states of an agent, the actions on it, and which leads where."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from local.runtime.machine import Table


class AgentState(StrEnum):
    """How an agent stands."""

    READY = "READY"
    WORKING = "WORKING"
    STOPPING = "STOPPING"
    ENDED = "ENDED"


class AgentAction(StrEnum):
    """What can happen to an agent."""

    GIVE_TASK = "GIVE_TASK"
    TASK_ENDED = "TASK_ENDED"
    STOP = "STOP"


AGENT_TABLE: Final[Table[AgentState, AgentAction]] = {
    AgentState.READY: {
        AgentAction.GIVE_TASK: AgentState.WORKING,
        AgentAction.STOP: AgentState.ENDED,
    },
    AgentState.WORKING: {
        AgentAction.TASK_ENDED: AgentState.READY,
        AgentAction.STOP: AgentState.STOPPING,
    },
    AgentState.STOPPING: {
        AgentAction.TASK_ENDED: AgentState.ENDED,
        AgentAction.STOP: AgentState.STOPPING,
    },
    AgentState.ENDED: {
        AgentAction.STOP: AgentState.ENDED,
    },
}
