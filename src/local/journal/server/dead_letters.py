"""Messages that a durable consumer is given no more, and that this is told."""

from __future__ import annotations

import logging

from local.bus.bus import Bus
from local.journal.core.durable_consumer import DeadLetter
from local.journal.store.store import JournalStore
from local.protocol.envelope import Envelope, Trace
from local.protocol.messages import BusDead, ErrorInfo

log = logging.getLogger(__name__)


class DeadLetters:
    """The dead letters of one journal."""

    def __init__(self, bus: Bus, store: JournalStore) -> None:
        self._bus, self._store = bus, store

    async def tell(self, dead: DeadLetter) -> Envelope:
        """The `bus.dead` that tells of a message that a consumer is given no more."""
        [found] = await self._store.read(limit=1, after=dead.number - 1)
        log.error("message %d is given up for %s: %s", dead.number, dead.consumer, dead.reason)
        message = BusDead(
            participant=dead.consumer,
            envelope_id=found.entry.envelope_id,
            dead_subject=found.entry.subject,
            error=ErrorInfo(kind="gave_up", message=dead.reason),
        )
        trace = Trace(found.entry.correlation_id, found.entry.envelope_id, found.entry.session_id)
        return self._bus.seal(message, trace)
