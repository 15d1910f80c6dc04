"""The states of a critic's work on one answer, the actions on it, and which leads where."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from local.runtime.machine import Table


class State(StrEnum):
    """What a critic is doing about an answer."""

    IDLE = "IDLE"
    GRADING = "GRADING"
    COMPARING = "COMPARING"
    PUBLISHING = "PUBLISHING"


class Action(StrEnum):
    """What can happen to it."""

    GRADE = "GRADE"
    COMPARE = "COMPARE"
    JUDGED = "JUDGED"
    UNPARSED = "UNPARSED"
    FAIL = "FAIL"
    PUBLISHED = "PUBLISHED"


_ENDS = {
    Action.JUDGED: State.PUBLISHING,
    Action.UNPARSED: State.PUBLISHING,
    Action.FAIL: State.PUBLISHING,
}

TABLE: Final[Table[State, Action]] = {
    State.IDLE: {
        Action.GRADE: State.GRADING,
        Action.COMPARE: State.COMPARING,
    },
    State.GRADING: _ENDS,
    State.COMPARING: _ENDS,
    State.PUBLISHING: {
        Action.PUBLISHED: State.IDLE,
    },
}
