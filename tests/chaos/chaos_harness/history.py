"""What users remember: their questions, when these were accepted, and every outcome that they read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Form(StrEnum):
    """How a client asks."""

    WHOLE = "whole"  # the answer of POST /query
    POLL = "poll"  # "wait": false, then GET /query/{id} until it has ended
    STREAM = "stream"  # server-sent events, resumed after a break


class Question(NamedTuple):
    """`text` is like no other's, and `expects` must stand in the answer.

    `is_effect`: it makes the tool leave a line with `text` outside.
    """

    query_id: str
    session_id: str
    text: str
    expects: str
    is_effect: bool = False


class Outcome(NamedTuple):
    """How a query ended. `text` is the answer, or the kind of the error where there is none."""

    status: str  # answered, cancelled, failed
    text: str


class Read(NamedTuple):
    """A client read a terminal outcome; `at` is seconds of the client's clock."""

    form: Form
    outcome: Outcome
    at: float


@dataclass(slots=True)
class Asked:
    """One query as its client remembers it. Seconds of the client's clock."""

    question: Question
    form: Form
    asked_at: float
    accepted_at: float | None = None
    reads: list[Read] = field(default_factory=list)
    forgotten_at: list[float] = field(default_factory=list)  # when it was told that there is no such query

    @property
    def outcome(self) -> Outcome | None:
        """What it read first."""
        return self.reads[0].outcome if self.reads else None

    @property
    def seconds(self) -> float | None:
        """From asking to the first outcome."""
        return self.reads[0].at - self.asked_at if self.reads else None
