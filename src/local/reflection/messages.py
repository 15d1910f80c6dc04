"""Dreams, thoughts, goals and the routines that make them: what is published, requested and answered."""

from __future__ import annotations

from typing import Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message

# Dreams: what is made of conversations while nobody asks anything.

DREAM = "dream"  # the category of the notes


class DreamNote(Data):
    """One thing that was seen in conversations, and the engrams of the exchanges that it rests on. `engram_id` is what
    the memory will know it by."""

    engram_id: str
    text: str
    sources: tuple[str, ...]


class DreamMade(Message):
    """The dreamer, when it has looked back. The memory keeps what it saw as notes. `read` counts the exchanges between
    the times `since` and `until` (seconds since 1970), `left_out` those with untrusted content, which it does not read.
    `proposes_soul` says that a change of the soul waits for its owner, `proposes_skill` for which skill one does."""

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
    """The heartbeat, when a goal is set, done, dropped or open again; `by` is who changed it, the heartbeat if a check
    has shown that the goal is reached."""

    subject = "goal.changed"
    delivery = Delivery.CONFIRMED
    goal_id: str
    text: str
    state: GoalStateName
    by: str


class GoalSaid(Message):
    """The heartbeat, to the owner, when a check has something to say: for the time `due_at`, resting on the exchanges
    with the engrams `sources`; `left_out` counts those with untrusted content, which it does not read. Only the model
    of the next check is shown it."""

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
    """A frontend, for goals: list, set (`text`, `schedule`, `by`), done, drop, reopen, or seen (the words of `goal_id`
    for the time `words_at`). Not on record, because what it asks for may be refused."""

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


# What is done while nobody asks anything: how a routine is, and what it thinks.

RoutineName = Literal["dreamer", "monologue", "heartbeat"]
RoutineVerb = Literal["status", "now", "on", "off"]


class RoutineRecord(Data):
    """How a routine is. `why` says what it waits for, `problem` what was wrong last; `read_until` is the time of the
    last exchange that it has read, `done_at` when it was done last, both in seconds since 1970, and `tokens_today` what
    it has used of `tokens_per_day`."""

    is_on: bool = False
    why: str = ""
    problem: str = ""
    done_at: float | None = None
    read_until: float | None = None
    tokens_today: int = 0
    tokens_per_day: int = 0


class MonologueThought(Message):
    """The inner monologue, when it has thought about what happened lately: about the exchanges with the engrams
    `sources`; `left_out` counts those with untrusted content, which it does not read. No model is shown it."""

    subject = "monologue.thought"
    delivery = Delivery.CONFIRMED
    hurried = False
    thought_id: str
    text: str
    sources: tuple[str, ...]
    left_out: int
    model: str


class RoutineRequest(Message):
    """A frontend that asks how a routine is (status), runs it at once (now), or switches it on or off, also across
    restarts."""

    subject = "reflection.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "reflection"
    verb: RoutineVerb
    routine: RoutineName


class RoutineResult(Message):
    """`reflection`, to that: how the routine is then."""

    subject = "reflection.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    state: RoutineRecord = RoutineRecord()
    error: ErrorInfo | None = None
