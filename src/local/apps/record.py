"""What is on record of a query: for whoever missed it on the live bus."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from local.apps.judgements import JUDGEMENTS, MAIN_RESPONDENT, Judgement
from local.bus.bus import Bus
from local.errors import LocalError, MalformedFrame, RecordUnreadable
from local.journal.client.record import read_on_record
from local.protocol.envelope import Envelope
from local.protocol.messages import (
    ConversationRequest,
    ConversationResult,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
)

_NAMESPACE = uuid.UUID("a2f8d1a6-0f4e-4a52-9a2e-6f4a3f0f7c11")
_OUTCOMES: dict[str, type[QueryFailed] | type[ResponseGeneration]] = {
    kind.subject: kind for kind in (QueryFailed, ResponseGeneration)
}
_JUDGEMENTS: dict[str, type[Judgement]] = {kind.subject: kind for kind in JUDGEMENTS}


class QueryDeleted(LocalError):
    """A query of this id was asked once, and it, or how it ended, was deleted."""

    kind = "deleted"

    def __init__(self, query_id: str) -> None:
        super().__init__(f"query_id {query_id} was used for a query that was deleted; take a new one")


def query_envelope_id(query_id: str) -> str:
    """The id of the envelope that asks a query: always the same, so that asking it twice is one query."""
    return uuid.uuid5(_NAMESPACE, query_id).hex


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A query on record, and how it ended, if it has; `answers` has the envelopes of those that respondents gave."""

    asked: QueryReceived
    envelope: Envelope
    outcome: QueryFailed | ResponseGeneration | None = None
    outcome_envelope: Envelope | None = None
    answers: Mapping[str, Envelope] = field(default_factory=dict)

    def ended(self, outcome: QueryFailed | ResponseGeneration, envelope: Envelope) -> RecordedQuery:
        """The same with what one respondent made of it; the first word of each counts."""
        found, respondent = self, outcome.respondent_id
        if isinstance(outcome, ResponseGeneration) and outcome.status == "answered":
            found = replace(found, answers={respondent: envelope, **found.answers})
        if respondent == MAIN_RESPONDENT and found.outcome is None:
            found = replace(found, outcome=outcome, outcome_envelope=envelope)
        return found

    def as_json(self) -> dict[str, Any]:
        """In the words of the generator's record."""
        outcome = self.outcome
        return {
            "query_id": self.asked.query_id,
            "session_id": self.envelope.session_id or self.asked.query_id,
            "query": self.asked.query,
            "status": _status(outcome),
            "outcome_subject": None if outcome is None else outcome.subject,
            "outcome": None if outcome is None else outcome.model_dump(mode="json"),
        }


async def read_query(bus: Bus, query_id: str, seconds: float) -> RecordedQuery | None:
    """A query on record; None if there is none.

    The journal loses the answers that rest on a deleted memory, and the generator only what they have recalled of it.
    So these are the generator's to tell. Raises `QueryDeleted`, `RequestTimeout` while one of the two is away, and
    `RecordUnreadable`.
    """
    found: RecordedQuery | None = None
    removed: Envelope | None = None
    subjects = (QueryReceived.subject, *_OUTCOMES)
    async for envelope, is_redacted in read_on_record(bus, query_id, subjects, seconds):
        if not is_redacted:
            found = await _with(bus, found, envelope)
        elif envelope.subject == QueryReceived.subject:
            raise QueryDeleted(query_id)
        else:
            removed = envelope
    if found is None or found.outcome is not None or removed is None:
        return found
    return await _as_the_generator_has_it(bus, found, removed, seconds)


async def read_judgements(bus: Bus, query_id: str, seconds: float) -> list[tuple[Judgement, Envelope]]:
    """What was said of the answers to a query, oldest first. Raises `RequestTimeout` and `RecordUnreadable`."""
    found: list[tuple[Judgement, Envelope]] = []
    async for envelope, is_redacted in read_on_record(bus, query_id, _JUDGEMENTS, seconds):
        if is_redacted:
            continue
        try:
            found.append((await bus.decode(_JUDGEMENTS[envelope.subject], envelope), envelope))
        except MalformedFrame as error:
            bus.reject(str(error), envelope.payload)
    return found


async def _with(bus: Bus, found: RecordedQuery | None, envelope: Envelope) -> RecordedQuery | None:
    if envelope.subject == QueryReceived.subject:
        return found or RecordedQuery(await bus.decode(QueryReceived, envelope), envelope)
    try:
        outcome = await bus.decode(_OUTCOMES[envelope.subject], envelope)
    except MalformedFrame:
        return found
    return None if found is None else found.ended(outcome, envelope)


async def _as_the_generator_has_it(bus: Bus, found: RecordedQuery, removed: Envelope, seconds: float) -> RecordedQuery:
    """With the outcome that has left the journal; without, if it is open, and what has left is another respondent's."""
    request = ConversationRequest(verb="query", key=found.asked.query_id)
    result = await bus.request(request, ConversationResult, seconds)
    if result.error is not None:
        if result.error.kind == "not_found":
            raise QueryDeleted(found.asked.query_id)
        raise RecordUnreadable(result.error.message)
    record = result.value or {}
    if record.get("outcome") is None:
        return found
    return found.ended(_OUTCOMES[record["outcome_subject"]].model_validate(record["outcome"]), removed)


def _status(outcome: QueryFailed | ResponseGeneration | None) -> str:
    if outcome is None:
        return "open"
    if isinstance(outcome, ResponseGeneration):
        return outcome.status
    return "cancelled" if outcome.error.kind == "cancelled" else "failed"
