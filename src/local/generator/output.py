"""The output of a turn: messages, records and requests to tools. It can be held back."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, session_of
from local.bus.message import MAIN_RESPONDENT, ErrorInfo, Message, RespondentMessage
from local.bus.messages import (
    AgentTransition,
    AnswerDialog,
    ContextCompacted,
    ContextProvided,
    GenerationProgress,
    GenerationThinking,
    GenerationToken,
    GenerationWaiting,
    PlanCreated,
    PlanStep,
    QueryFailed,
    QueryReceived,
    RecalledExchange,
    ResponseGeneration,
    Said,
    TodoUpdated,
    ToolRequest,
    ToolResult,
    block,
    hint_in,
)
from local.core import failpoints
from local.core.errors import JournalFull
from local.generator.builtin_tools import SCHEMAS, TodoRecord
from local.generator.context import PromptParts, TokenMeter, size_of
from local.generator.fitting import Plan, compacted
from local.generator.history import ConversationService, NewTurn, StoredTurn, TurnStatus, end_of
from local.generator.permissions import PermissionClient
from local.generator.steps import Step, ToolStep, TurnState
from local.generator.tool_list import KeptTools, list_kept
from local.hooks.messages import HookRequest, HookResult
from local.models.chat import AwayDelta, ContentDelta, Delta, Json, ProgressDelta, ThinkingDelta
from local.permissions.messages import GrantRequest, GrantResult
from local.runtime.machine import TransitionLog

# The outcome of a query: stored, published once, and published again on request.

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
Outcome = ResponseGeneration | QueryFailed
_NAMESPACE = uuid.UUID("5f4f3c1e-6a60-4bb4-9a0c-3d2a8d0f3b51")


def response_id(query_id: str, respondent_id: str, subject: str = ResponseGeneration.subject) -> str:
    """The id of the envelope that ends a query: always the same, so that publishing it twice is one answer."""
    return uuid.uuid5(_NAMESPACE, f"{query_id}\n{respondent_id}\n{subject}").hex


def trace_of(stored: NewTurn | StoredTurn) -> Trace:
    """Return the trace of a stored query, under which all its messages are published."""
    return Trace(stored.query_id, stored.envelope_id, stored.session_id, stored.user_id)


def new_turn(message: QueryReceived, envelope: Envelope, tools: Collection[str], attempt: int = 1) -> NewTurn:
    """Return a query as it is stored; `tools` are the names of the existing tools, `attempt` is the journal's."""
    options = message.options
    settings = options.settings if options is not None and message.history is None else None
    return NewTurn(
        message.query_id, session_of(envelope, message.query_id), envelope.user_id, envelope.id, message.query,
        message.encode().decode(), in_history=message.history is None, tools=tuple(tools),
        incognito=message.incognito, attempt=attempt, model=options.model if options else None,
        settings=None if settings is None else settings.model_dump_json(exclude_defaults=True),
    )  # fmt: skip


def depth_of(stored: StoredTurn) -> int:
    """Return a turn's depth in a tree of agents; 0 for a user's."""
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
    """Publish a query's outcome until it is recorded, and note that it is published. Raises `BusClosed`."""
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
    """Return the message that a query got no answer."""
    return QueryFailed(query_id=query_id, respondent_id=respondent_id, error=ErrorInfo(kind=kind, message=message))


class OutcomePublisher:
    """The publisher of how turns end, each stored before it is published. Raises `StoreFailed`, `BusClosed`."""

    publishes = (ResponseGeneration, QueryFailed)

    def __init__(self, bus: Bus, conversation: ConversationService) -> None:
        self._bus, self._conversation = bus, conversation

    async def store(self, stored: StoredTurn, status: TurnStatus, kind: str, message: str) -> StoredTurn:
        """End a turn without an answer. Returns it with its outcome."""
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


MOST_HELD = 256 * 1024  # characters of content and thinking
PROGRESS_SECONDS = 0.25  # between two messages about it
LEAST_TO_READ = 32  # tokens; fewer are read before a progress would be visible


class TurnOutput:
    """One turn's only access to the bus and to the record.

    Until `release` nothing leaves: messages are held in order, and all other effects wait. So a turn may be computed
    before its query is on record (output commit): see `Speculations`.

    Afterwards everything is published in order and without delay. A fragment is published in the loop's next round, so
    input that was read from the model's server at once becomes one message, and a single token leaves at once.
    """

    publishes = (
        TransitionLog, PermissionClient, GenerationThinking, GenerationToken, GenerationWaiting, GenerationProgress,
        ContextCompacted, ContextProvided, ToolRequest, HookRequest, TodoUpdated, PlanCreated, PlanStep,
        *(ToolResult.subject + name for name in SCHEMAS),
    )  # fmt: skip

    def __init__(
        self,
        bus: Bus,
        conversation: ConversationService,
        trace: Trace,
        agent_id: str,
        query_id: str,
        respondent_id: str,
        attempt: int,
    ) -> None:
        self._bus, self._conversation, self._trace = bus, conversation, trace
        self._query_id, self._respondent_id, self._attempt = query_id, respondent_id, attempt
        self._agent_id = agent_id
        passing = {TurnState.DISPATCHING_TOOL}
        self.phase = ""  # the work phase, if the turn does more than read
        self._changes = TransitionLog(self._post_change, agent_id, query_id, respondent_id, passing)
        self._released = asyncio.Event()
        self._held: list[Message] = []
        self._characters = 0  # held
        self._index = 0
        self._kind: type[GenerationThinking] = GenerationToken
        self._texts: list[str] = []
        self._due: asyncio.Handle | None = None
        self._next_progress = 0.0  # the time of the next progress message, by the loop's clock

    # Holding back

    def release(self) -> None:
        """Publish everything that was held, and hold nothing back from now on."""
        if self._released.is_set():
            return
        self.flush()
        held, self._held = self._held, []
        self._released.set()
        for message in held:
            self._post(message)

    async def released(self) -> None:
        """Wait until things may leave."""
        await self._released.wait()

    async def room(self) -> None:
        """Wait until there is room for more output of the model; there always is, unless much is held."""
        if self._characters > MOST_HELD:
            await self.released()

    def _post(self, message: Message) -> None:
        if self._released.is_set():
            self._bus.post(message, self._trace)
        else:
            self._held.append(message)

    def _post_change(self, change: AgentTransition) -> None:
        self._post(change.model_copy(update={"phase": self.phase}) if self.phase else change)

    # Telling

    def changed(self, before: StrEnum, action: StrEnum, after: StrEnum) -> None:
        """The turn's machine has changed its state."""
        self._flush_texts()
        self._changes.note(before, action, after)

    def receive(self, delta: Delta) -> None:
        """Publish the model's thinking and content, and that it is waited for."""
        if isinstance(delta, AwayDelta):
            self.flush()
            whose = {"query_id": self._query_id, "respondent_id": self._respondent_id}
            self._post(GenerationWaiting(**whose, attempt=self._attempt, reason=delta.note))
        elif isinstance(delta, ProgressDelta):
            self._publish_progress(delta)
        if not isinstance(delta, ContentDelta | ThinkingDelta):
            return
        self._changes.flush()
        kind = GenerationToken if isinstance(delta, ContentDelta) else GenerationThinking
        if kind is not self._kind:
            self._flush_texts()
            self._kind = kind
        self._texts.append(delta.text)
        if not self._released.is_set():
            self._characters += len(delta.text)
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._flush_texts)

    def _publish_progress(self, read: ProgressDelta) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._next_progress or read.total - read.done < LEAST_TO_READ:
            return
        self._next_progress = now + PROGRESS_SECONDS
        self.flush()
        if self._held and isinstance(self._held[-1], GenerationProgress):
            self._held.pop()
        whose = {"query_id": self._query_id, "respondent_id": self._respondent_id}
        self._post(GenerationProgress(**whose, attempt=self._attempt, done=read.done, total=read.total))

    def begin_again(self, attempt: int) -> None:
        """Discard the output of this message: observers use the one with the higher attempt."""
        self._texts.clear()
        self._attempt, self._index = attempt, 0

    def compacted(self, planned: Plan, parts: PromptParts) -> None:
        """Publish that the model's context was shortened."""
        self.flush()
        self._post(compacted(planned, parts, self._query_id, self._respondent_id))

    def provided(self, said: Said, recalled: Sequence[RecalledExchange], meter: TokenMeter) -> ContextProvided | None:
        """Publish that the prompt contains memory content, or a hint behind the question. Facts of unknown engrams are
        left out: they could not be removed from the record with their engrams.
        """
        facts = [item for item in said if item.kind == "fact" and (item.engram_ids or not item.text)]
        keys = {item.key for item in said if item.kind == "recalled"}
        hint = hint_in(said)
        if not facts and not keys and not hint:
            return None
        self.flush()
        engram_ids = (engram_id for item in said for engram_id in item.engram_ids)
        told = ContextProvided(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            facts=tuple(line for item in facts if item.text for line in item.lines),
            gone=tuple(line for item in facts if not item.text for line in item.lines),
            recalled=tuple(each for each in recalled if each.engram_id in keys),
            engram_ids=tuple(dict.fromkeys(engram_ids)),
            tokens=meter.tokens(size_of(block(said))),
            hint=hint,
        )
        self._post(told)
        return told

    def flush(self) -> None:
        """Publish the collected fragments, as far as publishing is permitted."""
        self._changes.flush()
        self._flush_texts()

    def _flush_texts(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if not self._texts:
            return
        text = "".join(self._texts)
        self._texts.clear()
        fragment = self._kind(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            attempt=self._attempt,
            index=self._index,
            text=text,
        )
        self._index += 1
        self._post(fragment)

    # Putting on record

    async def next_attempt(self) -> int:
        """Count one more attempt at the turn; returns its number."""
        await self.released()
        return await self._conversation.next_attempt(self._query_id)

    async def store_steps(self, first_number: int, steps: Sequence[Step]) -> None:
        """Store steps, numbered from `first_number`: the model's message is on the disk before its calls leave."""
        await self.released()
        # After results nothing leaves before something is stored next.
        are_results = all(isinstance(step, ToolStep) for step in steps)
        bodies = [step.model_dump_json() for step in steps]
        await self._conversation.add_steps(self._query_id, first_number, bodies, is_synced=not are_results)
        failpoints.reach("turn.step_stored")

    def keep_result(self, call_id: str, body: str) -> None:
        """Keep how one of several calls ended; a call was made, so the turn is released."""
        self._conversation.keep_result(self._query_id, call_id, body)

    async def kept_results(self) -> list[str]:
        """The results that an earlier process has kept."""
        return await self._conversation.results(self._query_id)

    async def earlier_list(self, session_id: str | None) -> list[Json]:
        """Return the call that set the session's to-do list last; empty if a client keeps the session."""
        if session_id is None:
            return []
        return await TodoRecord(self._conversation, self._respondent_id).latest(session_id)

    def signed(self, response: ResponseGeneration) -> ResponseGeneration:
        """Return the response with its session, and the name of the agent that gives it."""
        return response.model_copy(update={"session_id": self._trace.session_id, "generator_id": self._agent_id})

    async def store_end(
        self,
        response: ResponseGeneration,
        written: Sequence[str] = (),
        tools: KeptTools | None = None,
        sent: str | None = None,
    ) -> None:
        """Have the end of the turn on record. `written` are further texts as which a client may have the answer,
        `tools` the list that later turns of its session are offered, `sent` is how the model was sent the exchange."""
        await self.released()
        status, body = TurnStatus(response.status), response.encode().decode()
        ending = (self._query_id, status, response.answer, response.routing_key, body)
        also = list[Callable[[sqlite3.Connection], object]]()
        if response.tainted or not response.in_history:
            texts = () if response.in_history else (response.answer, *written)
            also.append(end_of(self._query_id, self._respondent_id, tainted=response.tainted, written=texts))
        if tools is not None:
            also.append(list_kept(self._query_id, self._respondent_id, *tools))
        await self._conversation.finish(
            *ending, (lambda db: [store(db) for store in also]) if also else None, sent=sent
        )
        failpoints.reach("turn.end_stored")

    # Asking and answering

    async def ask_tool(
        self, request: ToolRequest, seconds: float, envelope_id: str, on_sent: Callable[[], object]
    ) -> ToolResult:
        """A tool's answer. Raises as `Bus.request` does."""
        await self.released()
        return await self._bus.request(
            request, ToolResult, seconds, self._trace, envelope_id=envelope_id, on_sent=on_sent
        )

    async def ask_permission(
        self, gate: PermissionClient, request: GrantRequest, on_asked: Callable[[], object]
    ) -> GrantResult:
        """The decision about a call. Raises as `PermissionClient.request` does."""
        await self.released()
        return await gate.request(self._bus, request, self._trace, on_asked)

    async def ask_hook(self, request: HookRequest, seconds: float) -> HookResult:
        """Return a hook's answer. Raises `RequestTimeout` and other `LocalError`s."""
        await self.released()
        return await self._bus.request(request, HookResult, seconds, self._trace)

    async def publish_messages(self, *messages: Message) -> None:
        """Publish the turn's own actions, such as the result of a built-in tool."""
        await self.released()
        for message in messages:
            self._post(message)

    async def publish_once(self, message: RespondentMessage, key: str) -> None:
        """Publish a message that another process may publish again, under an id that is always the same. Raises
        `BusClosed`.
        """
        await self.released()
        envelope_id = response_id(key, message.respondent_id, message.subject)
        await self._bus.publish(message, self._trace, envelope_id=envelope_id)

    def reject(self, fault: str, result: ToolResult) -> None:
        """A tool has answered something else."""
        self._bus.reject(fault, result.encode())

    async def publish(self, response: ResponseGeneration) -> None:
        """Publish the recorded end."""
        await self.released()
        await publish_outcome(self._bus, self._conversation, response, self._trace)
