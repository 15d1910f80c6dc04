"""What the journal has of a query: for whoever missed it on the live bus."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from local.bus.bus import Bus
from local.errors import LocalError, MalformedFrame
from local.protocol.envelope import Envelope, decode
from local.protocol.journal_messages import JournalEntries, JournalRead
from local.protocol.messages import QueryFailed, QueryReceived, ResponseGeneration

MAIN_RESPONDENT = "A"
_NAMESPACE = uuid.UUID("a2f8d1a6-0f4e-4a52-9a2e-6f4a3f0f7c11")
_OUTCOMES: dict[str, type[QueryFailed] | type[ResponseGeneration]] = {
    kind.subject: kind for kind in (QueryFailed, ResponseGeneration)
}


class RecordUnreadable(LocalError):
    """The journal could not read its file; the text is its own."""

    kind = "unavailable"


class QueryDeleted(LocalError):
    """A query of this id was asked once, and was deleted with its session."""

    kind = "deleted"

    def __init__(self, query_id: str) -> None:
        super().__init__(f"query_id {query_id} was used for a query that was deleted; take a new one")


def query_envelope_id(query_id: str) -> str:
    """The id of the envelope that asks a query: always the same, so that asking it twice is one query."""
    return uuid.uuid5(_NAMESPACE, query_id).hex


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A query on record, and how it ended, if it has."""

    asked: QueryReceived
    envelope: Envelope
    outcome: QueryFailed | ResponseGeneration | None = None
    outcome_envelope: Envelope | None = None

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

    Raises `QueryDeleted`, `RequestTimeout` while there is no journal, and `RecordUnreadable`.
    """
    request = JournalRead(subjects=(QueryReceived.subject, *_OUTCOMES), correlation_id=query_id, limit=10)
    found: RecordedQuery | None = None
    while True:
        page = await bus.request(request, JournalEntries, seconds)
        if page.error is not None:
            raise RecordUnreadable(page.error.message)
        for entry in page.entries:
            envelope = decode(entry.frame.encode())
            if not entry.redacted:
                found = await _with(bus, found, envelope)
            elif envelope.subject == QueryReceived.subject:
                raise QueryDeleted(query_id)
        if not page.more or not page.entries:
            return found
        request = request.model_copy(update={"after": page.entries[-1].number})


async def _with(bus: Bus, found: RecordedQuery | None, envelope: Envelope) -> RecordedQuery | None:
    if envelope.subject == QueryReceived.subject:
        return found or RecordedQuery(await bus.decode(QueryReceived, envelope), envelope)
    try:
        outcome = await bus.decode(_OUTCOMES[envelope.subject], envelope)
    except MalformedFrame:
        return found
    if found is None or found.outcome is not None or outcome.respondent_id != MAIN_RESPONDENT:
        return found
    return RecordedQuery(found.asked, found.envelope, outcome, envelope)


def _status(outcome: QueryFailed | ResponseGeneration | None) -> str:
    if outcome is None:
        return "open"
    if isinstance(outcome, ResponseGeneration):
        return outcome.status
    return "cancelled" if outcome.error.kind == "cancelled" else "failed"
