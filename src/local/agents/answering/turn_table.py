"""The states of a turn, the actions on it, and which leads where."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from local.runtime.machine import Table


class State(StrEnum):
    """What a turn is doing."""

    IDLE = "IDLE"
    RECEIVING = "RECEIVING"
    GENERATING = "GENERATING"
    DISPATCHING_TOOL = "DISPATCHING_TOOL"
    WAITING_FOR_TOOL = "WAITING_FOR_TOOL"
    PUBLISHING = "PUBLISHING"


class Action(StrEnum):
    """What can happen to a turn."""

    RECEIVE_QUERY = "RECEIVE_QUERY"
    START_GENERATION = "START_GENERATION"
    DISPATCH_TOOL = "DISPATCH_TOOL"
    REQUEST_SENT = "REQUEST_SENT"
    TOOL_RESULT = "TOOL_RESULT"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    FINISH = "FINISH"
    PUBLISHED = "PUBLISHED"
    CANCEL = "CANCEL"
    FAIL = "FAIL"


TABLE: Final[Table[State, Action]] = {
    State.IDLE: {
        Action.RECEIVE_QUERY: State.RECEIVING,
    },
    State.RECEIVING: {
        Action.START_GENERATION: State.GENERATING,
        Action.CANCEL: State.PUBLISHING,
        Action.FAIL: State.PUBLISHING,
    },
    State.GENERATING: {
        Action.DISPATCH_TOOL: State.DISPATCHING_TOOL,
        Action.FINISH: State.PUBLISHING,
        Action.CANCEL: State.PUBLISHING,
        Action.FAIL: State.PUBLISHING,
    },
    State.DISPATCHING_TOOL: {
        Action.REQUEST_SENT: State.WAITING_FOR_TOOL,
        Action.CANCEL: State.PUBLISHING,
        Action.FAIL: State.PUBLISHING,
    },
    State.WAITING_FOR_TOOL: {
        Action.TOOL_RESULT: State.GENERATING,
        Action.TOOL_TIMEOUT: State.GENERATING,
        Action.CANCEL: State.PUBLISHING,
        Action.FAIL: State.PUBLISHING,
    },
    State.PUBLISHING: {
        Action.PUBLISHED: State.IDLE,
        Action.CANCEL: State.PUBLISHING,
        Action.FAIL: State.PUBLISHING,
    },
}
