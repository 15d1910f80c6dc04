"""The agent that answers: one turn for each query, the model as orchestrator, the tools on the bus."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import date
from typing import Any, Self

from pydantic import Field

from local.agents.conversation_desk import ConversationDesk
from local.agents.prompt import compose
from local.agents.steps import parse_step
from local.agents.tool_registry import ToolRegistry
from local.agents.turn import Question, Turn, response_id
from local.agents.turn_runner import Means, TurnRunner
from local.agents.waiting_line import WaitingLine
from local.config import Settings
from local.errors import LocalError, StoreFailed
from local.models.chat import ChatModel
from local.models.ollama import OllamaModel
from local.protocol.envelope import Envelope, Trace
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
    ResponseGeneration,
    ToolSchema,
    ToolSchemaRequest,
)
from local.runtime.logs import query_id_var
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.conversation import Asked, ConversationService, StoredTurn, TurnStatus

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 4


class GeneratorConfig(Settings):
    """`generator.yaml`; the comments there say what each key means."""

    agent_id: str = "GeneratorAgent"
    model: str = "gemma4:12b"
    num_ctx: int = Field(32_000, ge=512)
    think: bool = True
    temperature: float | None = Field(None, ge=0)
    max_tool_iterations: int = Field(5, ge=0)
    timeout_seconds: float = Field(120, gt=0)
    tool_timeout_seconds: float = Field(30, gt=0)
    max_concurrent_turns: int = Field(128, ge=1)
    max_waiting_turns: int = Field(16, ge=0)
    system_prompt: str = "You are LoCAL2, an assistant that runs on its user's own machine."


class GeneratorAgent(Participant):
    """Answers queries. Knows tools by their schemas alone."""

    name = "generator"
    kind = Kind.AGENT
    Config = GeneratorConfig
    respondent_id = "A"

    def __init__(self, config: GeneratorConfig, model: ChatModel, conversation: ConversationService) -> None:
        super().__init__(config)
        self._settings = config
        self._model, self._conversation = model, conversation
        self._tools = ToolRegistry()
        self._line = WaitingLine(config.max_concurrent_turns, config.max_waiting_turns)
        self._desk = ConversationDesk(conversation, config.system_prompt)
        self._stored: dict[str, StoredTurn] = {}  # accepted and not ended
        self._runners: dict[str, TurnRunner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns: asyncio.TaskGroup
        self._closing = False

    @classmethod
    def build(cls, config: GeneratorConfig, resources: Resources) -> Self:
        """With Ollama, or whatever speaks its API, at the model address; the conversation is one file."""
        model = OllamaModel(
            resources.model_url,
            first_token_seconds=config.timeout_seconds,
            between_tokens_seconds=config.timeout_seconds,
            timeout_seconds=config.timeout_seconds,
        )
        return cls(config, model, ConversationService(resources.data_dir / "conversation.db", cls.respondent_id))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the record, go on with what an earlier process left, serve; at the end hand back what is running."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._model.close)
            await stack.enter_async_context(self._conversation)
            left_over = await self._conversation.unfinished()
            async with asyncio.TaskGroup() as self._turns:
                for stored in left_over:
                    await self._resume(stored)
                yield
                self._closing = True
                for task in self._tasks.values():
                    task.cancel()

    async def announce(self) -> None:
        """Ask who the tools are, and repeat every outcome that may not have left."""
        await self.bus.publish(ToolSchemaRequest())
        for stored in await self._conversation.unfinished():
            await self._publish_outcome(stored)

    def figures(self) -> dict[str, int]:
        """How many turns run and how many wait."""
        return {"turns_running": len(self._runners), "turns_waiting": len(self._line)}

    @on(QueryReceived)
    async def receive(self, message: QueryReceived, envelope: Envelope) -> Message | None:
        """A query: accepted, refused, known already or answered before; it is never ignored."""
        session_id = envelope.session_id or message.query_id
        running = self._stored.get(message.query_id)
        if running is None and self._line.is_full_for(session_id):
            return self._failed(
                message.query_id, "busy", "too many queries of this session wait already; try again later"
            )
        asked = Asked(
            message.query_id, session_id, envelope.user_id, envelope.id, message.query, message.encode().decode(),
            in_history=message.history is None,
        )  # fmt: skip
        stored, is_new = (running, False) if running else await self._conversation.accept(asked)
        if stored.query != message.query:
            text = f"query_id {message.query_id} was used for another query; take a new one"
            return self._failed(message.query_id, "conflict", text)
        if stored.outcome is not None:
            await self._publish_outcome(stored)
            return None
        if is_new:
            self._stored[stored.query_id] = stored
        await self.bus.publish(QueryAccepted(query_id=stored.query_id, attempt=stored.attempt), envelope.trace())
        if is_new:
            self._start(self._line.arrive(stored.query_id, session_id))
        return None

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """End a query early: with what was said so far, or as failed if it has not begun."""
        query_id = message.query_id
        if self._line.leave(query_id):
            self._stored.pop(query_id)
            text = "the query was cancelled before its turn came"
            await self._end_unbegun(query_id, TurnStatus.CANCELLED, "cancelled", text)
        elif query_id in self._runners:
            self._runners[query_id].cancel()

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> BusDead | None:
        """A tool says what it is."""
        refusal = self._tools.announce(schema, envelope.sender, envelope.instance, time.monotonic())
        if refusal is None:
            return None
        log.warning("%s", refusal)
        error = ErrorInfo(kind="duplicate_tool", message=refusal)
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
        if isinstance(message, QueryReceived):
            return QueryFailed(query_id=message.query_id, error=info)
        if isinstance(message, ConversationRequest):
            return ConversationResult(verb=message.verb, error=info)
        return None

    def _start(self, query_ids: list[str]) -> None:
        for query_id in query_ids:
            if not self._closing:
                self._tasks[query_id] = self._turns.create_task(self._run(self._stored[query_id]), name=query_id)

    async def _resume(self, stored: StoredTurn) -> None:
        """Put an interrupted turn back in line, unless it has ended its process too often."""
        if stored.outcome is not None:
            return
        attempt = await self._conversation.next_attempt(stored.query_id)
        if attempt > MAX_ATTEMPTS:
            text = f"the process that worked on it ended {attempt - 1} times"
            log.error("query %s is given up: %s", stored.query_id, text)
            await self._end_unbegun(stored.query_id, TurnStatus.FAILED, "gave_up", text)
            return
        stored = replace(stored, attempt=attempt)
        self._stored[stored.query_id] = stored
        self._start(self._line.arrive(stored.query_id, stored.session_id))

    async def _run(self, stored: StoredTurn) -> None:
        query_id = stored.query_id
        query_id_var.set(query_id)
        try:
            self._runners[query_id] = await self._prepare(stored)
            await self._runners[query_id].run()
        except StoreFailed as error:
            log.error("the turn is lost: %s", error)
            await self.bus.publish(self._failed(query_id, error.kind, str(error)), _trace(stored))
        except LocalError as error:  # the outcome is stored; `announce` repeats it when the bus is back
            log.error("the answer waits: %s", error)
        finally:
            for table in (self._runners, self._stored, self._tasks):
                table.pop(query_id, None)
            self._start(self._line.done(query_id))

    async def _prepare(self, stored: StoredTurn) -> TurnRunner:
        settings = self._settings
        message = QueryReceived.decode(stored.body.encode())
        history: Any = message.history
        if history is None:
            history = await self._conversation.history(stored.session_id, stored.position)
        question = Question(
            query_id=stored.query_id,
            respondent_id=self.respondent_id,
            query=stored.query,
            prelude=compose(settings.system_prompt, date.today(), history),
            think=settings.think,
            max_tool_iterations=settings.max_tool_iterations,
        )
        steps = [parse_step(body) for body in await self._conversation.steps(stored.query_id)]
        return TurnRunner(Turn(question, steps), self._means(), _trace(stored), stored.attempt)

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
            options=options,
            tool_timeout_seconds=settings.tool_timeout_seconds,
        )

    def _failed(self, query_id: str, kind: str, message: str) -> QueryFailed:
        return QueryFailed(query_id=query_id, error=ErrorInfo(kind=kind, message=message))

    async def _end_unbegun(self, query_id: str, status: TurnStatus, kind: str, message: str) -> None:
        failed = self._failed(query_id, kind, message)
        await self._conversation.finish(query_id, status, None, failed.routing_key, failed.encode().decode())
        ended = await self._conversation.turn(query_id)
        assert ended is not None, "it was accepted"
        await self._publish_outcome(ended)

    async def _publish_outcome(self, stored: StoredTurn) -> None:
        """Publish the stored end of a turn, again or for the first time; nothing if it has not ended."""
        if stored.outcome is None:
            return
        kind = ResponseGeneration if stored.outcome_subject == ResponseGeneration.subject else QueryFailed
        outcome: Message = kind.decode(stored.outcome.encode())
        envelope_id = response_id(stored.query_id, self.respondent_id)
        await self.bus.publish(outcome, _trace(stored), envelope_id=envelope_id)
        await self._conversation.published(stored.query_id)


def _trace(stored: StoredTurn) -> Trace:
    return Trace(stored.query_id, stored.envelope_id, stored.session_id, stored.user_id)
