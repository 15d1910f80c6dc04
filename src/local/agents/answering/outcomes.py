"""How a query ended: stored, and on the bus the first time and again for whoever missed it."""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Collection
from dataclasses import replace

from local import failpoints
from local.bus.bus import Bus
from local.errors import JournalFull
from local.protocol.envelope import Envelope, Trace, session_of
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import AnswerDialog, ErrorInfo, QueryFailed, QueryReceived, ResponseGeneration
from local.services.conversation import Asked, ConversationService, StoredTurn, TurnStatus

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
Outcome = ResponseGeneration | QueryFailed
_NAMESPACE = uuid.UUID("5f4f3c1e-6a60-4bb4-9a0c-3d2a8d0f3b51")


def response_id(query_id: str, respondent_id: str, subject: str = ResponseGeneration.subject) -> str:
    """The id of the envelope that ends a query: always the same, so that publishing it twice is one answer."""
    return uuid.uuid5(_NAMESPACE, f"{query_id}\n{respondent_id}\n{subject}").hex


def trace_of(stored: Asked | StoredTurn) -> Trace:
    """What everything belongs to that a stored query causes."""
    return Trace(stored.query_id, stored.envelope_id, stored.session_id, stored.user_id)


def asked_of(message: QueryReceived, envelope: Envelope, tools: Collection[str], attempt: int = 1) -> Asked:
    """A query as it is stored; `tools` are the names of those there are, `attempt` is the
    journal's."""
    return Asked(
        message.query_id, session_of(envelope, message.query_id), envelope.user_id, envelope.id, message.query,
        message.encode().decode(), in_history=message.history is None, tools=tuple(tools),
        incognito=message.incognito, attempt=attempt, model=message.options.model if message.options else None,
    )  # fmt: skip


def depth_of(stored: StoredTurn) -> int:
    """How deep in a tree of agents a turn is; 0 for a user's."""
    if '"task":null' in stored.body:
        return 0
    task = QueryReceived.decode(stored.body.encode()).task
    return 0 if task is None else task.depth


def stored_outcome(stored: StoredTurn) -> Outcome | None:
    """The message that ended a stored turn; None while it is open."""
    if stored.outcome is None:
        return None
    kind = ResponseGeneration if stored.outcome_subject == ResponseGeneration.subject else QueryFailed
    return kind.decode(stored.outcome.encode())


async def publish_outcome(bus: Bus, conversation: ConversationService, outcome: Outcome, trace: Trace) -> None:
    """Publish how a query ended, until it is on record, and note that it is out. Raises `BusClosed`."""
    query_id, respondent_id = outcome.query_id, outcome.respondent_id
    await bus.publish(outcome, trace, envelope_id=response_id(query_id, respondent_id), seconds=math.inf)
    if isinstance(outcome, ResponseGeneration) and outcome.status == "answered" and respondent_id == MAIN_RESPONDENT:
        dialog = AnswerDialog(
            query_id=query_id, query=outcome.query, answer=outcome.answer, session_id=trace.session_id
        )
        await bus.publish(dialog, trace, envelope_id=response_id(query_id, respondent_id, dialog.subject))
    conversation.published(query_id)
    failpoints.reach("turn.published")


def failed(query_id: str, respondent_id: str, kind: str, message: str) -> QueryFailed:
    """The message that says that a query got no answer."""
    return QueryFailed(query_id=query_id, respondent_id=respondent_id, error=ErrorInfo(kind=kind, message=message))


class Outcomes:
    """The ends that a generator gives to turns, stored before they are published. Raises `StoreFailed`, `BusClosed`."""

    publishes = (ResponseGeneration, QueryFailed)

    def __init__(self, bus: Bus, conversation: ConversationService) -> None:
        self._bus, self._conversation = bus, conversation

    async def store(self, stored: StoredTurn, status: TurnStatus, kind: str, message: str) -> StoredTurn:
        """Give a turn an end without an answer. Returns it with that."""
        failure = failed(stored.query_id, stored.respondent_id, kind, message)
        subject, outcome = failure.routing_key, failure.encode().decode()
        await self._conversation.finish(stored.query_id, status, None, subject, outcome)
        return replace(stored, status=status, outcome_subject=subject, outcome=outcome)

    async def publish(self, stored: StoredTurn) -> None:
        """Publish the stored end of a turn, again or for the first time; nothing if it has not ended."""
        outcome = stored_outcome(stored)
        if outcome is not None:
            await publish_outcome(self._bus, self._conversation, outcome, trace_of(stored))

    async def end(self, stored: StoredTurn, status: TurnStatus, kind: str, message: str) -> None:
        """`store` and `publish`; an end that there is stays."""
        if stored.outcome is None:
            stored = await self.store(stored, status, kind, message)
        await self.publish(stored)

    async def fail_unstored(self, trace: Trace, error: ErrorInfo) -> None:
        """Publish the end of a query that never got onto this record."""
        query_id = trace.correlation_id
        failure = QueryFailed(query_id=query_id, error=error)
        envelope_id = response_id(query_id, failure.respondent_id)
        await self._bus.publish(failure, trace, envelope_id=envelope_id, seconds=math.inf)

    async def hand_in_what_is_open(self) -> None:
        """Have the journal deliver whatever has no published end. It knows these queries, unless it was damaged."""
        for stored in await self._conversation.unfinished():
            query = QueryReceived.decode(stored.body.encode())
            asked_by = Trace(stored.query_id, None, stored.session_id, stored.user_id)
            await self._hand_in(query, asked_by, stored.envelope_id)

    async def _hand_in(self, query: QueryReceived, asked_by: Trace, envelope_id: str) -> None:
        while True:
            try:
                await self._bus.publish(query, asked_by, envelope_id=envelope_id, seconds=math.inf)
                return
            except JournalFull as error:
                log.error("query %s is open and cannot be handed in: %s", query.query_id, error)
                await asyncio.sleep(RETRY_SECONDS)
