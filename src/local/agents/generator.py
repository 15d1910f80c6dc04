"""The agent that answers users: every query gets onto its record, and from there to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from local import failpoints
from local.agents.answering.client_calls import ClientCalls
from local.agents.answering.conversation_request_handler import ConversationRequestHandler
from local.agents.answering.incognito_sessions import IncognitoSessions
from local.agents.answering.outcomes import asked_of, trace_of
from local.agents.answering.record_deletion import RecordDeletion
from local.agents.answering.respondent import Respondent, RespondentPolicy
from local.agents.answering.session_changes import SessionChanges
from local.errors import LocalError
from local.protocol.client_messages import ClientToolRequest, ClientToolResult
from local.protocol.envelope import Envelope
from local.protocol.judgement_messages import RewardEvent
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import (
    AnswerDialog,
    BusDead,
    ConversationRequest,
    ConversationResult,
    ErrorInfo,
    Message,
    QueryAccepted,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    SessionBranched,
    SessionChanged,
)
from local.protocol.query_origin import BACKGROUND
from local.queries.asker import JOURNAL
from local.queries.errors import QueryIdTaken
from local.runtime.participant import on
from local.services.conversation import StoredTurn, TurnStatus
from local.services.session_record import SessionRecord

CONSUMER, CANCELS = "generator", "generator_cancels"  # a cancellation does not wait behind the query it is for
QUERIES_AT_ONCE = 1024  # waiting and running
LOOK_UPS_AT_ONCE = 8
CLIENT_CALLS_AT_ONCE = 64  # some of which wait for a person
LANE_WIDTH = 32  # of one session: more than may wait, so that what is too much is refused and not left waiting


class GeneratorAgent(Respondent):
    """Answers what users ask, and keeps the record of it."""

    name = "generator"
    publishes = (QueryAccepted, QueryReceived, QueryFailed, AnswerDialog, RecordDeletion, SessionChanges)
    policy = RespondentPolicy(MAIN_RESPONDENT, "conversation.db")
    speaks_as = policy.respondent_id

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve as a respondent, and have the journal deliver what has no published end. Incognito sessions end."""
        async with super().lifespan():
            seconds = self._settings.tool_timeout_seconds
            self._clients = ClientCalls(lambda: self.bus, self._offered, self._gate, seconds)
            self._deletion = RecordDeletion(
                self.bus,
                self._conversation,
                self._outcomes,
                prompts=self._fitter,
                files=self._attachments,
                is_told=self._turns.is_told,
            )
            sessions = SessionRecord(self._conversation, self.policy.respondent_id)
            self._changes = SessionChanges(self.bus, sessions)
            self._requests = ConversationRequestHandler(
                self._conversation, sessions, self._changes,
                self._prompts.prelude, self._deletion.delete, self._prompts.shown,
            )  # fmt: skip
            idle_seconds = self._settings.incognito_minutes * 60
            async with IncognitoSessions(self._conversation, self._deletion, idle_seconds).end_in_time():
                handing_in = asyncio.create_task(self._outcomes.hand_in_what_is_open(), name="hand in what is open")
                try:
                    yield
                finally:
                    handing_in.cancel()

    @on(QueryReceived)
    async def compute(self, message: QueryReceived, envelope: Envelope) -> None:
        """The live copy of what `receive` gets: its turn is computed ahead, in memory, and nobody hears of it yet."""
        failpoints.reach("generator.heard_live")
        asked = asked_of(message, envelope, self._offered())
        if message.task is None and message.origin not in BACKGROUND and self._may_compute(asked):
            self._speculations.begin(asked)

    @on(QueryReceived, durable=CONSUMER, concurrency=QUERIES_AT_ONCE, lane_width=LANE_WIDTH)
    async def receive(self, message: QueryReceived, envelope: Envelope) -> BusDead | None:
        """A query, until it has ended: answered, refused, known already; it is never ignored."""
        failpoints.reach("generator.delivered")
        asked = asked_of(message, envelope, self._tools.known(time.monotonic()), self.attempts.get(envelope.id, 1))
        stored = self._turns.get(message.query_id) or await self._turns.accept(asked)
        if stored.query != message.query:
            taken = QueryIdTaken(stored.query_id)
            return self._dead(envelope, taken.kind, str(taken))
        if stored.outcome is not None:
            await self._outcomes.publish(stored)
            return None
        failpoints.reach("turn.accepted")
        telling = asyncio.create_task(self._tell_acceptance(stored), name=f"accept {stored.query_id}")
        try:
            await self._turns.run(stored)
            await telling
        finally:
            telling.cancel()
        return None

    @on(QueryCancel)
    async def stop(self, message: QueryCancel, envelope: Envelope) -> None:
        """The live copy of what `cancel` gets: a running turn stops as soon as its tools do."""
        self._speculations.drop(message.query_id)
        self._turns.stop(message.query_id)

    @on(QueryCancel, durable=CANCELS, concurrency=QUERIES_AT_ONCE)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """End a query early: with what was said so far, or as failed if it has not begun. A program's call is none:
        its tool ends it, or the gatekeeper."""
        if self._clients.knows(message.query_id):
            return
        self._speculations.drop(message.query_id)
        await self._turns.cancel(message.query_id)

    @on(BusDead, durable=CONSUMER)
    async def give_up(self, dead: BusDead, envelope: Envelope) -> None:
        """The journal gives a query, or the letter that says so, to nobody any more, because processes died of it."""
        if envelope.sender != JOURNAL or dead.participant != CONSUMER or dead.error.kind != "gave_up":
            return
        stored = await self._conversation.turn(envelope.correlation_id)
        if stored is None:
            await self._outcomes.fail_unstored(envelope.trace(), dead.error)
        else:
            await self._outcomes.end(stored, TurnStatus.FAILED, dead.error.kind, dead.error.message)

    @on(RewardEvent, durable=CONSUMER)
    async def learn_reward(self, event: RewardEvent, envelope: Envelope) -> None:
        """Users have rated an answer, perhaps one of the other respondent's."""
        await self._take_reward(event)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """A user wants nobody to keep anything of an exchange."""
        self._speculations.drop_all()
        await self._deletion.forget(deleted)

    @on(SessionChanged, durable=CONSUMER)
    async def learn_labels(self, changed: SessionChanged, envelope: Envelope) -> None:
        """A session was named or pinned, perhaps by a process that could not store it any more."""
        await self._changes.changed(changed)

    @on(SessionBranched, durable=CONSUMER)
    async def learn_branch(self, branched: SessionBranched, envelope: Envelope) -> None:
        """A session branches off another one, perhaps by the word of a process that could not store it any more."""
        await self._changes.branched(branched, envelope)

    @on(ConversationRequest, concurrency=LOOK_UPS_AT_ONCE)
    async def look_up(self, request: ConversationRequest, envelope: Envelope) -> ConversationResult:
        """Somebody wants to see the record."""
        return await self._requests.answer(request)

    @on(ClientToolRequest, concurrency=CLIENT_CALLS_AT_ONCE)
    async def call_for_client(self, request: ClientToolRequest, envelope: Envelope) -> ClientToolResult:
        """A program wants to know the tools that there are, or have one called."""
        if request.verb == "list":
            return ClientToolResult(verb="list", tools=tuple(self._offered().values()))
        try:
            return ClientToolResult(verb="call", result=await self._clients.make(request, envelope.trace()))
        except LocalError as error:
            return ClientToolResult(verb="call", error=ErrorInfo.of(error))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What the door is told when a query could not be taken or the record not be read."""
        info = ErrorInfo.of(error)
        if isinstance(message, QueryReceived):
            return QueryFailed(query_id=message.query_id, error=info)
        if isinstance(message, ConversationRequest):
            return ConversationResult(verb=message.verb, error=info)
        if isinstance(message, ClientToolRequest):
            return ClientToolResult(verb=message.verb, error=info)
        return None

    async def _tell_acceptance(self, stored: StoredTurn) -> None:
        await self.bus.publish(QueryAccepted(query_id=stored.query_id, attempt=stored.attempt), trace_of(stored))
