"""How one respondent forgets what a user has had deleted from the memory."""

from __future__ import annotations

import asyncio

from local.agents.answering.context_desk import ContextDesk
from local.bus.bus import Bus
from local.errors import HandedBack, RecordNotRedacted, RequestTimeout
from local.journal.client.record import redact_on_record
from local.protocol.journal_messages import JournalRedact
from local.protocol.memory_messages import MemoryDeleted
from local.services.attachments.store import AttachmentStore
from local.services.conversation import ConversationService, TurnStatus

JOURNAL_SECONDS = 30.0  # it looks through all that it has


class Forgetting:
    """Of one respondent. `files` are those that queries name, if they are this one's to delete."""

    def __init__(
        self, bus: Bus, conversation: ConversationService, context: ContextDesk, files: AttachmentStore | None = None
    ) -> None:
        self._bus, self._conversation, self._context, self._files = bus, conversation, context, files

    async def exchange(self, deleted: MemoryDeleted) -> None:
        """Remove a whole exchange, and what other turns have recalled of it. Done again it comes to the same.

        Raises `HandedBack` while a turn runs that knows of it, and `StoreFailed`: not now, but later.
        """
        if await self._is_known_to_open_turn(deleted):
            raise HandedBack("a turn runs that knows what is to be forgotten")
        if self._files is not None:
            named = await self._conversation.attachments_of(query_id=deleted.query_id)
            await asyncio.to_thread(self._files.discard, named)
        await self._conversation.forget(deleted.query_id)
        if await self._conversation.forget_recalled(deleted.engram_id):
            await self._redact(deleted.engram_id)

    async def _is_known_to_open_turn(self, deleted: MemoryDeleted) -> bool:
        if await self._conversation.is_recalled_by_open_turn(deleted.engram_id):
            return True
        forgotten = await self._conversation.turn(deleted.query_id)
        if forgotten is None:
            return False
        self._context.drop(forgotten.session_id)
        turns = await self._conversation.session(forgotten.session_id)
        return any(turn.status is TurnStatus.OPEN for turn in turns)

    async def _redact(self, engram_id: str) -> None:
        """What recalled it may have been published only after the memory has seen to that."""
        try:
            await redact_on_record(self._bus, JournalRedact(mentioned=engram_id), JOURNAL_SECONDS)
        except RequestTimeout as error:
            raise RecordNotRedacted(str(error)) from None
