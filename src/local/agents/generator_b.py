"""The second respondent: answers what the first one has answered, to compare the two, while nobody needs the model."""

from __future__ import annotations

import time
from dataclasses import replace

from local import failpoints
from local.agents.answering.acceptance import asked_of
from local.agents.answering.config import GeneratorConfig
from local.agents.answering.fence import Fence
from local.agents.answering.forgetting import Forgetting
from local.agents.answering.priority import BackgroundTurn, Priority
from local.agents.answering.respondent import Respondent
from local.config_models import Routing
from local.journal.client.record import messages_on_record
from local.protocol.envelope import Envelope
from local.protocol.judgement_messages import RewardEvent
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import BusDead, QueryReceived, ResponseGeneration, SessionDeleted
from local.runtime.participant import Resources, on
from local.services.conversation import StoredTurn, TurnStatus

CONSUMER, DELETIONS = "generator_b", "generator_b_deletions"  # a deletion does not wait behind a turn
ANSWERS_AT_ONCE = 1024
READ_SECONDS = 5.0
OLD_SECONDS = 3600.0  # what was answered before it took part is not worth a model's time


class SecondRespondent(Respondent):
    """The same agent with another id, and perhaps another model. No user hears of it, and none waits for it.

    It answers from its own conversations: the users' questions and its own answers to them.
    """

    name = "generator_b"
    settings = "generator"
    respondent_id = "B"
    record = "conversation_b.db"

    @classmethod
    def _answers_with(cls, config: GeneratorConfig, resources: Resources, routing: Routing) -> str:
        """A model of its own; else it goes with the first respondent, chain and all."""
        if config.model == resources.chat_model:
            return super()._answers_with(config, resources, routing)
        routing.locate(config.model)
        return config.model

    def _open_desks(self) -> None:
        self._first: dict[str, ResponseGeneration] = {}  # by query_id, while the second answer is made
        self._forgetting = Forgetting(self.bus, self._conversation, self._context)

    async def _get_ready(self) -> None:
        """Look at the model without having it loaded, as that could push out the one that users wait for."""
        await self._warm_up.look(self._learn)

    def _fence(self, stored: StoredTurn) -> Fence:
        return Fence(self._first[stored.query_id].tool_calls)

    def _priority(self, model_name: str) -> Priority:
        return BackgroundTurn(self._leases, model_name, "respondent_b")

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
        self._first[query_id] = response
        try:
            await self._turns.run(stored)
        finally:
            self._first.pop(query_id, None)
        failpoints.reach("generator_b.answered")

    @on(BusDead, durable=CONSUMER)
    async def give_up(self, dead: BusDead, envelope: Envelope) -> None:
        """The journal gives a first answer to nobody any more, because processes died of it."""
        stored = await self._conversation.turn(envelope.correlation_id)
        if stored is not None and dead.participant == CONSUMER and dead.error.kind == "gave_up":
            await self._outcomes.end(stored, TurnStatus.FAILED, dead.error.kind, dead.error.message)

    @on(RewardEvent, durable=CONSUMER)
    async def learn_reward(self, event: RewardEvent, envelope: Envelope) -> None:
        """What an answer of its own was worth to a user."""
        await self._take_reward(event)

    @on(SessionDeleted, durable=DELETIONS)
    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """A session is deleted: what runs of it ends, and all of it leaves this record."""
        self._context.drop(deleted.deleted_session_id)
        for stored in await self._conversation.session(deleted.deleted_session_id):
            if stored.outcome is None:
                await self._break_off(stored)
        await self._conversation.delete_session(deleted.deleted_session_id)

    @on(MemoryDeleted, durable=DELETIONS)
    async def forget(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """A user wants nobody to keep anything of an exchange: a turn for it ends, and leaves this record."""
        stored = await self._conversation.turn(deleted.query_id)
        if stored is not None and stored.outcome is None:
            await self._break_off(stored)
        await self._forgetting.exchange(deleted)

    async def _store(self, response: ResponseGeneration, envelope: Envelope) -> StoredTurn | None:
        """The query on this record, put there now unless it is; None for one that was deleted or is old."""
        known = await self._conversation.turn(response.query_id)
        if known is not None:
            return known if known.outcome is not None else replace(known, attempt=known.attempt + 1)
        if time.time() - envelope.sent_at > OLD_SECONDS:
            return None
        for asked, asked_by in await messages_on_record(self.bus, response.query_id, (QueryReceived,), READ_SECONDS):
            if asked.query == response.query:
                stored, _ = await self._conversation.accept(asked_of(asked, asked_by, self._offered()))
                return stored
        return None

    async def _break_off(self, stored: StoredTurn) -> None:
        """Nobody wants this turn any more."""
        query_id = stored.query_id
        runs = self._turns.get(query_id) is not None
        unbegun = self._turns.cancel(query_id)
        self._news.set()
        if runs and unbegun is None:
            await self._turns.run(stored)  # it is on its way to its end
            return
        with self._turns.leaving(query_id):
            await self._outcomes.store(stored, TurnStatus.CANCELLED, "cancelled", "the query was deleted")


def _is_to_be_compared(response: ResponseGeneration) -> bool:
    is_answer = response.respondent_id == MAIN_RESPONDENT and response.status == "answered"
    return is_answer and response.in_history and not response.incognito
