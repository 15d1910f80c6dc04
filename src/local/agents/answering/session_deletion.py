"""How a session is deleted: from the journal, then by everybody who keeps something of it, then from our own record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from local.agents.answering.context_desk import ContextDesk
from local.agents.answering.outcome import Outcomes
from local.bus.bus import Bus
from local.errors import NotOnRecord, RequestTimeout, SessionInUse
from local.journal.client.record import redact_on_record
from local.protocol.envelope import Trace, new_id
from local.protocol.journal_messages import JournalRedact
from local.protocol.messages import SessionDeleted
from local.services.attachments.store import AttachmentStore
from local.services.conversation import ConversationService, StoredTurn, TurnStatus

JOURNAL_SECONDS = 5.0


class SessionDeletion:
    """Deletes sessions. Where it fails half-way the session is still there, and can be deleted again."""

    def __init__(
        self,
        bus: Bus,
        conversation: ConversationService,
        outcomes: Outcomes,
        *,
        context: ContextDesk | None = None,
        files: AttachmentStore | None = None,
    ) -> None:
        """`context` may be summarising the session; `files` are what queries can name."""
        self._bus, self._conversation, self._outcomes = bus, conversation, outcomes
        self._context, self._files = context, files

    async def delete(self, session_id: str) -> tuple[int, int]:
        """Remove a session; returns the numbers of turns and of messages on record that have lost their content.

        Raises `SessionInUse`, `NotOnRecord`, `RequestTimeout` while there is no journal, `RecordNotRedacted`,
        `StoreFailed`.
        """
        turns = await self._conversation.session(session_id)
        if any(turn.status is TurnStatus.OPEN for turn in turns):
            raise SessionInUse(session_id)
        redacted = await self._delete_elsewhere(session_id, turns, [turn for turn in turns if not turn.published])
        deleted = await self._conversation.delete_session(session_id)
        if not deleted and not redacted:
            raise NotOnRecord(f"there is no session {session_id}")
        return deleted, redacted

    async def drop(self, session_id: str) -> None:
        """Remove a session of which nothing runs: whatever of it is open will have no end. Raises as `delete`."""
        await self._delete_elsewhere(session_id, await self._conversation.session(session_id))
        await self._conversation.drop_session(session_id)

    async def drop_query(self, query_id: str) -> None:
        """Remove one query that was never a turn of its session. Raises as `delete`."""
        await redact_on_record(self._bus, JournalRedact(query_id=query_id), JOURNAL_SECONDS)
        if self._files is not None:
            named = await self._conversation.attachments_of(query_id=query_id)
            await asyncio.to_thread(self._files.discard, named)
        await self._conversation.drop_query(query_id)

    async def _delete_elsewhere(
        self, session_id: str, turns: Sequence[StoredTurn], unpublished: Sequence[StoredTurn] = ()
    ) -> int:
        """Everywhere but on our own record, which goes last: as long as it is there all this can be done again.

        An outcome that reached the journal only later would bring back what was deleted.
        """
        user_id = turns[0].user_id if turns else None
        try:
            async with asyncio.timeout(JOURNAL_SECONDS):
                for turn in unpublished:
                    await self._outcomes.publish(turn)
                redacted = await redact_on_record(self._bus, JournalRedact(session_id=session_id), JOURNAL_SECONDS)
                notice = SessionDeleted(deleted_session_id=session_id)
                await self._bus.publish(notice, Trace(new_id(), user_id=user_id))  # of no session: it is to stay
        except TimeoutError:
            raise RequestTimeout(JournalRedact.subject, JOURNAL_SECONDS) from None
        if self._context is not None:
            self._context.drop(session_id)
        if self._files is not None:
            named = await self._conversation.attachments_of(session_id=session_id)
            await asyncio.to_thread(self._files.discard, named)
        return redacted
