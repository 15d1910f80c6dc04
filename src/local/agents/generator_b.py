"""The second respondent: answers what the first one has answered, to compare the two, while nobody needs the model."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from local import failpoints
from local.agents.answering.call_rules import SideEffectPolicy
from local.agents.answering.outcomes import asked_of
from local.agents.answering.record_deletion import RecordDeletion
from local.agents.answering.respondent import Respondent, RespondentPolicy
from local.agents.answering.session_changes import new_branch
from local.journal.client.record import messages_on_record
from local.protocol.envelope import Envelope
from local.protocol.journal_messages import JournalRead, JournalRedact
from local.protocol.judgement_messages import RewardEvent
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import BusDead, QueryReceived, ResponseGeneration, SessionBranched, SessionDeleted
from local.protocol.query_origin import BACKGROUND
from local.queries.asker import JOURNAL
from local.runtime.participant import on
from local.services.conversation import StoredTurn, TurnStatus
from local.services.session_record import SessionRecord

CONSUMER, DELETIONS = "generator_b", "generator_b_deletions"  # a deletion does not wait behind a turn
ANSWERS_AT_ONCE = 1024
READ_SECONDS = 5.0
OLD_SECONDS = 3600.0  # what was answered before it took part is not worth a model's time


class SecondRespondent(Respondent):
    """The generator with another id, and perhaps another model. No user hears of it, and none waits for it.

    It answers from its own conversations: the users' questions and its own answers to them.
    """

    name = "generator_b"
    publishes = (JournalRead, JournalRedact)
    settings = "generator"
    linger_ms = 200
    policy = RespondentPolicy(
        "B",
        "conversation_b.db",
        purpose="respondent_b",
        loads_model=False,  # that could push out the one that users wait for
        has_own_model=True,
    )
    speaks_as = policy.respondent_id

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve as a respondent, and delete what users delete."""
        async with super().lifespan():
            self._deletion = RecordDeletion(self.bus, self._conversation, self._outcomes, prompts=self._fitter)
            self._sessions = SessionRecord(self._conversation, self.policy.respondent_id)
            yield

    @on(ResponseGeneration, durable=CONSUMER, concurrency=ANSWERS_AT_ONCE)
    async def answer_too(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """A first answer, until there is a second one. No other end of a query is worth one."""
        if not _is_to_be_compared(response):
            return
        failpoints.reach("generator_b.delivered")
        query_id = response.query_id
        stored = self._turns.get(query_id) or await self._store(response, envelope)
        if stored is None or stored.outcome is not None:
            if stored is not None:
                await self._outcomes.publish(stored)
            return
        self._side_effects[query_id] = SideEffectPolicy(response.tool_calls)
        try:
            await self._turns.run(stored)
        finally:
            self._side_effects.pop(query_id, None)
        failpoints.reach("generator_b.answered")

    @on(BusDead, durable=CONSUMER)
    async def give_up(self, dead: BusDead, envelope: Envelope) -> None:
        """The journal gives a first answer to nobody any more, because processes died of it."""
        stored = await self._conversation.turn(envelope.correlation_id)
        if (
            stored is not None
            and envelope.sender == JOURNAL
            and dead.participant == CONSUMER
            and dead.error.kind == "gave_up"
        ):
            await self._outcomes.end(stored, TurnStatus.FAILED, dead.error.kind, dead.error.message)

    @on(RewardEvent, durable=CONSUMER)
    async def learn_reward(self, event: RewardEvent, envelope: Envelope) -> None:
        """What an answer of its own was worth to a user."""
        await self._take_reward(event)

    @on(SessionBranched, durable=CONSUMER)
    async def branch(self, branched: SessionBranched, envelope: Envelope) -> None:
        """A session branches off another one: here it begins with what was answered by this respondent."""
        await self._sessions.branch(new_branch(branched, envelope.user_id))

    @on(SessionDeleted, durable=DELETIONS)
    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """A session is deleted: what runs of it ends, and all of it leaves this record."""
        self._fitter.drop(deleted.deleted_session_id)
        for stored in await self._conversation.session(deleted.deleted_session_id):
            if stored.outcome is None:
                await self._turns.drop(stored)
        await self._conversation.delete_session(deleted.deleted_session_id)

    @on(MemoryDeleted, durable=DELETIONS)
    async def forget(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """A user wants nobody to keep anything of an exchange: a turn for it ends, and leaves this record."""
        stored = await self._conversation.turn(deleted.query_id)
        if stored is not None and stored.outcome is None:
            await self._turns.drop(stored)
        await self._deletion.forget(deleted)

    async def _store(self, response: ResponseGeneration, envelope: Envelope) -> StoredTurn | None:
        """The query on this record, put there now unless it is; None for one that was deleted or is old."""
        known = await self._conversation.turn(response.query_id)
        if known is not None:
            return known if known.outcome is not None else replace(known, attempt=known.attempt + 1)
        if time.time() - envelope.sent_at > OLD_SECONDS:
            return None
        for asked, asked_by in await messages_on_record(self.bus, response.query_id, (QueryReceived,), READ_SECONDS):
            if asked.query == response.query:
                stored, _ = await self._conversation.accept(
                    asked_of(asked, asked_by, self._tools.known(time.monotonic()))
                )
                return stored
        return None


def _is_to_be_compared(response: ResponseGeneration) -> bool:
    is_answer = response.respondent_id == MAIN_RESPONDENT and response.status == "answered"
    return is_answer and response.in_history and not response.incognito and response.origin not in BACKGROUND
