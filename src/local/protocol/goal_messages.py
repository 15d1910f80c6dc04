"""Goals: what doors ask of the heartbeat, and what it says of them."""

from __future__ import annotations

from typing import Literal

from local.protocol.message import Data, Delivery, ErrorInfo, Message

GoalVerb = Literal["list", "set", "done", "drop", "reopen", "seen"]
GoalStateName = Literal["active", "done", "dropped"]


class GoalRecord(Data):
    """A goal as everybody knows it. Times are seconds since 1970. `checks` counts how often it was looked at, `quiet`
    after how many of them nothing was said; `words` is what was said last, for the time `words_at`."""

    goal_id: str
    text: str
    schedule: str
    time_zone: str
    state: GoalStateName
    created_at: float
    created_by: str
    next_at: float | None = None
    checks: int = 0
    quiet: int = 0
    words: str = ""
    words_at: float | None = None
    is_seen: bool = True


class GoalChanged(Message):
    """The heartbeat, when a goal is set, done, dropped or open again, `by` whom; itself if a check has shown that it is
    reached."""

    subject = "goal.changed"
    delivery = Delivery.CONFIRMED
    goal_id: str
    text: str
    state: GoalStateName
    by: str


class GoalSaid(Message):
    """The heartbeat, to the owner, when a check has something to say: for the time `due_at`, resting on the exchanges
    with the engrams `sources`; `left_out` counts those with words of strangers, which it does not read. No model is
    shown it but that of the next check."""

    subject = "goal.said"
    delivery = Delivery.CONFIRMED
    goal_id: str
    goal: str
    text: str
    due_at: float
    sources: tuple[str, ...]
    left_out: int = 0
    is_done: bool = False
    model: str


class GoalRequest(Message):
    """A door, for goals: list, set (`text`, `schedule`, `by`), done, drop, reopen, or seen (the words of
    `goal_id` for the time `words_at`).
    Not on record, as what it asks for may be refused."""

    subject = "goal.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "reflection"
    verb: GoalVerb
    goal_id: str = ""
    text: str = ""
    schedule: str = ""
    words_at: float = 0.0
    by: str = ""


class GoalResult(Message):
    """The heartbeat, to that: the goals, all or the one that was meant."""

    subject = "goal.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    goals: tuple[GoalRecord, ...] = ()
    error: ErrorInfo | None = None
