"""Does what a turn decides: calls the model, sends tool requests, stores steps, publishes the outcome."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from local.agents.steps import PlannedCall
from local.agents.token_stream import TokenStream
from local.agents.tool_registry import ToolRegistry, as_function
from local.agents.turn import Next, Turn, response_id
from local.agents.turn_table import Action, State
from local.bus.bus import Bus
from local.errors import LocalError, ModelError, RequestTimeout
from local.models.chat import ChatModel, Degraded
from local.models.text_calls import find_text_call
from local.protocol.envelope import Trace
from local.protocol.messages import (
    AgentTransition,
    AnswerDialog,
    ErrorInfo,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    ToolSchema,
)
from local.services.conversation import ConversationService, TurnStatus

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Means:
    """What every turn of a generator works with."""

    bus: Bus
    model: ChatModel
    conversation: ConversationService
    tools: ToolRegistry
    agent_id: str
    model_name: str
    options: Mapping[str, Any]
    tool_timeout_seconds: float
    clock: Callable[[], float] = field(default=time.monotonic)


class TurnRunner:
    """Runs one turn to its end. `cancel()` ends it early with what was said so far; cancelling the task leaves it to be
    continued by the next process."""

    def __init__(self, turn: Turn, means: Means, trace: Trace, attempt: int) -> None:
        self._turn, self._means, self._trace = turn, means, trace
        question = turn.question
        self._query_id, self._respondent_id = question.query_id, question.respondent_id
        self._tokens = TokenStream(means.bus, trace, self._query_id, self._respondent_id, attempt)
        self._stored = len(turn.steps)
        self._offered: dict[str, ToolSchema] = {}
        self._work: asyncio.Task[None] | None = None
        self._cancelled = False
        turn.on_change = self._tell_change

    async def run(self) -> None:
        """From the first model call, or the last stored step, to the published response."""
        self._work = asyncio.create_task(self._generate(), name=f"turn {self._query_id}")
        try:
            await asyncio.wait({self._work})
        finally:
            if self._work.cancel():
                await asyncio.wait({self._work})
        if self._cancelled:
            self._turn.cancel()
        elif not self._work.cancelled() and (error := self._work.exception()):
            self._turn.fail(self._explain(error))
        self._tokens.flush()
        await self._publish()

    def cancel(self) -> None:
        """Stop generating and publish what there is; without effect once the answer is complete."""
        if self._turn.state is not State.PUBLISHING and self._work is not None:
            self._cancelled = True
            self._work.cancel()

    async def _generate(self) -> None:
        following = self._turn.begin()
        while following is not Next.PUBLISH:
            following = await (self._call_model() if following is Next.CALL_MODEL else self._call_tools())
            if following is not Next.PUBLISH:
                await self._store_steps()

    async def _call_model(self) -> Next:
        means, turn = self._means, self._turn
        self._offered = means.tools.offered(means.clock())
        functions = [as_function(schema) for schema in self._offered.values()] if turn.offers_tools else []
        notes: list[str] = []
        stream = means.model.chat(
            means.model_name, turn.messages(), tools=functions, think=turn.thinks, options=means.options
        )
        try:
            async with aclosing(stream):
                async for delta in stream:
                    if isinstance(delta, Degraded):
                        notes.append(delta.note)
                    turn.hear(delta)
                    self._tokens.push(delta)
        except ModelError as error:
            if error.kind == "context_overflow" and turn.shorten_history():
                turn.forget_message()
                return Next.CALL_MODEL
            raise
        self._tokens.flush()
        call = find_text_call(turn.content, functions) if functions and not turn.calls else None
        if call is not None:
            notes.append(f"the call of {call.name} came as text")
        return turn.message_ended(notes, call)

    async def _call_tools(self) -> Next:
        turn = self._turn
        calls, settled = turn.calls_to_make(self._offered)
        tasks = {call.call_id: asyncio.create_task(self._call_tool(call), name=call.call_id) for call in calls}
        try:
            await asyncio.sleep(0)  # every task sends its request now
            turn.requests_sent()
            for call_id, task in tasks.items():
                settled[call_id] = await task
        finally:
            for task in tasks.values():
                task.cancel()
        return turn.tools_settled(settled)

    async def _call_tool(self, call: PlannedCall) -> ToolCallRecord:
        means = self._means
        seconds = min(self._offered[call.tool].timeout_seconds + 1.0, means.tool_timeout_seconds)
        request = ToolRequest(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            call_id=call.call_id,
            tool=call.tool,
            args=call.args,
        )
        started = means.clock()
        try:
            result = await means.bus.request(request, ToolResult, seconds, self._trace)
        except RequestTimeout:
            error = ErrorInfo(kind="timeout", message=f"{call.tool} did not answer within {seconds:g} s")
            duration_ms = round((means.clock() - started) * 1000, 3)
            return ToolCallRecord(
                call_id=call.call_id, tool=call.tool, args=call.args, error=error, duration_ms=duration_ms
            )
        return ToolCallRecord(
            call_id=call.call_id,
            tool=call.tool,
            args=call.args,
            result=result.result,
            error=result.error,
            sources=result.sources,
            duration_ms=result.duration_ms,
        )

    async def _publish(self) -> None:
        means, turn = self._means, self._turn
        response = turn.response()
        status = TurnStatus(response.status)
        await means.conversation.finish(
            self._query_id, status, response.answer, response.routing_key, response.encode().decode()
        )
        envelope_id = response_id(self._query_id, self._respondent_id)
        await means.bus.publish(response, self._trace, envelope_id=envelope_id)
        if response.status == "answered" and self._respondent_id == "A":
            dialog = AnswerDialog(query_id=self._query_id, query=response.query, answer=response.answer)
            await means.bus.publish(dialog, self._trace)
        await means.conversation.published(self._query_id)
        turn.published()

    async def _store_steps(self) -> None:
        new = self._turn.steps[self._stored :]
        await self._means.conversation.add_steps(self._query_id, self._stored, [step.model_dump_json() for step in new])
        self._stored += len(new)

    def _tell_change(self, before: State, action: Action, after: State) -> None:
        transition = AgentTransition(
            agent=self._means.agent_id,
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            from_state=before,
            action=action,
            to_state=after,
        )
        self._means.bus.post(transition, self._trace)

    def _explain(self, error: BaseException) -> ErrorInfo:
        if isinstance(error, LocalError):
            log.warning("the turn failed: %s", error)
            return ErrorInfo(kind=error.kind, message=str(error))
        log.error(
            "the turn failed: %s: %s", type(error).__name__, error, exc_info=error if log.isEnabledFor(10) else None
        )
        return ErrorInfo(kind="internal", message=f"{type(error).__name__}: {error}")
