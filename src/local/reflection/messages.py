"""The messages about dreams, thoughts, goals and the routines that make them: publications, requests and answers."""

from __future__ import annotations

from typing import Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message

# Dreams: notes on conversations, written while the system is idle.

DREAM = "dream"  # the category of the notes


class DreamNote(Data):
    """One note of a dream, and the engrams of the exchanges that it is based on. `engram_id` is its future id in the
    memory.
    """

    engram_id: str
    text: str
    sources: tuple[str, ...]


class DreamMade(Message):
    """A dream, published by the dreamer. The memory stores its notes. `read` counts the exchanges between the times
    `since` and `until` (seconds since 1970), `left_out` those with untrusted content, which are not read.
    `proposes_soul` says that a change of the soul waits for the owner, `proposes_skill` names the skill for which one
    does.
    """

    subject = "dream.made"
    delivery = Delivery.CONFIRMED
    hurried = False
    dream_id: str
    notes: tuple[DreamNote, ...]
    read: int
    left_out: int
    since: float
    until: float
    model: str
    proposes_soul: bool = False
    proposes_skill: str = ""


GoalVerb = Literal["list", "set", "done", "drop", "reopen", "seen"]
GoalStateName = Literal["active", "done", "dropped"]


class GoalRecord(Data):
    """A goal as it is published. Times are seconds since 1970. `checks` counts its checks, `quiet` those without a
    remark; `words` is the latest remark, of the time `words_at`.
    """

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
    """Published by the heartbeat when a goal is set, done, dropped or open again; `by` names who changed it: the
    heartbeat if a check has shown that the goal is reached.
    """

    subject = "goal.changed"
    delivery = Delivery.CONFIRMED
    goal_id: str
    text: str
    state: GoalStateName
    by: str


class GoalSaid(Message):
    """A remark on a goal, published by the heartbeat for the owner: of the check at the time `due_at`, based on the
    exchanges with the engrams `sources`; `left_out` counts those with untrusted content, which are not read. Only the
    model of the next check reads it.
    """

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
    """A frontend's request about goals: list, set (`text`, `schedule`, `by`), done, drop, reopen, or seen (the remark
    on `goal_id` of the time `words_at`). It is not recorded, because it may be refused.
    """

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
    """The heartbeat's answer to a `GoalRequest`: all goals or the requested one."""

    subject = "goal.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    goals: tuple[GoalRecord, ...] = ()
    error: ErrorInfo | None = None


# Work while the system is idle: the state of a routine, and its thoughts.

RoutineName = Literal["dreamer", "monologue", "heartbeat"]
RoutineVerb = Literal["status", "now", "on", "off"]


class RoutineRecord(Data):
    """The state of a routine. `why` says what it waits for, `problem` its latest problem; `read_until` is the time of
    the last exchange that it has read, `done_at` its last run, both in seconds since 1970, and `tokens_today` its use
    of `tokens_per_day`.
    """

    is_on: bool = False
    why: str = ""
    problem: str = ""
    done_at: float | None = None
    read_until: float | None = None
    tokens_today: int = 0
    tokens_per_day: int = 0


class MonologueThought(Message):
    """A thought of the inner monologue, about the exchanges with the engrams `sources`; `left_out` counts those with
    untrusted content, which are not read. No model reads it.
    """

    subject = "monologue.thought"
    delivery = Delivery.CONFIRMED
    hurried = False
    thought_id: str
    text: str
    sources: tuple[str, ...]
    left_out: int
    model: str


class RoutineRequest(Message):
    """A frontend's request about a routine: report its state (status), run it now (now), or switch it on or off, also
    across restarts.
    """

    subject = "reflection.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "reflection"
    verb: RoutineVerb
    routine: RoutineName


class RoutineResult(Message):
    """The answer of `reflection` to a `RoutineRequest`: the state of the routine afterwards."""

    subject = "reflection.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    state: RoutineRecord = RoutineRecord()
    error: ErrorInfo | None = None
