"""The states of a turn, the actions on it, and which leads where."""

from __future__ import annotations

from enum import Enum, StrEnum, auto
from typing import Final, Literal

from local.runtime.machine import Table


class TurnState(StrEnum):
    """What a turn is doing."""

    IDLE = "IDLE"
    RECEIVING = "RECEIVING"
    GENERATING = "GENERATING"
    DISPATCHING_TOOL = "DISPATCHING_TOOL"
    WAITING_FOR_LEAVE = "WAITING_FOR_LEAVE"
    WAITING_FOR_TOOL = "WAITING_FOR_TOOL"
    PUBLISHING = "PUBLISHING"


class TurnAction(StrEnum):
    """What can happen to a turn."""

    RECEIVE_QUERY = "RECEIVE_QUERY"
    START_GENERATION = "START_GENERATION"
    DISPATCH_TOOL = "DISPATCH_TOOL"
    ASK_LEAVE = "ASK_LEAVE"
    LEAVE_DECIDED = "LEAVE_DECIDED"
    REQUEST_SENT = "REQUEST_SENT"
    TOOL_RESULT = "TOOL_RESULT"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    FINISH = "FINISH"
    PUBLISHED = "PUBLISHED"
    CANCEL = "CANCEL"
    FAIL = "FAIL"


Status = Literal["answered", "cancelled", "failed"]


class Next(Enum):
    """What a turn wants done."""

    CALL_MODEL = auto()
    CALL_TOOLS = auto()
    PUBLISH = auto()


CALLING = frozenset({TurnState.DISPATCHING_TOOL, TurnState.WAITING_FOR_LEAVE, TurnState.WAITING_FOR_TOOL})

TABLE: Final[Table[TurnState, TurnAction]] = {
    TurnState.IDLE: {
        TurnAction.RECEIVE_QUERY: TurnState.RECEIVING,
    },
    TurnState.RECEIVING: {
        TurnAction.START_GENERATION: TurnState.GENERATING,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.GENERATING: {
        TurnAction.DISPATCH_TOOL: TurnState.DISPATCHING_TOOL,
        TurnAction.FINISH: TurnState.PUBLISHING,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.DISPATCHING_TOOL: {
        TurnAction.ASK_LEAVE: TurnState.WAITING_FOR_LEAVE,
        TurnAction.REQUEST_SENT: TurnState.WAITING_FOR_TOOL,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.WAITING_FOR_LEAVE: {
        TurnAction.LEAVE_DECIDED: TurnState.DISPATCHING_TOOL,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.WAITING_FOR_TOOL: {
        TurnAction.TOOL_RESULT: TurnState.GENERATING,
        TurnAction.TOOL_TIMEOUT: TurnState.GENERATING,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
    TurnState.PUBLISHING: {
        TurnAction.PUBLISHED: TurnState.IDLE,
        TurnAction.CANCEL: TurnState.PUBLISHING,
        TurnAction.FAIL: TurnState.PUBLISHING,
    },
}
