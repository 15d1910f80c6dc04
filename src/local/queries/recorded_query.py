"""All that the journal has of one query: headers, and what can be read of it."""

from __future__ import annotations

from typing import NamedTuple

from local.bus.bus import Bus
from local.errors import MalformedFrame
from local.journal.client.record import entries_on_record
from local.protocol.envelope import Envelope, decode
from local.protocol.journal_messages import JournalEntry, JournalRead
from local.protocol.memory_messages import MemoryClassified, MemoryIngested
from local.protocol.message import Message
from local.protocol.messages import BusDead
from local.queries.message_summary import message_summary
from local.queries.query_events import kind_of
from local.queries.query_trace import QueryTrace

PAGE = 20
MOST = 5_000  # messages of one query; a turn makes some dozens
_ALSO = {kind.subject: kind for kind in (MemoryIngested, MemoryClassified, BusDead)}


class RecordedMessage(NamedTuple):
    """One message on record, with its number there."""

    entry: JournalEntry
    envelope: Envelope

    @classmethod
    def of(cls, entry: JournalEntry) -> RecordedMessage:
        """What lies in the journal."""
        return cls(entry, decode(entry.frame.encode()))

    def as_json(self) -> dict[str, object]:
        """The header with number and size in bytes, and a short line of what it says."""
        envelope = self.envelope
        return {
            **envelope.header(),
            "in_reply_to": envelope.in_reply_to,
            "session_id": envelope.session_id,
            "seq": self.entry.number,
            "size": len(envelope.payload),
            "recorded": True,
            "redacted": self.entry.redacted,
            "summary": message_summary(envelope.subject, envelope.payload),
        }


async def read_recorded(bus: Bus, query_id: str, seconds: float) -> list[RecordedMessage]:
    """Everything on record that belongs to a query, oldest first. Raises `RequestTimeout` while there is no journal,
    and `RecordUnreadable`."""
    found: list[RecordedMessage] = []
    async for entry in entries_on_record(bus, JournalRead(correlation_id=query_id, limit=PAGE), seconds):
        found.append(RecordedMessage.of(entry))
        if len(found) >= MOST:
            break
    return found


async def trace_of(bus: Bus, query_id: str, recorded: list[RecordedMessage]) -> QueryTrace:
    """What a query's time went into."""
    trace = QueryTrace(query_id)
    for entry, envelope in recorded:
        kind = kind_of(envelope.subject) or _ALSO.get(envelope.subject)
        if entry.redacted:
            trace.hear(None, envelope)
        elif kind is not None:
            trace.hear(await _read(bus, kind, envelope), envelope)
    return trace


async def _read(bus: Bus, kind: type[Message], envelope: Envelope) -> Message | None:
    """A message; what cannot be read is as good as removed."""
    try:
        return await bus.decode(kind, envelope)
    except MalformedFrame:
        return None
