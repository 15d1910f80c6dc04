"""The agent that answers: one turn for each query, the model as orchestrator, the tools on the bus."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import date
from functools import partial
from typing import Any, Self

from local import failpoints
from local.agents.acceptance import CANCELLED_EARLY, Acceptance
from local.agents.attached import SHARE, AttachedFiles
from local.agents.context_desk import ContextDesk
from local.agents.conversation_desk import ConversationDesk
from local.agents.generator_config import DEFAULT_PROMPT, GeneratorConfig
from local.agents.lease import Leases
from local.agents.opening import Opening
from local.agents.outcome import Outcomes, trace_of
from local.agents.session_deletion import SessionDeletion
from local.agents.steps import parse_step
from local.agents.tool_registry import SILENT_SECONDS, ToolRegistry
from local.agents.turn import Turn
from local.agents.turn_runner import Means, TurnRunner
from local.agents.turns import Turns
from local.agents.waiting_line import WaitingLine
from local.agents.warm_up import WarmUp
from local.errors import ConfigError
from local.models.backends import connect
from local.models.chat import ChatModel, ModelInfo
from local.protocol.envelope import Envelope
from local.protocol.messages import (
    BusDead,
    ConversationRequest,
    ConversationResult,
    ErrorInfo,
    Message,
    ParticipantStatus,
    QueryAccepted,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    ToolSchema,
    ToolSchemaRequest,
)
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.attachments.store import AttachmentStore
from local.services.conversation import ConversationService, Past, StoredTurn, TurnStatus

log = logging.getLogger(__name__)

CONSUMER, CANCELS = "generator", "generator_cancels"  # a cancellation does not wait behind the query it is for
QUERIES_AT_ONCE = 1024  # waiting and running
LOOK_UPS_AT_ONCE = 8
LANE_WIDTH = 32  # of one session: more than may wait, so that what is too much is refused and not left waiting


class GeneratorAgent(Participant):
    """Answers queries. Knows tools by their schemas alone."""

    name = "generator"
    kind = Kind.AGENT
    Config = GeneratorConfig
    respondent_id = "A"

    def __init__(
        self,
        config: GeneratorConfig,
        model: ChatModel,
        conversation: ConversationService,
        *,
        answers_as: str | None = None,
        leases: Leases | None = None,
        attachments: AttachmentStore | None = None,
    ) -> None:
        """`answers_as` is the name to sign with, where it is not the model's that was asked for."""
        super().__init__(config)
        self._settings, self._answers_as = config, answers_as
        self._model, self._conversation, self._leases = model, conversation, leases or Leases()
        self._warm_up = WarmUp(model, config.model, self._options())
        fast = config.fast_model or config.model
        self._context = ContextDesk(model, fast, config.num_ctx, conversation, self._leases)
        self._tools = ToolRegistry()
        room = partial(self._context.characters, share=SHARE)
        files = AttachedFiles(attachments, model, config.vision_model or config.model, room)
        self._opening = Opening(config, self.respondent_id, files, self._offered)
        self._line = WaitingLine(config.max_concurrent_turns, config.max_waiting_turns)
        self._turns = Turns(self._line, self._prepare, self._abandon)
        self._news = asyncio.Event()  # a tool has come, or a query was cancelled

    @classmethod
    def build(cls, config: GeneratorConfig, resources: Resources) -> Self:
        """With the models of the roles chat, fast and vision; the conversation is one file. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("the generator needs a model server, and none is known here")
        name = routing.first("chat", config.model)
        names = {
            "model": name,
            "fast_model": routing.first("fast", config.fast_model or name),
            "vision_model": routing.first("vision", config.vision_model or name),
        }
        model = connect(routing, timeout_seconds=config.timeout_seconds)
        conversation = ConversationService(resources.data_dir / "conversation.db", cls.respondent_id)
        stand_in = resources.model_backend == "stand_in"  # it goes by any model's name, but users shall know it
        config = config.model_copy(update=names)
        leases = Leases(lambda model: routing.locate(model)[0])
        return cls(
            config,
            model,
            conversation,
            answers_as="stand-in" if stand_in else None,
            leases=leases,
            attachments=AttachmentStore(resources.data_dir / "attachments"),
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the record, serve, and at the end hand back what is running."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._model.close)
            await stack.enter_async_context(self._conversation)
            self._outcomes = Outcomes(self.bus, self._conversation)
            self._acceptance = Acceptance(self._conversation, self._line, self._turns, self._outcomes)
            deletion = SessionDeletion(self.bus, self._conversation, self._outcomes)
            self._desk = ConversationDesk(self._conversation, self._opening.prelude, deletion.delete)
            warming_up = asyncio.create_task(self._warm_up.run(self._learn), name="warm up")
            stack.callback(warming_up.cancel)
            await stack.enter_async_context(self._leases.are_open(self.bus))
            await stack.enter_async_context(self._context.is_open())
            await stack.enter_async_context(self._turns.are_open())
            handing_in = asyncio.create_task(self._outcomes.hand_in_what_is_open(), name="hand in what is open")
            stack.callback(handing_in.cancel)
            yield

    def _learn(self, info: ModelInfo) -> None:
        self._context.at_most(info.context_length or self._settings.num_ctx)

    async def announce(self) -> None:
        """Ask who the tools are."""
        await self.bus.publish(ToolSchemaRequest())

    def hand_back(self) -> None:
        """Leave the turns to the next process."""
        self._turns.hand_back()

    def figures(self) -> dict[str, int]:
        """How many turns run and how many wait."""
        return self._turns.figures()

    def details(self) -> dict[str, str]:
        """Which model answers, whether it was loaded at the start, or what was wrong with it."""
        prompt = {"prompt": self._settings.prompt} if self._settings.prompt != DEFAULT_PROMPT else {}
        return {"model": self._answers_as or self._settings.model, **prompt, **self._warm_up.details}

    @on(QueryReceived, durable=CONSUMER, concurrency=QUERIES_AT_ONCE, lane_width=LANE_WIDTH)
    async def receive(self, message: QueryReceived, envelope: Envelope) -> BusDead | None:
        """A query, until it has ended: answered, refused, known already; it is never ignored."""
        failpoints.reach("generator.delivered")
        stored = self._turns.get(message.query_id) or await self._acceptance.store(message, envelope, self._offered())
        if stored.query != message.query:
            return self._dead(envelope, "conflict", f"query_id {stored.query_id} was used for another query")
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
        self._turns.stop(message.query_id)

    @on(QueryCancel, durable=CANCELS, concurrency=QUERIES_AT_ONCE)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """End a query early: with what was said so far, or as failed if it has not begun."""
        await self._conversation.cancel(message.query_id)
        unbegun = self._turns.cancel(message.query_id)
        self._news.set()
        if unbegun is not None:
            with self._turns.leaving(message.query_id):
                await self._outcomes.end(unbegun, TurnStatus.CANCELLED, "cancelled", CANCELLED_EARLY)

    @on(BusDead, durable=CONSUMER)
    async def give_up(self, dead: BusDead, envelope: Envelope) -> None:
        """The journal gives a query, or the letter that says so, to nobody any more, because processes died of it."""
        if dead.participant != CONSUMER or dead.error.kind != "gave_up":
            return
        stored = await self._conversation.turn(envelope.correlation_id)
        if stored is None:
            await self._outcomes.fail_unstored(envelope.trace(), dead.error)
        elif stored.outcome is not None:
            await self._outcomes.publish(stored)
        else:
            await self._outcomes.end(stored, TurnStatus.FAILED, dead.error.kind, dead.error.message)

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> BusDead | None:
        """A tool says what it is."""
        refusal = self._tools.announce(schema, envelope.sender, envelope.instance, time.monotonic())
        if refusal is None:
            self._news.set()
            return None
        log.warning("%s", refusal)
        return self._dead(envelope, "refused_tool", refusal)

    @on(ParticipantStatus)
    async def notice(self, status: ParticipantStatus, envelope: Envelope) -> ToolSchemaRequest | None:
        """A participant lives or leaves."""
        if status.kind != Kind.TOOL:
            return None
        if status.state == "stopping":
            self._tools.left(envelope.sender, envelope.instance)
            return None
        known = self._tools.heard(envelope.sender, time.monotonic())
        return None if known else ToolSchemaRequest()

    @on(ConversationRequest, concurrency=LOOK_UPS_AT_ONCE)
    async def look_up(self, request: ConversationRequest, envelope: Envelope) -> ConversationResult:
        """Somebody wants to see the record."""
        return await self._desk.answer(request)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What the door is told when a query could not be taken or the record not be read."""
        info = ErrorInfo(kind=getattr(error, "kind", "internal"), message=str(error) or type(error).__name__)
        if isinstance(message, QueryReceived):
            return QueryFailed(query_id=message.query_id, error=info)
        if isinstance(message, ConversationRequest):
            return ConversationResult(verb=message.verb, error=info)
        return None

    async def _tell_acceptance(self, stored: StoredTurn) -> None:
        await self.bus.publish(QueryAccepted(query_id=stored.query_id, attempt=stored.attempt), trace_of(stored))

    async def _prepare(self, stored: StoredTurn) -> TurnRunner:
        if stored.attempt > 1:
            await self._conversation.next_attempt(stored.query_id)
            await self._tools_back(stored)
        past: Past | None = stored.beginning
        steps: list[str] = []
        if past is None or stored.attempt > 1:
            past, steps = await self._conversation.beginning(stored)
        asked = QueryReceived.decode(stored.body.encode())
        if asked.history is not None:
            past = Past(None, tuple(asked.history))
        question = await self._opening.question(asked, past, date.today())
        turn = Turn(question, [parse_step(step) for step in steps])
        means = self._means(self._opening.model_for(question))
        return TurnRunner(turn, means, trace_of(stored), stored.attempt, keeps_summaries=asked.history is None)

    def _offered(self) -> dict[str, ToolSchema]:
        return self._tools.offered(time.monotonic())

    async def _tools_back(self, stored: StoredTurn) -> None:
        """Wait until an interrupted turn has its tools again, is cancelled, or they count as silent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SILENT_SECONDS):
                while not self._turns.is_cancelled(stored.query_id) and not self._offered().keys() >= set(stored.tools):
                    self._news.clear()
                    await self._news.wait()

    def _options(self) -> dict[str, Any]:
        settings = self._settings
        heat = {} if settings.temperature is None else {"temperature": settings.temperature}
        return {"num_ctx": settings.num_ctx, **heat}

    def _means(self, model_name: str) -> Means:
        settings = self._settings
        return Means(
            bus=self.bus,
            model=self._model,
            conversation=self._conversation,
            context=self._context,
            tools=self._tools,
            agent_id=settings.agent_id,
            model_name=model_name,
            answers_as=self._answers_as,
            options=self._options(),
            leases=self._leases,
            tool_timeout_seconds=settings.tool_timeout_seconds,
        )

    async def _abandon(self, stored: StoredTurn, error: Exception) -> None:
        """A turn can neither end nor go on by itself."""
        log.error("the turn is given up: %s: %s", type(error).__name__, error)
        kind = getattr(error, "kind", "internal")
        await self._outcomes.end(stored, TurnStatus.FAILED, kind, str(error) or type(error).__name__)

    def _dead(self, envelope: Envelope, kind: str, message: str) -> BusDead:
        error = ErrorInfo(kind=kind, message=message)
        return BusDead(participant=self.name, envelope_id=envelope.id, dead_subject=envelope.subject, error=error)
