"""What is done while nobody asks anything: how a routine is, and what it thinks."""

from __future__ import annotations

from typing import Literal

from local.protocol.message import Data, Delivery, ErrorInfo, Message

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
    """The inner monologue, when it has thought of what has happened lately: of the exchanges with the engrams
    `sources`; `left_out` counts those with words of strangers, which it does not read. No model is shown it."""

    subject = "monologue.thought"
    delivery = Delivery.CONFIRMED
    hurried = False
    thought_id: str
    text: str
    sources: tuple[str, ...]
    left_out: int
    model: str


class RoutineRequest(Message):
    """A door, for how a routine is (status), to have it done without waiting for its time (now), or to switch it on or
    off while it runs; that outlives a restart."""

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
