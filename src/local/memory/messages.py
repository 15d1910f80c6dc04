"""The messages of the memory. Engrams belong to the user named in the envelope, else to `OWNER`."""

from __future__ import annotations

import uuid
from typing import Literal

from pydantic import Field

from local.bus.message import MAIN_RESPONDENT, Data, Delivery, ErrorInfo, Message
from local.bus.messages import RecallScore
from local.core.files import OWNER as OWNER

RECALLED = "engram:"  # begins the source of a tool's result that is made of engrams; the engram's id follows
MemoryVerb = Literal[
    "search",
    "list",
    "get",
    "delete",
    "pin",
    "unpin",
    "facts",
    "confirm_fact",
    "drop_fact",
    "write_fact",
    "repeated",
    "export",
    "embed",
    "kinds",
    "notes",
    "restore",
    "entries",
    "edit",
]

OnlySome = Literal["pinned", "rated", "poor", "untrusted"]

_ENGRAMS = uuid.UUID("5d0a6a3e-52a6-4f0c-9c37-0e8f3d1c7b52")


def engram_id(query_id: str, respondent_id: str) -> str:
    """The id of the engram of one respondent's answer to a query."""
    return uuid.uuid5(_ENGRAMS, f"{respondent_id}/{query_id}").hex


HEALTH_SLOT = "said about health"  # of the facts that are a user's own sentences about it
UNCONFIRMED = "not confirmed"  # in brackets behind a fact about health in the prompt that nobody has confirmed


class FactRecord(Data):
    """A fact that a user stated; one without `superseded_at` holds. Times are seconds since 1970. The user was not sure
    of one that is not `certain`; one that is `added` holds beside the others of its slot. One that is not `confirmed`
    is confirmed by nobody: it is not current, and in no prompt unless it is about health. One that is `questioned` may
    be changed by an unconfirmed one. `fact_id` names it. `holds_from` and `holds_until` are the days, as 2026-11-27,
    from and until which it is true, empty if unknown. `of_health`: it is about health or safety.
    """

    slot: str
    value: str
    stated_at: float
    engram_id: str
    superseded_at: float | None = None
    certain: bool = True
    added: bool = False
    confirmed: bool = True
    questioned: bool = False
    fact_id: int = 0
    holds_from: str = ""
    holds_until: str = ""
    of_health: bool = False


class OutdatedFact(Data):
    """A statement of an engram that no longer holds; `values` are what the user said instead, none if that was deleted.
    `engram_ids` are the engrams with all of this.
    """

    slot: str
    value: str
    superseded_at: float
    values: tuple[str, ...] = ()
    engram_ids: tuple[str, ...] = ()


class ChangeRecord(Data):
    """One change of an engram: `what` (pinned, score, sentiment, winner, withdrawn) became `value` then."""

    at: float
    what: str
    value: str | None


class EngramRecord(Data):
    """A remembered exchange. `origin` is the source of its content: user, assistant, web, tool. `score` is the
    critic's, `sentiment` the user's rating, `winner` the respondent whose answer won a comparison, or "tie"; `recalled`
    are the engrams that the answer is based on. `cut` means that `query` or `answer` is shortened; an export has both.
    Of a note of the assistant's, `note_of` is the query in which it was written, `answer` its text, `query` its
    category.
    """

    engram_id: str
    query_id: str
    respondent_id: str
    session_id: str
    query: str
    answer: str
    origin: str
    asked_at: float  # seconds since 1970
    pinned: bool = False
    score: float | None = None
    sentiment: int | None = None
    winner: Literal["A", "B", "tie"] | None = None
    superseded_by: str | None = None
    recalled: tuple[str, ...] = ()
    intent: str | None = None
    entities: tuple[str, ...] = ()
    tainted: bool = False  # untrusted content was in front of the model that answered
    note_of: str | None = None
    cut: bool = False


class EntryRecord(Data):
    """A current fact or note, as a line of MEMORY.md. `entry_id` names it as long as its text is the same; a `tainted`
    one was written with untrusted content in front of the model, and the user was not sure of one that is not
    `certain`.
    """

    kind: Literal["fact", "note"]
    entry_id: str
    text: str
    category: str = ""
    tainted: bool = False
    certain: bool = True


class EditRecord(Data):
    """A user's edit of an entry: a new one without `entry_id`, a deletion without `text`. `line` is its line in the
    file, 0 if there is none. A fact holds from and until these days, as 2026-11-27, empty if not given.
    """

    line: int
    kind: Literal["fact", "note"]
    entry_id: str = ""
    text: str = ""
    holds_from: str = ""
    holds_until: str = ""


class OutcomeRecord(Data):
    """The effect of an edit on the entry `before`; `why` is its error. It is a conflict if the memory has changed the
    entry since, too: then the entry stays as it is.
    """

    line: int
    kind: Literal["fact", "note"]
    what: Literal["added", "changed", "removed", "conflict", "refused", "nothing"]
    before: str = ""
    text: str = ""
    why: str = ""


class RecalledEngram(EngramRecord):
    """An engram found by a search, best first. `similarity` is the cosine of question and exchange, null if only words
    were searched; `parts` are the parts of `relevance`, by name.
    """

    relevance: float
    similarity: float | None = None
    parts: dict[str, float] = Field(default_factory=dict)
    folded: tuple[str, ...] = ()  # older engrams with equal content
    successor_of: str | None = None  # the found engram that this one has superseded
    outdated: tuple[OutdatedFact, ...] = ()


class MemoryRequest(Message):
    """The request of a tool or a frontend to the memory: search (`query`, `limit`, `not_session`, `not_since`), list
    (`cursor` or `before`, `limit`, `only` some of them), get, delete, pin, unpin (`engram_id`), notes (the assistant's
    current ones; `history`: also the others), restore (one of them: `engram_id`), facts (`history`: also those that no
    longer hold), confirm_fact, drop_fact (`fact_id`, of an unconfirmed one), write_fact (one of `edits`: in place of
    `fact_id`, or a new one), repeated (`of_session`: the engrams elsewhere that had recalled content of it;
    `engram_id`: those that had recalled that one), export (`cursor`), embed (`texts`), kinds (the score of the
    question `query` for each tool that it may ask for, and for none: ""), entries (`cursor`: facts and
    notes as lines of MEMORY.md), edit (`edits` of those, which are made if it `applies` them, else only checked). A
    `cursor` is that of the page before. It is not recorded: a user's searches must not outlive the deletion of their
    results.
    """

    subject = "memory.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "memory"
    verb: MemoryVerb
    query: str = ""
    engram_id: str = ""
    fact_id: int | None = None
    not_session: str | None = None  # its engrams are left out: who asks knows them
    not_since: float | None = None  # seconds since 1970; only those from then on, if it is given
    before: float | None = None  # seconds since 1970
    of_session: str = ""
    cursor: str = ""
    only: OnlySome | None = None  # pinned; rated by the user; graded 1 or 2 or rated bad; with untrusted content
    texts: tuple[str, ...] = ()
    edits: tuple[EditRecord, ...] = ()
    applies: bool | None = None  # as false; unsaid where it is of no concern
    history: bool | None = None  # as false; unsaid where it is of no concern
    limit: int = Field(5, ge=1, le=200)


class MemoryResult(Message):
    """The memory's answer to that. It is not recorded: its content is stored only in the memory."""

    subject = "memory.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    hits: tuple[RecalledEngram, ...] = ()
    nearest: tuple[RecallScore, ...] = ()  # of a search without hits: the closest ones, with their scores
    engrams: tuple[EngramRecord, ...] = ()
    facts: tuple[FactRecord, ...] = ()
    unconfirmed: tuple[FactRecord, ...] = ()  # of facts: those that wait for the user's word, the latest first
    changes: tuple[ChangeRecord, ...] = ()
    repeated_in: tuple[str, ...] = ()  # engrams that had recalled the deleted one, and may repeat it
    entries: tuple[EntryRecord, ...] = ()
    outcomes: tuple[OutcomeRecord, ...] = ()  # one for each edit
    lines: tuple[str, ...] = ()  # of an export, each JSON; of facts, the user's lines in prompts
    pinned: tuple[str, ...] = ()  # of facts: those of the lines that come from pins
    left_out: tuple[str, ...] = ()  # of facts: pinned engrams without room among those lines
    vectors: tuple[tuple[float, ...], ...] = ()  # of length 1, one for each text
    kinds: dict[str, float] = Field({})
    embedded_by: str = ""  # the model that has made them
    cursor: str = ""  # of the next page, empty after the last
    more_before: float | None = None  # of a list: the time of its last engram, null after the last page
    degraded: tuple[str, ...] = ()  # sentences on what could not be searched
    error: ErrorInfo | None = None


class MemoryRecalled(Message):
    """Published by the memory soon after a query is received, unless its user's words are not to be remembered: the
    exchanges of other sessions that clearly fit the question, best first, at most three, often none. Statements that no
    longer hold are not among them. It is not recorded: its content is stored only in the memory.
    """

    subject = "memory.recalled"
    delivery = Delivery.EPHEMERAL
    query_id: str
    hits: tuple[RecalledEngram, ...] = ()


class MemoryIngested(Message):
    """The memory, when an exchange is safely in its store; its words can be found."""

    subject = "memory.ingested"
    delivery = Delivery.CONFIRMED  # it is not published again once the answer is acknowledged
    hurried = False
    engram_id: str
    query_id: str
    respondent_id: str = MAIN_RESPONDENT


class MemoryClassified(Message):
    """Published by the memory when a model has classified an exchange. `facts` are the stored ones, `refused` has the
    reason for each other one.
    """

    subject = "memory.classified"
    engram_id: str
    query_id: str
    status: Literal["classified", "unparsed"]
    intent: str | None = None
    entities: tuple[str, ...] = ()
    facts: tuple[FactRecord, ...] = ()
    refused: tuple[str, ...] = ()
    model: str = ""


class MemoryAnnotated(Message):
    """The memory, when a judgement of an answer is noted at its engram: score, sentiment or winner; when a user has
    pinned it (1) or taken the pin out (0); or when a user has a note hold again (restored)."""

    subject = "memory.annotated"
    delivery = Delivery.CONFIRMED
    hurried = False
    engram_id: str
    query_id: str
    respondent_id: str = MAIN_RESPONDENT
    what: Literal["score", "sentiment", "winner", "pinned", "restored"]
    value: float | str | None


class MemoryDeleted(Message):
    """Published by the memory when a user has had an engram deleted: every participant deletes what it stores of that
    exchange.
    """

    subject = "memory.deleted"
    delivery = Delivery.CONFIRMED
    engram_id: str
    query_id: str
    respondent_id: str = MAIN_RESPONDENT


class UserFacts(Message):
    """Published by the memory when the lines of a user change that are in every prompt (current facts and pins), and at
    its start for each user who has any. It does not hold the lines: participants request them (`memory.request.facts`).
    """

    subject = "memory.facts"
    delivery = Delivery.EPHEMERAL
    of_user: str
