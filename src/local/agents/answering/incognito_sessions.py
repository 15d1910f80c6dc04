"""When incognito sessions end: with the process, and when nothing was asked in them for long. So does what was asked
incognito in a session that is kept, and refused."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from local.agents.answering.record_deletion import RecordDeletion
from local.errors import LocalError, SessionInUse, StoreFenced
from local.services.conversation import ConversationService

log = logging.getLogger(__name__)

LOOKS = 10  # within the time that a session may be idle
LONGEST_PAUSE_SECONDS = 60.0


class IncognitoSessions:
    """The incognito sessions of one record."""

    def __init__(self, conversation: ConversationService, deletion: RecordDeletion, idle_seconds: float) -> None:
        self._conversation, self._deletion, self._idle_seconds = conversation, deletion, idle_seconds

    @asynccontextmanager
    async def end_in_time(self) -> AsyncIterator[None]:
        """Enter it before anything is served: what an earlier process has left is deleted first. Leave it when nothing
        runs any more: all there are then end, with what is still open in them."""
        started = time.time()
        await self._drop_all()
        ending = asyncio.create_task(self._end_idle(started), name="end incognito sessions")
        try:
            yield
        finally:
            ending.cancel()
        await asyncio.wait({ending})
        await self._drop_all()  # not when the process comes to grief: the next one sees to that

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
        """Those of an earlier process, which could not be deleted at the start, count as idle."""
        while True:
            await asyncio.sleep(min(self._idle_seconds / LOOKS, LONGEST_PAUSE_SECONDS))
            try:
                await self.end_idle_since(max(started, time.time() - self._idle_seconds))
            except LocalError as error:
                log.warning("an incognito session could not be deleted: %s", error)

    async def end_idle_since(self, then: float) -> None:
        """Delete those in which nothing has happened since `then`, in seconds since 1970, and what was incognito and
        refused before. Raises as a deletion does."""
        for session_id in await self._conversation.incognito_sessions(then):
            try:
                await self._deletion.delete(session_id)
            except SessionInUse:
                log.debug("incognito session %s is waiting for an answer", session_id)
        for query_id in await self._conversation.refused_incognito(then):
            await self._deletion.drop_query(query_id)
