"""Does what a turn decides: calls the model, has tools called, stores steps, publishes the outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

from local import failpoints
from local.agents.answering.context.prompt_draft import Plan
from local.agents.answering.context.prompt_fitter import gauge_of
from local.agents.answering.context.prompt_parts import Parts
from local.agents.answering.outcomes import publish_outcome
from local.agents.answering.tool_calls import ToolCalls
from local.agents.answering.tool_registry import as_function
from local.agents.answering.turn import Next, Turn
from local.agents.answering.turn_context import TurnContext
from local.agents.answering.turn_output import TurnOutput
from local.agents.answering.turn_table import TurnState
from local.errors import LocalError, ModelError, StoreFailed, StoreFenced
from local.models.chat import Done, Json
from local.models.text_calls import find_text_call
from local.protocol.envelope import Trace
from local.protocol.messages import ErrorInfo, ResponseGeneration, ToolSchema
from local.services.conversation import TurnStatus

log = logging.getLogger(__name__)

TOO_LONG = "the conversation was too long for the model; its oldest part was left out"


class TurnRunner:
    """Runs one turn to its end. `cancel()` ends it early with what was said so far; cancelling the task leaves it to be
    continued by the next process."""

    def __init__(
        self, turn: Turn, context: TurnContext, trace: Trace, attempt: int, *, keeps_summaries: bool = True
    ) -> None:
        self._turn, self._context, self._trace = turn, context, trace
        self._session_id = trace.session_id if keeps_summaries else None
        self._last_prompt: tuple[Plan, Parts] | None = None
        question = turn.question
        self._query_id = question.query_id
        self._output = TurnOutput(
            context.bus, trace, context.agent_id, question.query_id, question.respondent_id, attempt
        )
        self._calls = ToolCalls(turn, context, trace)
        self._stored = len(turn.steps)
        self._is_hearing = False  # a message of the model
        self._offered: dict[str, ToolSchema] = {}
        self._work: asyncio.Task[None] | None = None
        self._cancelled = False
        turn.on_change = self._output.changed

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
            self._turn.cancel(self._calls.results)
        elif isinstance(error, StoreFailed | StoreFenced):
            raise error
        elif error is not None:
            self._turn.fail(_explained(error))
        self._output.flush()
        return await self._store_end()

    async def publish(self, response: ResponseGeneration) -> None:
        """Let everybody have the stored response."""
        await publish_outcome(self._context.bus, self._context.conversation, response, self._trace)
        self._turn.published()
        if self._last_prompt is not None:
            self._context.prompts.afterwards(*self._last_prompt, self._session_id, self._output.compacted)

    def cancel(self) -> None:
        """Stop generating and publish what there is; without effect once the answer is complete."""
        if self._turn.state is not TurnState.PUBLISHING:
            self._cancelled = True
            if self._work is not None:
                self._work.cancel()

    async def _generate(self, following: Next) -> None:
        with self._context.priority.turn():
            await self._follow(following)

    async def _follow(self, following: Next) -> None:
        if following is Next.CALL_TOOLS:  # an earlier process began that
            self._offered = self._tools_now()
            await self._calls.recall()
        while following is not Next.PUBLISH:
            calls_model = following is Next.CALL_MODEL
            following = await (self._call_model() if calls_model else self._calls.make(self._offered))
            if following is not Next.PUBLISH:
                await self._store_steps()

    def _tools_now(self) -> dict[str, ToolSchema]:
        return self._context.tools.offered(self._context.clock())

    async def _call_model(self) -> Next:
        turn = self._turn
        self._offered = self._tools_now()
        functions = [as_function(schema) for schema in self._offered.values()] if turn.offers_tools else []
        await self._context.priority.call(partial(self._ask, functions))
        self._output.flush()
        call = find_text_call(turn.content, functions) if functions and not turn.calls else None
        return turn.message_ended(call)

    async def _ask(self, functions: Sequence[Json]) -> None:
        """Hear one message of the model; from its beginning, if it was cut off in one."""
        context = self._context
        if self._is_hearing:
            self._output.begin_again(await context.conversation.next_attempt(self._query_id))
        self._is_hearing = True
        for is_last_try in (False, True):
            planned = await self._plan(functions)
            try:
                await self._listen(planned)
                break
            except ModelError as error:
                if error.kind != "context_overflow":
                    raise
                context.prompts.window.overflowed(planned)
                if is_last_try:
                    raise planned.gauge.too_large() from None
        self._is_hearing = False

    async def _plan(self, functions: Sequence[Json]) -> Plan:
        turn = self._turn
        planned, parts = await self._context.prompts.fit(turn.parts(functions), self._session_id)
        turn.summarised(parts)
        turn.begin_message(*([TOO_LONG] if planned.left_out else []), gauge=gauge_of(planned))
        if planned.is_compacted:
            self._output.compacted(planned, parts)
        self._last_prompt = planned, parts
        return planned

    async def _listen(self, planned: Plan) -> None:
        context, turn = self._context, self._turn
        stream = context.model.chat(
            context.model_name, planned.messages, tools=planned.tools, think=turn.thinks, options=context.options
        )
        async with aclosing(stream):
            async for delta in stream:
                turn.hear(delta)
                self._output.hear(delta)
                if isinstance(delta, Done):
                    context.prompts.window.counted(planned, delta.usage.prompt_tokens)

    async def _store_steps(self) -> None:
        new = [step.model_dump_json() for step in self._turn.steps[self._stored :]]
        await self._context.conversation.add_steps(self._query_id, self._stored, new)
        self._stored += len(new)
        failpoints.reach("turn.step_stored")

    async def _store_end(self) -> ResponseGeneration:
        response = self._turn.response()
        if self._context.answers_as is not None:
            response = response.model_copy(update={"model": self._context.answers_as})
        status, body = TurnStatus(response.status), response.encode().decode()
        await self._context.conversation.finish(self._query_id, status, response.answer, response.routing_key, body)
        failpoints.reach("turn.end_stored")
        return response


def _explained(error: BaseException) -> ErrorInfo:
    if isinstance(error, LocalError):
        log.warning("the turn failed: %s", error)
        return ErrorInfo(kind=error.kind, message=str(error))
    name = type(error).__name__
    log.error("the turn failed: %s: %s", name, error, exc_info=error if log.isEnabledFor(logging.DEBUG) else None)
    return ErrorInfo(kind="internal", message=f"{name}: {error}")
