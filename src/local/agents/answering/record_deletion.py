"""What users delete goes from the journal, from everybody who keeps something of it, then from our own record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from local.agents.answering.context.prompt_fitter import PromptFitter
from local.agents.answering.outcomes import Outcomes
from local.bus.bus import Bus
from local.errors import HandedBack, NotOnRecord, RecordNotRedacted, RequestTimeout, SessionInUse
from local.journal.client.record import redact_on_record
from local.protocol.envelope import Trace, new_id
from local.protocol.journal_messages import JournalRedact
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.messages import SessionDeleted
from local.services.attachments.store import AttachmentStore
from local.services.conversation import ConversationService, StoredTurn, TurnStatus

JOURNAL_SECONDS = 5.0
SEARCH_SECONDS = 30.0  # where the journal looks through all that it has


class RecordDeletion:
    """Deletes from one respondent's record. What fails half-way is still there, and can be deleted again."""

    publishes = (SessionDeleted, JournalRedact)

    def __init__(
        self,
        bus: Bus,
        conversation: ConversationService,
        outcomes: Outcomes,
        *,
        prompts: PromptFitter | None = None,
        files: AttachmentStore | None = None,
        is_told: Callable[[str], bool] = lambda engram_id: False,
    ) -> None:
        """`prompts` may be summarising a session; `files` are what queries name, if they are this one's to delete;
        `is_told` says whether a turn that runs has something of an engram in the block before its question."""
        self._is_told = is_told
        self._bus, self._conversation, self._outcomes = bus, conversation, outcomes
        self._prompts, self._files = prompts, files
        self._deleting: set[str] = set()  # sessions

    async def delete(self, session_id: str) -> tuple[int, int]:
        """Remove a session; returns the numbers of turns and of messages on record that have lost their content.

        Raises `SessionInUse`, `NotOnRecord`, `RequestTimeout` while there is no journal, `RecordNotRedacted`,
        `StoreFailed`.
        """
        turns = await self._conversation.session(session_id)
        if any(turn.status is TurnStatus.OPEN for turn in turns):
            raise SessionInUse(session_id)
        with self._deletes(session_id):
            redacted = await self._delete_elsewhere(session_id, turns, [turn for turn in turns if not turn.published])
            deleted = await self._conversation.delete_session(session_id)
        if not deleted and not redacted:
            raise NotOnRecord(f"there is no session {session_id}")
        return deleted, redacted

    async def drop(self, session_id: str) -> None:
        """Remove a session of which nothing runs: whatever of it is open will have no end. Raises as `delete`."""
        with self._deletes(session_id):
            await self._delete_elsewhere(session_id, await self._conversation.session(session_id))
            await self._conversation.drop_session(session_id)

    @contextmanager
    def _deletes(self, session_id: str) -> Iterator[None]:
        """Meanwhile the memory's word that it has forgotten the session's exchanges waits: to a query that is still
        here it would mean that its copies in branches are to go, too."""
        self._deleting.add(session_id)
        try:
            yield
        finally:
            self._deleting.discard(session_id)

    async def drop_query(self, query_id: str) -> None:
        """Remove one query that was never a turn of its session. Raises as `delete`."""
        await redact_on_record(self._bus, JournalRedact(query_id=query_id), JOURNAL_SECONDS)
        await self._discard_files(query_id=query_id)
        await self._conversation.drop_query(query_id)

    async def forget(self, deleted: MemoryDeleted) -> None:
        """Remove a whole exchange with its copies in branches, and what other turns have recalled of it. Done again it
        comes to the same.

        Raises `HandedBack` while a turn runs that knows of it, and `StoreFailed`: not now, but later.
        """
        if await self._is_known_to_open_turn(deleted):
            raise HandedBack("a turn runs that knows what is to be forgotten")
        await self._discard_files(query_id=deleted.query_id)
        await self._conversation.forget(deleted.query_id)
        if await self._conversation.forget_recalled(deleted.engram_id):
            await self._redact_mentions(deleted.engram_id)

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
            raise RequestTimeout(JournalRedact.subject, JOURNAL_SECONDS, JournalRedact.answered_by) from None
        self._stop_summarising(session_id)
        await self._discard_files(session_id=session_id)
        return redacted

    async def _is_known_to_open_turn(self, deleted: MemoryDeleted) -> bool:
        told = self._is_told(deleted.engram_id)
        if told or await self._conversation.is_recalled_by_open_turn(deleted.engram_id):
            return True
        for session_id in await self._conversation.sessions_with(deleted.query_id):
            self._stop_summarising(session_id)
            if session_id in self._deleting or await self._has_open_turn(session_id):
                return True
        return False

    async def _has_open_turn(self, session_id: str) -> bool:
        return any(turn.status is TurnStatus.OPEN for turn in await self._conversation.session(session_id))

    async def _redact_mentions(self, engram_id: str) -> None:
        """What recalled it may have been published only after the memory has seen to that."""
        try:
            await redact_on_record(self._bus, JournalRedact(mentioned=engram_id), SEARCH_SECONDS)
        except RequestTimeout as error:
            raise RecordNotRedacted(str(error)) from None

    def _stop_summarising(self, session_id: str) -> None:
        if self._prompts is not None:
            self._prompts.drop(session_id)

    async def _discard_files(self, *, session_id: str = "", query_id: str = "") -> None:
        if self._files is not None:
            named = await self._conversation.attachments_of(session_id=session_id, query_id=query_id)
            await asyncio.to_thread(self._files.discard, named)
