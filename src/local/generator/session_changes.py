"""Changes of a session by its user: title, settings, place in the list, and branches from an earlier turn."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, new_id
from local.bus.messages import SessionBranched, SessionChanged, SessionDeleted, SessionImported, SessionSettings
from local.core.attachments import AttachmentStore
from local.core.errors import (
    HandedBack,
    LocalError,
    NotOnRecord,
    RecordNotRedacted,
    RequestTimeout,
    SessionInUse,
    StoreFenced,
)
from local.generator.fitting import PromptFitter
from local.generator.history import ConversationService, StoredTurn, TurnStatus
from local.generator.output import OutcomePublisher
from local.generator.sessions import BranchPoint, Labels, NewBranch, SessionRecord
from local.journal.client import redact_on_record
from local.journal.messages import JournalRedact
from local.memory.messages import MemoryDeleted

# Deletions by users: first from the journal, then from every other store, last from this record.

JOURNAL_SECONDS = 5.0
SEARCH_SECONDS = 30.0  # where the journal looks through all that it has


class RecordDeletion:
    """The deletion of sessions and exchanges from one respondent's record, the journal and the attached files. A
    deletion that fails half-way can be repeated.
    """

    publishes = (SessionDeleted, JournalRedact)

    def __init__(
        self,
        bus: Bus,
        conversation: ConversationService,
        outcomes: OutcomePublisher,
        *,
        prompts: PromptFitter | None = None,
        files: AttachmentStore | None = None,
        is_in_prompt: Callable[[str], bool] = lambda engram_id: False,
    ) -> None:
        """`prompts` may be summarising a session; `files` are what queries name, if they are this one's to delete;
        `is_in_prompt` says whether a turn that runs has something of an engram in the block before its question."""
        self._is_in_prompt = is_in_prompt
        self._bus, self._conversation, self._outcomes = bus, conversation, outcomes
        self._prompts, self._files = prompts, files
        self._deleting: set[str] = set()  # sessions

    async def delete(self, session_id: str) -> tuple[int, int]:
        """Delete a session; returns the numbers of turns and of recorded messages that have lost their content.

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
        """Delete a session without running turns; open ones will have no end. Raises as `delete`."""
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
        """Remove a whole exchange with its copies in branches, and its content recalled by other turns. Repeating it
        has no further effect.

        Raises `HandedBack` while a running turn has its content in the prompt, and `StoreFailed`: retry later.
        """
        if await self._is_known_to_open_turn(deleted):
            raise HandedBack("a running turn has the content to be deleted in its prompt")
        await self._discard_files(query_id=deleted.query_id)
        await self._conversation.forget(deleted.query_id)
        if await self._conversation.forget_recalled(deleted.engram_id):
            await self._redact_mentions(deleted.engram_id)

    async def _delete_elsewhere(
        self, session_id: str, turns: Sequence[StoredTurn], unpublished: Sequence[StoredTurn] = ()
    ) -> int:
        """Delete everywhere except in this record, which is last: while it exists, all this can be repeated.

        An outcome that reached the journal only later would bring deleted content back.
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
        told = self._is_in_prompt(deleted.engram_id)
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
        """Redact messages that mention an engram; recalls may have been published until the memory had deleted it."""
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


# The end of incognito sessions: with the process, or after a long time without a question. The same holds for incognito
# queries that a normal session refused.

log = logging.getLogger(__name__)

LOOKS = 10  # within the time that a session may be idle
LONGEST_PAUSE_SECONDS = 60.0


class IncognitoSessions:
    """The incognito sessions of one record."""

    def __init__(self, conversation: ConversationService, deletion: RecordDeletion, idle_seconds: float) -> None:
        self._conversation, self._deletion, self._idle_seconds = conversation, deletion, idle_seconds

    @asynccontextmanager
    async def end_in_time(self) -> AsyncIterator[None]:
        """Delete incognito sessions in time. Enter it before serving: it deletes the leftovers of an earlier process
        first. Leave it when nothing runs any more: it then deletes all of them, with their open turns.
        """
        started = time.time()
        await self._drop_all()
        ending = asyncio.create_task(self._end_idle(started), name="end incognito sessions")
        try:
            yield
        finally:
            ending.cancel()
        await asyncio.wait({ending})
        await self._drop_all()  # not if the process fails: the next one deletes them

    async def _drop_all(self) -> None:
        try:
            for session_id in await self._conversation.incognito_sessions():
                await self._deletion.drop(session_id)
            for query_id in await self._conversation.refused_incognito():
                await self._deletion.drop_query(query_id)
        except StoreFenced:
            log.info("incognito sessions are left to the process that has the record now")
        except LocalError as error:
            log.error("an incognito session is still on record, and is deleted as soon as that is possible: %s", error)

    async def _end_idle(self, started: float) -> None:
        """Delete idle sessions. Those of an earlier process that could not be deleted at the start count as idle."""
        while True:
            await asyncio.sleep(min(self._idle_seconds / LOOKS, LONGEST_PAUSE_SECONDS))
            try:
                await self.end_idle_since(max(started, time.time() - self._idle_seconds))
            except LocalError as error:
                log.warning("an incognito session could not be deleted: %s", error)

    async def end_idle_since(self, then: float) -> None:
        """Delete the sessions without activity since `then`, in seconds since 1970, and incognito queries refused
        before. Raises as a deletion does.
        """
        for session_id in await self._conversation.incognito_sessions(then):
            try:
                await self._deletion.delete(session_id)
            except SessionInUse:
                log.debug("incognito session %s is waiting for an answer", session_id)
        for query_id in await self._conversation.refused_incognito(then):
            await self._deletion.drop_query(query_id)


SECONDS = 10.0  # for the journal, as a query has
Labelled = Mapping[str, str | bool | tuple[str, ...] | SessionSettings | None]


class SessionChanges:
    """The names, order and branches of sessions: each change is recorded in the journal, then stored; the journal
    redelivers changes that were interrupted between the two.
    """

    publishes = (SessionChanged, SessionBranched, SessionImported)

    def __init__(self, bus: Bus, sessions: SessionRecord) -> None:
        self._bus, self._sessions = bus, sessions

    async def change(self, session_id: str, labels: Labelled) -> None:
        """Set some of `title`, `pinned`, `settings`, `folder`, `tags` and `archived`, in all versions of the
        conversation. Raises `NotOnRecord`, `NotConfirmed`, `StoreFailed`."""
        head = await self._sessions.head(session_id)
        for version in await self._sessions.versions_of(session_id):
            known = await self._sessions.labels(version)
            changed = SessionChanged.model_validate(
                {**known._asdict(), "settings": settings_in(known), **labels,
                 "session_id": version, "changed_at": max(time.time(), known.changed_at)}
            )  # fmt: skip
            await self._bus.publish(changed, Trace(new_id(), None, version, head.user_id), seconds=SECONDS)
            await self.changed(changed)

    async def branch(
        self, session_id: str, before: str, branch_id: str, *, through: str = "", is_version: bool = False
    ) -> BranchPoint:
        """Begin a session `branch_id` with the turns before a query, or up to one (`through`): another version of the
        conversation, or a new conversation. Returns its origin. The same request again is the same branch. Raises as
        `change`, `TurnStillOpen` and `SessionExists`.
        """
        point = await self._sessions.branch_point(session_id, before, through)
        if await self._sessions.require_new(branch_id, point):
            branched = SessionBranched(
                session_id=branch_id, branched_from=point.session_id, before=point.before, through=point.through,
                version_of=await self._sessions.conversation_of(session_id) if is_version else "",
                incognito=point.incognito, branched_at=time.time(),
            )  # fmt: skip
            await self._bus.publish(branched, Trace(new_id(), None, branch_id, point.user_id), seconds=SECONDS)
            await self._sessions.branch(new_branch(branched, point.user_id))
        return point

    async def bring(self, imported: SessionImported, user_id: str | None) -> None:
        """Put an imported conversation on record. Raises as `change`."""
        await self._bus.publish(imported, Trace(new_id(), None, imported.session_id, user_id), seconds=SECONDS)
        await self._sessions.put_imported(imported, user_id)

    async def brought(self, imported: SessionImported, envelope: Envelope) -> None:
        """Store an imported conversation that was told of; nothing if it is there."""
        await self._sessions.put_imported(imported, envelope.user_id)

    async def changed(self, changed: SessionChanged) -> None:
        """Store a change; an older one than the stored one is ignored."""
        await self._sessions.keep_labels(changed.session_id, labels_in(changed))

    async def branched(self, branched: SessionBranched, envelope: Envelope) -> None:
        """Make the announced branch; without effect if it exists."""
        await self._sessions.branch(new_branch(branched, envelope.user_id))


def labels_in(changed: SessionChanged) -> Labels:
    """Labels as the record keeps them."""
    settings = None if changed.settings is None else changed.settings.model_dump_json(exclude_defaults=True)
    where = (changed.folder, changed.tags, changed.archived)
    return Labels(changed.title, changed.pinned, changed.changed_at, settings, *where)


def settings_in(labels: Labels) -> SessionSettings | None:
    """The settings of a session as messages have them."""
    return None if labels.settings is None else SessionSettings.model_validate_json(labels.settings)


def new_branch(branched: SessionBranched, user_id: str | None) -> NewBranch:
    """A branch as the record makes it."""
    point = BranchPoint(branched.branched_from, branched.before, user_id, branched.incognito, branched.through)
    return NewBranch(branched.session_id, point, branched.branched_at, branched.version_of)
