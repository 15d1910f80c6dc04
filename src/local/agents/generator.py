"""The agent that answers: one turn for each query, the model as orchestrator, the tools on the bus."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import date
from typing import Any, Self

from local.agents.conversation_desk import ConversationDesk
from local.agents.generator_config import GeneratorConfig
from local.agents.outcome import publish_outcome, stored_outcome, trace_of
from local.agents.prompt import compose
from local.agents.steps import parse_step
from local.agents.tool_registry import SILENT_SECONDS, ToolRegistry
from local.agents.turn import Question, Turn
from local.agents.turn_runner import Means, TurnRunner
from local.agents.turns import Turns
from local.agents.waiting_line import WaitingLine
from local.errors import LocalError, ModelError
from local.models.chat import ChatModel, Json
from local.models.ollama import OllamaModel
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
from local.services.conversation import Asked, ConversationService, StoredTurn, TurnStatus

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 4
QUERIES_AT_ONCE = 64  # being stored; what is stored together costs one commit
CANCELLED_EARLY = "the query was cancelled before its turn came"


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
    ) -> None:
        """`answers_as` is the name to sign with, where it is not the model's that was asked for."""
        super().__init__(config)
        self._settings = config
        self._answers_as = answers_as
        self._problem = ""
        self._model, self._conversation = model, conversation
        self._tools = ToolRegistry()
        self._line = WaitingLine(config.max_concurrent_turns, config.max_waiting_turns)
        self._turns = Turns(self._line, self._prepare, self._abandon)
        self._desk = ConversationDesk(conversation, config.system_prompt)
        self._news = asyncio.Event()  # a tool has come, or a query was cancelled

    @classmethod
    def build(cls, config: GeneratorConfig, resources: Resources) -> Self:
        """With Ollama, or whatever speaks its API, at the model address; the conversation is one file."""
        model = OllamaModel(
            resources.model_url,
            first_token_seconds=config.timeout_seconds,
            between_tokens_seconds=config.timeout_seconds,
            timeout_seconds=config.timeout_seconds,
        )
        conversation = ConversationService(resources.data_dir / "conversation.db", cls.respondent_id)
        stand_in = resources.model_backend == "stand_in"  # it goes by any model's name, but users shall know it
        return cls(config, model, conversation, answers_as="stand-in" if stand_in else None)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the record, go on with what an earlier process left, serve; at the end hand back what is running."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._model.close)
            await stack.enter_async_context(self._conversation)
            left_over = await self._conversation.unfinished()
            look = asyncio.create_task(self._look_at_model(), name="look at the model")
            stack.callback(look.cancel)
            await stack.enter_async_context(self._turns.are_open())
            for stored in left_over:
                await self._resume(stored)
            yield

    async def _look_at_model(self) -> None:
        """Say at once what the first query would run into; what is learned is remembered for it."""
        try:
            await self._model.show(self._settings.model)
        except ModelError as error:
            self._problem = str(error)
            log.warning("%s", error)

    async def announce(self) -> None:
        """Ask who the tools are, and publish every outcome that has not left."""
        await self.bus.publish(ToolSchemaRequest())
        for stored in await self._conversation.unfinished():
            await self._publish_outcome(stored)

    def figures(self) -> dict[str, int]:
        """How many turns run and how many wait."""
        return self._turns.figures()

    def details(self) -> dict[str, str]:
        """Which model answers, and what was wrong with it at the start."""
        problem = {"problem": self._problem} if self._problem else {}
        return {"model": self._answers_as or self._settings.model, **problem}

    @on(QueryReceived, concurrency=QUERIES_AT_ONCE)
    async def receive(self, message: QueryReceived, envelope: Envelope) -> QueryFailed | None:
        """A query: accepted, refused, known already or answered before; it is never ignored."""
        query_id = message.query_id
        stored = self._turns.get(query_id) or await self._store(message, envelope)
        if stored is None:
            return _failed(query_id, "busy", "too many queries of this session wait already; try again later")
        if stored.query != message.query:
            return _failed(query_id, "conflict", f"query_id {query_id} was used for another query; take a new one")
        if stored.outcome is not None:
            await self._publish_outcome(stored)
            return None
        if self._turns.get(query_id) is None:
            if self._turns.is_cancelled(query_id):
                await self._end_unbegun(stored, TurnStatus.CANCELLED, "cancelled", CANCELLED_EARLY)
                return None
            self._turns.enter(stored)
        trace = envelope.trace()._replace(session_id=stored.session_id)  # a repeat need not name its session
        await self.bus.publish(QueryAccepted(query_id=query_id, attempt=stored.attempt), trace)
        return None

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """End a query early: with what was said so far, or as failed if it has not begun."""
        unbegun = self._turns.cancel(message.query_id)
        self._news.set()
        if unbegun is not None:
            await self._end_unbegun(unbegun, TurnStatus.CANCELLED, "cancelled", CANCELLED_EARLY)

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> BusDead | None:
        """A tool says what it is."""
        refusal = self._tools.announce(schema, envelope.sender, envelope.instance, time.monotonic())
        if refusal is None:
            self._news.set()
            return None
        log.warning("%s", refusal)
        error = ErrorInfo(kind="refused_tool", message=refusal)
        return BusDead(participant=self.name, envelope_id=envelope.id, dead_subject=envelope.subject, error=error)

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

    @on(ConversationRequest)
    async def look_up(self, request: ConversationRequest, envelope: Envelope) -> ConversationResult:
        """Somebody wants to see the record."""
        return await self._desk.answer(request)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What the door is told when a query could not be taken or the record not be read."""
        info = ErrorInfo(kind=getattr(error, "kind", "internal"), message=str(error) or type(error).__name__)
        if isinstance(message, QueryReceived) and self._turns.get(message.query_id) is None:
            return QueryFailed(query_id=message.query_id, error=info)
        if isinstance(message, ConversationRequest):
            return ConversationResult(verb=message.verb, error=info)
        return None

    async def _store(self, message: QueryReceived, envelope: Envelope) -> StoredTurn | None:
        """The record of a query, made now unless there is one; None if its session has no room for another."""
        query_id, session_id = message.query_id, envelope.session_id or message.query_id
        if not self._line.expect(query_id, session_id):
            return await self._conversation.turn(query_id)
        asked = Asked(
            query_id, session_id, envelope.user_id, envelope.id, message.query, message.encode().decode(),
            in_history=message.history is None, tools=tuple(self._tools.offered(time.monotonic())),
        )  # fmt: skip
        try:
            stored, _ = await self._conversation.accept(asked)
            return stored
        finally:
            self._line.expect_no_more(query_id)

    async def _resume(self, stored: StoredTurn) -> None:
        """Put an interrupted turn back in line, unless it has ended its process too often."""
        if stored.outcome is not None:
            return
        if stored.attempt >= MAX_ATTEMPTS:
            text = f"the process that worked on it ended {stored.attempt} times"
            log.error("query %s is given up: %s", stored.query_id, text)
            await self._end_unbegun(stored, TurnStatus.FAILED, "gave_up", text)
        else:
            self._turns.enter(replace(stored, attempt=stored.attempt + 1))

    async def _prepare(self, stored: StoredTurn) -> TurnRunner:
        settings = self._settings
        if stored.attempt > 1:
            await self._conversation.next_attempt(stored.query_id)
            await self._tools_back(stored)
        history: Sequence[Json] | None = stored.beginning
        steps: list[str] = []
        if history is None or stored.attempt > 1:
            history, steps = await self._conversation.beginning(stored)
        given_history = QueryReceived.decode(stored.body.encode()).history
        if given_history is not None:
            history = given_history
        question = Question(
            query_id=stored.query_id,
            respondent_id=self.respondent_id,
            query=stored.query,
            prelude=compose(settings.system_prompt, date.today(), history),
            think=settings.think,
            max_tool_iterations=settings.max_tool_iterations,
        )
        turn = Turn(question, [parse_step(step) for step in steps])
        return TurnRunner(turn, self._means(), trace_of(stored), stored.attempt)

    async def _tools_back(self, stored: StoredTurn) -> None:
        """Wait until an interrupted turn has its tools again, is cancelled, or they count as silent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SILENT_SECONDS):
                while not self._turns.is_cancelled(stored.query_id) and not (
                    self._tools.offered(time.monotonic()).keys() >= set(stored.tools)
                ):
                    self._news.clear()
                    await self._news.wait()

    def _means(self) -> Means:
        settings = self._settings
        options: dict[str, Any] = {"num_ctx": settings.num_ctx}
        if settings.temperature is not None:
            options["temperature"] = settings.temperature
        return Means(
            bus=self.bus,
            model=self._model,
            conversation=self._conversation,
            tools=self._tools,
            agent_id=settings.agent_id,
            model_name=settings.model,
            answers_as=self._answers_as,
            options=options,
            tool_timeout_seconds=settings.tool_timeout_seconds,
        )

    async def _end_unbegun(self, stored: StoredTurn, status: TurnStatus, kind: str, message: str) -> None:
        failed = _failed(stored.query_id, kind, message)
        await self._conversation.finish(stored.query_id, status, None, failed.routing_key, failed.encode().decode())
        await publish_outcome(self.bus, self._conversation, failed, trace_of(stored))

    async def _publish_outcome(self, stored: StoredTurn) -> None:
        """Publish the stored end of a turn, again or for the first time; nothing if it has not ended."""
        outcome = stored_outcome(stored)
        if outcome is not None:
            await publish_outcome(self.bus, self._conversation, outcome, trace_of(stored))

    async def _abandon(self, stored: StoredTurn, error: Exception) -> None:
        """Tell that a turn got no stored end; it is tried again when it is asked again, or by the next process."""
        log.error("the turn is left open: %s: %s", type(error).__name__, error)
        failed = _failed(stored.query_id, getattr(error, "kind", "internal"), str(error) or type(error).__name__)
        try:
            await self.bus.publish(failed, trace_of(stored))
        except LocalError as unheard:
            log.error("nobody could be told: %s", unheard)


def _failed(query_id: str, kind: str, message: str) -> QueryFailed:
    return QueryFailed(query_id=query_id, error=ErrorInfo(kind=kind, message=message))
