"""One remembered exchange, what is known about it, and the facts a user stated in it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

USERS_RESPONDENT = "A"  # the respondent the user talks to; what any other one said is kept, and never found by a search
_NAMESPACE = uuid.UUID("5d0a6a3e-52a6-4f0c-9c37-0e8f3d1c7b52")


class Origin(StrEnum):
    """Where the content comes from. What is not the user's own word never becomes a fact about the user."""

    USER = "user"
    ASSISTANT = "assistant"
    WEB = "web"
    TOOL = "tool"


class Ingested(StrEnum):
    """What became of an exchange that was to be stored."""

    NEW = "new"
    KNOWN = "known"  # stored before; that one stays as it is
    RATED = "rated"  # stored, now or before, and noted with a rating that had come first and was not told yet
    DELETED = "deleted"  # the user has had it deleted; it stays so
    NOT_KEPT = "not_kept"  # of an incognito session

    @property
    def is_stored(self) -> bool:
        """Whether there is an engram of it now."""
        return self in (Ingested.NEW, Ingested.KNOWN, Ingested.RATED)


@dataclass(frozen=True, slots=True)
class EngramDraft:
    """What is to be remembered. `asked_at` is in seconds since 1970, `recalled` the engrams that the answer rests on:
    what they got from the web or a tool, this one has from there, too. `tainted` says that words of strangers were
    before the model that answered; in one that is not `by_user` nobody has stated a fact."""

    query_id: str
    session_id: str
    user_id: str
    query: str
    answer: str
    asked_at: float
    origin: Origin = Origin.ASSISTANT
    respondent_id: str = USERS_RESPONDENT
    incognito: bool = False
    recalled: tuple[str, ...] = ()
    tainted: bool = False
    by_user: bool = True

    @property
    def engram_id(self) -> str:
        """The id it is remembered by: the same whenever it is stored, even after the store was lost."""
        return engram_id(self.query_id, self.respondent_id)


@dataclass(frozen=True, slots=True)
class AnswerRating:
    """What a user says of an answer that was given in a session: `sentiment` is 1 or -1, None takes it back. `rated_at`
    is in seconds since 1970."""

    query_id: str
    respondent_id: str
    session_id: str
    sentiment: int | None
    rated_at: float

    @property
    def engram_id(self) -> str:
        """The id of the answer's engram, whether that is stored or not."""
        return engram_id(self.query_id, self.respondent_id)


@dataclass(frozen=True, slots=True)
class Engram:
    """A stored exchange and what was said about it since.

    `score` is the critic's, 1 to 5; `sentiment` the user's latest rating, -1, 1, or None; `winner` the
    respondent whose answer won when the two were compared, or "tie". `superseded_by` is the engram that
    tells what has become of all the facts stated in this one. `recalled` are the engrams that the answer rests on.
    `intent` and `entities` are what a model made of the query, later. `tainted` is as in the draft. `note_of` is None
    but for a note of the assistant's: the query in which it was written down; `answer` is its text, `query` its
    category.
    """

    engram_id: str
    query_id: str
    respondent_id: str
    session_id: str
    user_id: str
    query: str
    answer: str
    origin: Origin
    asked_at: float
    pinned: bool = False
    score: float | None = None
    sentiment: int | None = None
    winner: str | None = None
    superseded_by: str | None = None
    recalled: tuple[str, ...] = ()
    intent: str | None = None
    entities: tuple[str, ...] = ()
    tainted: bool = False
    note_of: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was said about an engram: `what` (pinned, score, sentiment, winner, withdrawn) became `value`
    then."""

    at: float
    what: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact stated in an exchange. `slot` names what it is about: "how I take my coffee". `origin` is whose word it
    is; only the user's own makes a fact. `certain` is False where the user was not sure, `confirmed` where a model says
    so that has failed its self-test."""

    engram_id: str
    slot: str
    value: str
    stated_at: float
    origin: Origin
    certain: bool = True
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A stored statement: current as long as `superseded_at` is None, if it is `confirmed`. Of several current ones of
    one slot those that are `added` hold beside the others, as one can have two allergies; of what is not `certain`
    nobody has said whether it holds."""

    fact_id: int
    user_id: str
    engram_id: str
    slot: str
    value: str
    stated_at: float
    superseded_by: int | None = None
    superseded_at: float | None = None
    certain: bool = True
    added: bool = False
    confirmed: bool = True


def engram_id(query_id: str, respondent_id: str) -> str:
    """The id of the engram of one respondent's answer to a query."""
    return uuid.uuid5(_NAMESPACE, f"{respondent_id}/{query_id}").hex


def slot_key(slot: str) -> str:
    """The key of a slot, equal for every way to write it."""
    return " ".join(slot.casefold().split())
