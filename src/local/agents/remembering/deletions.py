"""How memories are deleted everywhere: from the store, then from the journal, and then everybody is told."""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import suppress

from local.agents.remembering.records import deleted, engram_record
from local.bus.bus import Bus
from local.errors import (
    JournalFull,
    LocalError,
    NotConfirmed,
    NotOnRecord,
    PublishTimeout,
    RecordNotRedacted,
    RequestTimeout,
    StoreFailed,
)
from local.journal.client.record import redact_on_record
from local.protocol.envelope import Trace, new_id
from local.protocol.journal_messages import JournalRedact
from local.protocol.memory_messages import EngramRecord, MemoryDeleted
from local.services.engrams.record import Deletion
from local.services.engrams.service import EngramService

log = logging.getLogger(__name__)

JOURNAL_SECONDS = 10.0
RETRY_SECONDS = 30.0
NOT_NOW = (RequestTimeout, RecordNotRedacted, NotConfirmed, PublishTimeout, JournalFull, StoreFailed)
_NAMESPACE = uuid.UUID("b5f0c1de-9f3a-4a55-8a07-6a8a3b1f2f64")


class Deletions:
    """What was deleted from the store is on a list there until the rest is done, too, whatever dies in between.

    `problem` says why that could not be done now; empty if nothing is left to do.
    """

    publishes = (MemoryDeleted, JournalRedact)

    def __init__(self, bus: Bus, engrams: EngramService) -> None:
        self._bus, self._engrams = bus, engrams
        self._news, self._one_at_a_time = asyncio.Event(), asyncio.Lock()
        self.problem = ""

    async def delete(self, user_id: str, engram_id: str) -> EngramRecord:
        """Delete an exchange, everywhere, and return what it was; repeat it after a failure.

        Raises `NotOnRecord`, `StoreFailed`, and `RecordNotRedacted` where the rest has to wait for the journal.
        """
        try:
            record = engram_record(await self._engrams.get(user_id, engram_id))
            await self._engrams.delete(user_id, engram_id)
        except NotOnRecord:
            begun = {each.engram_id: each for each in await self._engrams.deletions() if each.user_id == user_id}
            if engram_id not in begun:
                raise
            record = deleted(begun[engram_id])
        try:
            await self.finish()
        except NOT_NOW as error:
            self._news.set()
            text = f"it is deleted from the memory; from the journal as soon as that is possible: {error}"
            raise RecordNotRedacted(text) from None
        return record

    async def delete_session(self, session_id: str) -> None:
        """Delete all exchanges of a session from the store; the rest is done in the background."""
        await self._engrams.delete_session(session_id)
        self._news.set()

    async def run(self) -> None:
        """Finish what was begun, in this process or an earlier one, until cancelled."""
        while True:
            self._news.clear()
            seconds = None
            try:
                await self.finish()
            except NOT_NOW as error:
                log.warning("a deletion waits: %s", error)
                seconds = RETRY_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()

    async def finish(self) -> None:
        """Do what is left to do of every deletion. Raises one of `NOT_NOW`."""
        async with self._one_at_a_time:
            try:
                for deletion in await self._engrams.deletions():
                    await self._finish(deletion)
                self.problem = ""
            except LocalError as error:
                self.problem = str(error)
                raise

    async def _finish(self, deletion: Deletion) -> None:
        if not deletion.redacted:
            what = JournalRedact(query_id=deletion.query_id, mentioned=deletion.engram_id)
            await redact_on_record(self._bus, what, JOURNAL_SECONDS)
            # From here on nothing is redacted any more: that would take the message below, which names the engram,
            # from those who have not got it yet.
            await self._engrams.note_redacted(deletion.engram_id)
        message = MemoryDeleted(
            engram_id=deletion.engram_id, query_id=deletion.query_id, respondent_id=deletion.respondent_id
        )
        envelope_id = uuid.uuid5(_NAMESPACE, deletion.engram_id).hex
        trace = Trace(new_id(), None, None, deletion.user_id)  # not the query's: its record is closed
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=JOURNAL_SECONDS)
        await self._engrams.finish_deletion(deletion.engram_id)
