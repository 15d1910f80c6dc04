"""Does what a turn decides: calls the model, sends tool requests, stores steps, publishes the outcome."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

from local import failpoints
from local.agents.answering.context.parts import Parts
from local.agents.answering.context.plan import Plan
from local.agents.answering.context_desk import compacted, gauge_of
from local.agents.answering.means import Means
from local.agents.answering.outcome import publish_outcome
from local.agents.answering.steps import PlannedCall, parse_record
from local.agents.answering.token_stream import TokenStream
from local.agents.answering.tool_registry import as_function
from local.agents.answering.turn import Next, Turn
from local.agents.answering.turn_table import Action, State
from local.errors import LocalError, MalformedFrame, ModelError, RequestTimeout, StoreFailed, StoreFenced
from local.models.chat import Done, Json
from local.models.text_calls import find_text_call
from local.protocol.envelope import Trace
from local.protocol.messages import (
    AgentTransition,
    ErrorInfo,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    ToolSchema,
)
from local.services.conversation import TurnStatus

log = logging.getLogger(__name__)

_NAMESPACE = uuid.UUID("0d3f6b7e-58d7-4c52-8a8e-9b1f1c6c2e4d")


TOO_LONG = "the conversation was too long for the model; its oldest part was left out"


def request_id(call_id: str, respondent_id: str) -> str:
    """The id of the envelope that makes a call: always the same, so that a tool knows a call that is made again."""
    return uuid.uuid5(_NAMESPACE, f"{call_id}\n{respondent_id}").hex


class TurnRunner:
    """Runs one turn to its end. `cancel()` ends it early with what was said so far; cancelling the task leaves it to be
    continued by the next process."""

    def __init__(self, turn: Turn, means: Means, trace: Trace, attempt: int, *, keeps_summaries: bool = True) -> None:
        self._turn, self._means, self._trace = turn, means, trace
        self._session_id = trace.session_id if keeps_summaries else None
        self._last_prompt: tuple[Plan, Parts] | None = None
        question = turn.question
        self._query_id, self._respondent_id = question.query_id, question.respondent_id
        self._tokens = TokenStream(means.bus, trace, self._query_id, self._respondent_id, attempt)
        self._stored = len(turn.steps)
        self._is_hearing = False  # a message of the model
        self._offered: dict[str, ToolSchema] = {}
        self._kept: dict[str, ToolCallRecord] = {}  # results that an earlier process got
        self._results: dict[str, ToolCallRecord] = {}  # of the calls under way
        self._unsent: set[str] = set()  # call_ids of the calls under way
        self._unsettled: set[str] = set()
        self._work: asyncio.Task[None] | None = None
        self._cancelled = False
        turn.on_change = self._tell_change

    async def run(self) -> ResponseGeneration:
        """From the first model call, or the last stored step, to the stored response.

        Raises `StoreFailed` for what could not be stored, `StoreFenced` in a process that was replaced: the turn has no
        end then, and goes on from its last step when it is run again.
        """
        self._work = asyncio.create_task(self._generate(self._turn.begin()), name=f"turn {self._query_id}")
        if self._cancelled:
            self._work.cancel()
        try:
            await asyncio.wait({self._work})
        finally:
            if self._work.cancel():
                await asyncio.wait({self._work})
        error = asyncio.CancelledError() if self._work.cancelled() else self._work.exception()
        if self._cancelled:
            self._turn.cancel(self._results)
        elif isinstance(error, StoreFailed | StoreFenced):
            raise error
        elif error is not None:
            self._turn.fail(_explained(error))
        self._tokens.flush()
        response = self._turn.response()
        if self._means.answers_as is not None:
            response = response.model_copy(update={"model": self._means.answers_as})
        await self._means.conversation.finish(
            self._query_id,
            TurnStatus(response.status),
            response.answer,
            response.routing_key,
            response.encode().decode(),
        )
        failpoints.reach("turn.end_stored")
        return response

    async def publish(self, response: ResponseGeneration) -> None:
        """Let everybody have the stored response."""
        await publish_outcome(self._means.bus, self._means.conversation, response, self._trace)
        self._turn.published()
        if self._last_prompt is not None:
            self._means.context.afterwards(*self._last_prompt, self._session_id, self._tell_compaction)

    def cancel(self) -> None:
        """Stop generating and publish what there is; without effect once the answer is complete."""
        if self._turn.state is not State.PUBLISHING:
            self._cancelled = True
            if self._work is not None:
                self._work.cancel()

    async def _generate(self, following: Next) -> None:
        with self._means.priority.turn():
            await self._follow(following)

    async def _follow(self, following: Next) -> None:
        if following is Next.CALL_TOOLS:  # an earlier process began that
            self._offered = self._means.tools.offered(self._means.clock())
            records = [parse_record(body) for body in await self._means.conversation.results(self._query_id)]
            self._kept = {record.call_id: record for record in records}
        while following is not Next.PUBLISH:
            following = await (self._call_model() if following is Next.CALL_MODEL else self._call_tools())
            if following is not Next.PUBLISH:
                await self._store_steps()

    async def _call_model(self) -> Next:
        means, turn = self._means, self._turn
        self._offered = means.tools.offered(means.clock())
        functions = [as_function(schema) for schema in self._offered.values()] if turn.offers_tools else []
        await means.priority.call(partial(self._ask, functions))
        self._tokens.flush()
        call = find_text_call(turn.content, functions) if functions and not turn.calls else None
        return turn.message_ended(call)

    async def _ask(self, functions: Sequence[Json]) -> None:
        """Hear one message of the model; from its beginning, if it was cut off in one."""
        means = self._means
        if self._is_hearing:
            self._tokens.begin_again(await means.conversation.next_attempt(self._query_id))
        self._is_hearing = True
        for is_last_try in (False, True):
            planned = await self._plan(functions)
            try:
                await self._listen(planned)
                break
            except ModelError as error:
                if error.kind != "context_overflow":
                    raise
                means.context.overflowed(planned)
                if is_last_try:
                    raise planned.gauge.too_large() from None
        self._is_hearing = False

    async def _plan(self, functions: Sequence[Json]) -> Plan:
        turn = self._turn
        planned, parts = await self._means.context.fit(turn.parts(functions), self._session_id)
        turn.summarised(parts)
        turn.begin_message(*([TOO_LONG] if planned.left_out else []), gauge=gauge_of(planned))
        if planned.is_compacted:
            self._tell_compaction(planned, parts)
        self._last_prompt = planned, parts
        return planned

    async def _listen(self, planned: Plan) -> None:
        means, turn = self._means, self._turn
        stream = means.model.chat(
            means.model_name, planned.messages, tools=planned.tools, think=turn.thinks, options=means.options
        )
        async with aclosing(stream):
            async for delta in stream:
                turn.hear(delta)
                self._tokens.push(delta)
                if isinstance(delta, Done):
                    means.context.counted(planned, delta.usage.prompt_tokens)

    async def _call_tools(self) -> Next:
        turn = self._turn
        calls, self._results = turn.calls_to_make(self._offered, self._kept)
        self._unsent = {call.call_id for call in calls}
        self._unsettled = set(self._unsent)
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(self._call_tool(call), name=call.call_id)
        if not calls:
            turn.requests_sent()
        failpoints.reach("turn.results_in")
        return turn.tools_settled(self._results)

    async def _call_tool(self, call: PlannedCall) -> None:
        self._results[call.call_id] = await self._result(call)

    async def _result(self, call: PlannedCall) -> ToolCallRecord:
        """The result, or what kept us from one: whatever goes wrong here is for the model to read."""
        means = self._means
        seconds = self._seconds_for(self._offered[call.tool])
        record = ToolCallRecord(call_id=call.call_id, tool=call.tool, args=call.args)
        started = means.clock()
        try:
            settled = await self._request(call, seconds)
        except LocalError as failure:
            self._left(call)
            late = isinstance(failure, RequestTimeout)
            message = f"did not answer within {seconds:g} s" if late else f"gave no answer: {failure}"
            error = ErrorInfo(kind=failure.kind, message=f"{call.tool} {message}")
            duration_ms = round((means.clock() - started) * 1000, 3)
            return record.model_copy(update={"error": error, "duration_ms": duration_ms})
        fields = ("result", "error", "sources", "duration_ms")
        record = record.model_copy(update={name: getattr(settled, name) for name in fields})
        if self._unsettled:  # the last one is stored with the step
            means.conversation.keep_result(self._query_id, call.call_id, record.model_dump_json())
        return record

    async def _request(self, call: PlannedCall, seconds: float) -> ToolResult:
        bus = self._means.bus
        request = ToolRequest(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            call_id=call.call_id,
            tool=call.tool,
            args=call.args,
        )
        envelope_id = request_id(call.call_id, self._respondent_id)
        try:
            result = await bus.request(
                request, ToolResult, seconds, self._trace, envelope_id=envelope_id, on_sent=lambda: self._left(call)
            )
        finally:
            self._unsettled.discard(call.call_id)
        if result.call_id != call.call_id:
            fault = f"the answer to call {call.call_id} is a result of call {result.call_id}"
            bus.reject(fault, result.encode())
            raise MalformedFrame(fault)
        return result

    def _left(self, call: PlannedCall) -> None:
        """A request is on its way, or none will be."""
        self._unsent.discard(call.call_id)
        if not self._unsent and self._turn.state is State.DISPATCHING_TOOL:
            self._turn.requests_sent()

    def _seconds_for(self, schema: ToolSchema) -> float:
        """A second more than the tool gives itself, so that its own words about being late come first."""
        says = "timeout_seconds" in schema.model_fields_set
        return 1.0 + (schema.timeout_seconds if says else self._means.tool_timeout_seconds)

    async def _store_steps(self) -> None:
        new = self._turn.steps[self._stored :]
        await self._means.conversation.add_steps(self._query_id, self._stored, [step.model_dump_json() for step in new])
        self._stored += len(new)
        failpoints.reach("turn.step_stored")

    def _tell_compaction(self, planned: Plan, parts: Parts) -> None:
        self._means.bus.post(compacted(planned, parts, self._query_id, self._respondent_id), self._trace)

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


def _explained(error: BaseException) -> ErrorInfo:
    if isinstance(error, LocalError):
        log.warning("the turn failed: %s", error)
        return ErrorInfo(kind=error.kind, message=str(error))
    name = type(error).__name__
    log.error("the turn failed: %s: %s", name, error, exc_info=error if log.isEnabledFor(logging.DEBUG) else None)
    return ErrorInfo(kind="internal", message=f"{name}: {error}")
