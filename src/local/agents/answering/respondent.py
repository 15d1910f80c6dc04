"""Whoever answers queries: a model as orchestrator, tools on the bus, one turn for each query."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import date
from functools import partial
from typing import Any, Self

from local.agents.answering.attached import SHARE, AttachedFiles
from local.agents.answering.config import DEFAULT_PROMPT, GeneratorConfig
from local.agents.answering.context_desk import ContextDesk
from local.agents.answering.fence import Fence
from local.agents.answering.learning import Learning
from local.agents.answering.means import Means
from local.agents.answering.opening import Opening
from local.agents.answering.outcome import Outcomes, trace_of
from local.agents.answering.priority import Priority, UsersTurn
from local.agents.answering.steps import parse_step
from local.agents.answering.tool_registry import SILENT_SECONDS, ToolRegistry
from local.agents.answering.turn import Turn
from local.agents.answering.turn_runner import TurnRunner
from local.agents.answering.turns import Turns
from local.agents.answering.waiting_line import WaitingLine
from local.agents.answering.warm_up import WarmUp
from local.agents.leases import Leases
from local.config_models import Routing
from local.errors import ConfigError
from local.models.backends import connect
from local.models.chat import ChatModel, ModelInfo
from local.protocol.envelope import Envelope
from local.protocol.messages import (
    BusDead,
    ErrorInfo,
    ParticipantStatus,
    QueryReceived,
    ToolSchema,
    ToolSchemaRequest,
)
from local.runtime.participant import Kind, Resources, on
from local.services.attachments.store import AttachmentStore
from local.services.conversation import ConversationService, Past, StoredTurn, TurnStatus

log = logging.getLogger(__name__)


class Respondent(Learning):
    """Base of those that answer: runs turns that are on its record. Knows tools by their schemas alone."""

    kind = Kind.AGENT
    Config = GeneratorConfig
    record = "conversation.db"  # in the data directory

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
        super().__init__(config, conversation)
        self._settings, self._answers_as = config, answers_as
        self._model, self._conversation, self._leases = model, conversation, leases or Leases()
        self._attachments = attachments
        self._warm_up = WarmUp(model, config.model, self._options())
        fast = config.fast_model or config.model
        self._context = ContextDesk(model, fast, config.num_ctx, conversation, self._leases)
        self._tools = ToolRegistry()
        room = partial(self._context.characters, share=SHARE)
        files = AttachedFiles(attachments, model, config.vision_model or config.model, room)
        self._opening = Opening(config, self.respondent_id, files, self._offered, self._facts)
        self._line = WaitingLine(config.max_concurrent_turns, config.max_waiting_turns)
        self._turns = Turns(self._line, self._prepare, self._abandon)
        self._news = asyncio.Event()  # a tool has come, or a query was cancelled

    @classmethod
    def build(cls, config: GeneratorConfig, resources: Resources) -> Self:
        """With the models of the roles chat, fast and vision; the conversation is one file. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError(f"the {cls.name} needs a model server, and none is known here")
        name = cls._answers_with(config, resources, routing)
        names = {
            "model": name,
            "fast_model": routing.first("fast", config.fast_model or name),
            "vision_model": routing.first("vision", config.vision_model or name),
        }
        model = connect(routing, timeout_seconds=config.timeout_seconds)
        conversation = ConversationService(resources.data_dir / cls.record, cls.respondent_id)
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

    @classmethod
    def _answers_with(cls, config: GeneratorConfig, resources: Resources, routing: Routing) -> str:
        return routing.first("chat", config.model)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the record, serve, and at the end hand back what is running."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._model.close)
            await stack.enter_async_context(self._conversation)
            await self._recall_rewards()
            self._outcomes = Outcomes(self.bus, self._conversation)
            self._open_desks()
            warming_up = asyncio.create_task(self._get_ready(), name="warm up")
            stack.callback(warming_up.cancel)
            await stack.enter_async_context(self._leases.are_open(self.bus))
            await stack.enter_async_context(self._context.is_open())
            await stack.enter_async_context(self._turns.are_open())
            yield

    def _open_desks(self) -> None:
        """The record is open: make what works with it."""

    async def _get_ready(self) -> None:
        """Have the model loaded, so that the first query need not wait."""
        await self._warm_up.run(self._learn)

    def _fence(self, stored: StoredTurn) -> Fence | None:
        """What settles the calls that a turn is not to make."""
        return None

    def _priority(self, model_name: str) -> Priority:
        """Where a turn stands in the line for its model."""
        return UsersTurn(self._leases, model_name)

    def _learn(self, info: ModelInfo) -> None:
        self._context.at_most(info.context_length or self._settings.num_ctx)

    async def announce(self) -> None:
        """Ask who the tools are, and have users' facts said anew."""
        await super().announce()
        await self.bus.publish(ToolSchemaRequest())

    def hand_back(self) -> None:
        """Leave the turns to the next process."""
        self._turns.hand_back()

    def figures(self) -> dict[str, int]:
        """How many turns run and how many wait."""
        return self._turns.figures()

    def details(self) -> dict[str, str]:
        """Which model answers, whether it was loaded at the start, or what was wrong with it; and its rewards."""
        prompt = {"prompt": self._settings.prompt} if self._settings.prompt != DEFAULT_PROMPT else {}
        model = {"model": self._answers_as or self._settings.model}
        return {**model, **prompt, **self._warm_up.details, **super().details()}

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
        sender, instance, now = envelope.sender, envelope.instance, time.monotonic()
        if status.state == "stopping":
            self._tools.left(sender, instance, now)
            return None
        known = self._tools.heard(sender, instance, now)
        return None if known else ToolSchemaRequest()

    async def _prepare(self, stored: StoredTurn) -> TurnRunner:
        attempt = stored.attempt
        if attempt > 1:
            attempt = await self._conversation.next_attempt(stored.query_id)
            await self._tools_back(stored)
        past: Past | None = stored.beginning
        steps: list[str] = []
        if past is None or attempt > 1:
            past, steps = await self._conversation.beginning(stored)
        asked = QueryReceived.decode(stored.body.encode())
        if asked.history is not None:
            past = Past(None, tuple(asked.history))
        question = await self._opening.question(asked, past, date.today(), stored.user_id)
        turn = Turn(question, [parse_step(step) for step in steps], self._fence(stored))
        means = self._means(self._opening.model_for(question))
        return TurnRunner(turn, means, trace_of(stored), attempt, keeps_summaries=asked.history is None)

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
            priority=self._priority(model_name),
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
