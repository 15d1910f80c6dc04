"""How a query gets onto the generator's record, or is refused there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from weakref import WeakValueDictionary

from local.agents.answering.outcome import Outcomes
from local.agents.answering.turns import Turns
from local.agents.answering.waiting_line import WaitingLine
from local.errors import StoreFailed
from local.protocol.envelope import Envelope, session_of
from local.protocol.messages import QueryReceived
from local.services.conversation import Asked, ConversationService, Refusal, StoredTurn, TurnStatus

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
TOO_MANY = "too many queries of this session wait already; ask again later, with a new query_id"
ANOTHERS = "this session is another user's; ask in one of your own"
INCOGNITO = "this session is incognito, and this query is not; ask it in another session, or incognito"
KEPT = "this session is kept, so nothing in it can be incognito; ask in a session of its own"
CANCELLED_EARLY = "the query was cancelled before its turn came"


def asked_of(message: QueryReceived, envelope: Envelope, tools: Collection[str]) -> Asked:
    """A query as it is stored; without a session it is one of its own."""
    return Asked(
        message.query_id, session_of(envelope, message.query_id), envelope.user_id, envelope.id, message.query,
        message.encode().decode(), in_history=message.history is None, tools=tuple(tools),
        incognito=message.incognito,
    )  # fmt: skip


def _words(refused: StoredTurn) -> str:
    if refused.refused is Refusal.USER:
        return ANOTHERS
    return KEPT if refused.incognito else INCOGNITO


class Acceptance:
    """Queries of one session are stored one after the other, in the order in which they come, however long it takes."""

    def __init__(self, conversation: ConversationService, line: WaitingLine, turns: Turns, outcomes: Outcomes) -> None:
        self._conversation, self._line, self._turns, self._outcomes = conversation, line, turns, outcomes
        self._sessions: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def store(self, message: QueryReceived, envelope: Envelope, tools: Collection[str]) -> StoredTurn:
        """The record of a query, made now unless there is one; `tools` are the names of those there are.

        A new one that finds no room, or was cancelled, has ended. One that an earlier process began is at its next
        attempt. Waits while the store cannot be written. Raises `StoreFenced`; `StoreFailed` at the process's end.
        """
        query_id, session_id = message.query_id, session_of(envelope, message.query_id)
        has_room = self._line.expect(query_id, session_id)
        try:
            return await self._store(asked_of(message, envelope, tools), has_room=has_room)
        finally:
            self._line.expect_no_more(query_id)

    async def _store(self, asked: Asked, *, has_room: bool) -> StoredTurn:
        async with self._sessions.setdefault(asked.session_id, asyncio.Lock()):
            while True:
                try:
                    return await self._attempt(asked, has_room=has_room)
                except StoreFailed as error:
                    if self._turns.is_closing:
                        raise
                    log.error("the query waits until it can be stored: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)

    async def _attempt(self, asked: Asked, *, has_room: bool) -> StoredTurn:
        stored, is_new = await self._conversation.accept(asked)
        if stored.outcome is not None or stored.query != asked.query:
            return stored
        if stored.refused is not None:
            return await self._outcomes.store(stored, TurnStatus.FAILED, "conflict", _words(stored))
        if not has_room and is_new:
            return await self._outcomes.store(stored, TurnStatus.FAILED, "busy", TOO_MANY)
        if is_new and (stored.cancelled or self._turns.is_cancelled(asked.query_id)):
            return await self._outcomes.store(stored, TurnStatus.CANCELLED, "cancelled", CANCELLED_EARLY)
        return stored if is_new else replace(stored, attempt=stored.attempt + 1)
