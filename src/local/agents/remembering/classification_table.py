"""The states of the classification of exchanges, the actions on it, and which leads where."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from local.runtime.machine import Table


class State(StrEnum):
    """What the classification is doing."""

    IDLE = "IDLE"
    CLASSIFYING = "CLASSIFYING"
    STORING = "STORING"


class Action(StrEnum):
    """What can happen to it."""

    BEGIN = "BEGIN"
    RETRY = "RETRY"  # a reply could not be read
    DECIDE = "DECIDE"  # one could, or none of them
    STORED = "STORED"
    FAIL = "FAIL"  # the exchange stays in line


TABLE: Final[Table[State, Action]] = {
    State.IDLE: {
        Action.BEGIN: State.CLASSIFYING,
    },
    State.CLASSIFYING: {
        Action.RETRY: State.CLASSIFYING,
        Action.DECIDE: State.STORING,
        Action.FAIL: State.IDLE,
    },
    State.STORING: {
        Action.STORED: State.IDLE,
        Action.FAIL: State.IDLE,
    },
}
