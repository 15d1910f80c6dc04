"""How a session is deleted: from the journal, then from the generator's own record."""

from __future__ import annotations

import asyncio

from local.agents.outcome import Outcomes
from local.bus.bus import Bus
from local.errors import NotOnRecord, RecordNotRedacted, RequestTimeout, SessionInUse
from local.protocol.journal_messages import JournalRedact, JournalRedacted
from local.services.conversation import ConversationService, TurnStatus

JOURNAL_SECONDS = 5.0


class SessionDeletion:
    """Deletes sessions. Where it fails half-way the session is still there, and can be deleted again."""

    def __init__(self, bus: Bus, conversation: ConversationService, outcomes: Outcomes) -> None:
        self._bus, self._conversation, self._outcomes = bus, conversation, outcomes

    async def delete(self, session_id: str) -> tuple[int, int]:
        """Remove a session; returns the numbers of turns and of messages on record that have lost their content.

        Raises `SessionInUse`, `NotOnRecord`, `RequestTimeout` while there is no journal, `RecordNotRedacted`,
        `StoreFailed`.
        """
        try:
            async with asyncio.timeout(JOURNAL_SECONDS):
                await self._publish_what_has_ended(session_id)
                redacted = await self._redact(session_id)
        except TimeoutError:
            raise RequestTimeout(JournalRedact.subject, JOURNAL_SECONDS) from None
        deleted = await self._conversation.delete_session(session_id)
        if not deleted and not redacted:
            raise NotOnRecord(f"there is no session {session_id}")
        return deleted, redacted

    async def _publish_what_has_ended(self, session_id: str) -> None:
        """An outcome that reached the journal only later would bring back what was deleted."""
        turns = await self._conversation.session(session_id)
        if any(turn.status is TurnStatus.OPEN for turn in turns):
            raise SessionInUse(session_id)
        for turn in turns:
            if not turn.published:
                await self._outcomes.publish(turn)

    async def _redact(self, session_id: str) -> int:
        answer = await self._bus.request(JournalRedact(session_id=session_id), JournalRedacted, JOURNAL_SECONDS)
        if answer.error is not None:
            raise RecordNotRedacted(answer.error.message)
        return answer.count
