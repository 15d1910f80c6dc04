"""The driver of a turn: calls the model, has tools called, stores steps, publishes the outcome."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import cached_property, partial

from local.bus.message import ErrorInfo
from local.bus.messages import ContextProvided, ResponseGeneration, ToolSchema, latest_list
from local.bus.vocabulary import TODO_LIST
from local.core.errors import LocalError, ModelError, StoreFailed, StoreFenced
from local.generator.builtin_tools import SCHEMAS, carried
from local.generator.context import Exchange, PromptParts
from local.generator.fitting import Plan, gauge_of
from local.generator.hooks import TurnHooks
from local.generator.links import DeltaFilter
from local.generator.output import TurnOutput
from local.generator.steps import CallTimer, ModelStep, NextStep, TurnState, signed_as
from local.generator.taint import TurnTaint
from local.generator.tool_calls import ToolCalls, TurnContext
from local.generator.tool_list import SHARE, ToolList, ToolRoom
from local.generator.tool_registry import CATEGORIES, WorkPhase, does_more_than_read, phase_after, with_own
from local.generator.turn import Turn, unwrapped
from local.models.chat import AwayDelta, ContentDelta, Delta, Done, Json, RestartDelta, ThinkingDelta
from local.models.client import may_be_call
from local.models.settings import Tier
from local.permissions.messages import QUESTIONS_OF_THE_MODEL

# The model's content without tool calls written as text: their JSON is not shown to users.


_MAY_BEGIN = re.compile(r"[{\[<`]")


class HeldCall:
    """A buffer for content that may be a tool call written as text: passes the deltas of one message on, but holds
    content back from what begins like a call until it is clear that it is none. `text` is the held content; at the end
    of the message the caller knows whether it was a call.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """`names` are those of the tools."""
        self._names = names
        self.text = ""
        self._begins_line = True

    def receive(self, delta: Delta) -> Iterator[Delta]:
        """Yield the deltas that may be published now."""
        if isinstance(delta, RestartDelta):
            self.text, self._begins_line = "", True
        if not isinstance(delta, ContentDelta):
            yield delta
        elif said := self._released(delta.text):
            yield ContentDelta(said)

    def _released(self, text: str) -> str:
        said = ""
        self.text += text
        while self.text:
            if self._begins_line and may_be_call(self.text, self._names):
                break
            line, end, rest = self.text.partition("\n")
            if (begin := self._call_in(line + end + rest, len(line))) is not None:
                said, self.text, self._begins_line = said + self.text[:begin], self.text[begin:], True
                break
            said += line + end
            self.text, self._begins_line = rest, bool(end)
        return said

    @staticmethod
    def _call_in(text: str, end: int) -> int | None:
        """Where a call may begin within the first line of a text, which has that end; None if nowhere."""
        return next((m.start() for m in _MAY_BEGIN.finditer(text, 0, end) if may_be_call(text[m.start() :])), None)


log = logging.getLogger(__name__)

TOO_LONG = "the conversation was too long for the model; its oldest part was left out"


class TurnRunner:
    """The driver of one turn: runs it to its end. `cancel()` ends it early with its partial answer; cancelling the task
    leaves it to the next process. `start()` computes ahead of `run()`, in memory alone.
    """

    def __init__(
        self,
        turn: Turn,
        context: TurnContext,
        output: TurnOutput,
        session_id: str | None,
        taint: TurnTaint | None = None,
    ) -> None:
        """`session_id` is the session whose summaries are stored, if there is one."""
        self._taint = taint or TurnTaint(turn)
        self._turn, self._context, self._output, self._session_id = turn, context, output, session_id
        self._priority = context.priority
        self._last_prompt: tuple[Plan, PromptParts] | None = None
        self._stored = len(turn.steps)
        self._is_hearing = False  # a message of the model
        self._knows_list = False  # of the to-do items that earlier turns left
        self._has_told = False  # the block before the question is published
        self._told: ContextProvided | None = None  # its content from the memory
        self._timer = CallTimer()
        self._held = HeldCall(())  # of the current message
        self._offered: dict[str, ToolSchema] = {}  # the tools that may be called
        self._listed = ToolList()  # the tools in the model's prompt
        self._phase = WorkPhase.RESEARCHING
        self._unknown: list[str] = []  # tools that the asker names and that do not exist
        self._work: asyncio.Task[None] | None = None
        self._cancelled = False
        turn.on_change = output.changed

    @property
    def waits_for_model(self) -> bool:
        """Whether the turn is one that the model works at, or shall."""
        return self._turn.state is TurnState.GENERATING

    @cached_property
    def _calls(self) -> ToolCalls:
        return ToolCalls(self._turn, self._context, self._output, self._taint)

    @cached_property
    def _hooks(self) -> TurnHooks | None:
        hooks = self._context.gate.hooks if self._context.gate else ()
        return TurnHooks(hooks, self._turn, self._output) if hooks else None

    def start(self) -> None:
        """Begin to compute. Nothing leaves before `run`."""
        following = self._turn.begin()
        self._work = asyncio.create_task(self._follow(following), name=f"turn {self._turn.question.query_id}")

    async def abandon(self) -> None:
        """Discard the work that `start` has begun; nothing of it is published."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def run(self) -> ResponseGeneration:
        """Run from the first model call, or the last stored step, to the stored response.

        Raises `StoreFailed` for what could not be stored, `StoreFenced` in a process that was replaced: the turn has no
        end then, and continues from its last step when it is run again.
        """
        if self._work is None:
            self.start()
        self._output.release()
        with self._priority.turn():
            error = await self._error()
        if self._cancelled:
            self._turn.cancel(self._calls.results)
        elif isinstance(error, StoreFailed | StoreFenced):
            raise error
        elif error is not None:
            self._turn.fail(_explained(error))
        self._output.flush()
        response = self._output.signed(self._turn.response(self._timer.end()))
        if self._held.text:  # a call that was not written to its end
            response = response.model_copy(update={"answer": response.answer.removesuffix(self._held.text)})
        if self._context.answers_as is not None:
            name = self._context.answers_as
            response = response.model_copy(update={"model": name, "usage": signed_as(name, response.usage)})
        sent, tools = self._as_sent(response), self._context.offer.to_keep
        await self._output.store_end(response, _as_heard(self._turn), tools, sent)
        return response

    def _as_sent(self, response: ResponseGeneration) -> str | None:
        """Return this exchange as it was sent to the model, for later turns: with the last call's messages. Calls of a
        cancelled turn are left out.
        """
        if self._last_prompt is None or not response.in_history or response.status == "failed":
            return None
        planned, _ = self._last_prompt
        sent = planned.turn if response.status == "answered" else planned.turn[:1]
        answer = {"role": "assistant", "content": response.answer}
        sources = [source for call in response.tool_calls for source in call.sources]
        return Exchange(0, (*sent, answer), planned.said).as_json(sources, self._told)

    def knows(self, engram_id: str) -> bool:
        """Whether something of an engram is in the block before its question."""
        context = self._turn.parts(()).context
        return any(engram_id in item.engram_ids for item in context.items)

    async def _error(self) -> BaseException | None:
        """Wait for the end of the work; return the error that replaced its own end."""
        work = self._work
        assert work is not None, "it is started"
        if self._cancelled:
            work.cancel()
        try:
            await asyncio.wait({work})
        finally:
            if work.cancel():
                await asyncio.wait({work})
        return asyncio.CancelledError() if work.cancelled() else work.exception()

    async def publish(self, response: ResponseGeneration) -> None:
        """Publish the stored response."""
        await self._output.publish(response)
        self._turn.published()
        if self._last_prompt is not None:
            self._context.prompts.afterwards(*self._last_prompt, self._session_id, self._output.compacted)

    def cancel(self) -> None:
        """Stop generating and publish the partial answer; without effect once the answer is complete."""
        if self._turn.state is not TurnState.PUBLISHING:
            self._cancelled = True
            if self._work is not None:
                self._work.cancel()

    async def _follow(self, following: NextStep) -> None:
        if following is NextStep.CALL_TOOLS:  # an earlier process began that
            asks_user = any(call.tool in QUESTIONS_OF_THE_MODEL for call in self._turn.last_calls)
            await self._offer(asks_user=asks_user)
            await self._calls.recall()
        elif self._hooks is not None and not self._turn.steps:
            await self._hooks.begin(first=not any(each["role"] == "user" for each in self._turn.question.prelude))
        while following is not NextStep.PUBLISH:
            calls_model = following is NextStep.CALL_MODEL
            following = await (self._call_model() if calls_model else self._calls.make(self._offered))
            if following is not NextStep.PUBLISH:
                await self._store_steps()

    def _tools_now(self, *, asks_user: bool = False) -> dict[str, ToolSchema]:
        """Return the tools that the model may call; `asks_user` in a call that an earlier process has begun."""
        turn, gate = self._turn, self._context.gate
        tools, options = self._context.tools.offered(self._context.clock()), turn.question.options
        tools = {name: schema for name, schema in tools.items() if schema.serves(self._context.user_id)}
        if options is not None:
            self._unknown = options.unknown({*tools, *SCHEMAS})
            tools = {name: schema for name, schema in tools.items() if options.offers(name)}
        turn.acts = does_more_than_read(tools.values())
        asks_user = asks_user or (gate is not None and gate.may_ask(turn.question))
        return with_own(tools, options, asks_user=asks_user, listed=self._context.offer.names)

    def _list(self) -> None:
        """Choose the tools in the model's prompt, the same for the whole turn."""
        turn, window = self._turn, self._context.prompts.window
        room = ToolRoom(window.limits.share(SHARE), lambda function: window.meter.tokens(function.size))
        offer = self._context.offer
        self._listed = offer.settle(self._offered, turn.question.query, turn.question.options, room)
        turn.listed = frozenset(self._listed.names)
        turn.is_small = offer.tier is Tier.SMALL
        phase = phase_after(turn.records, self._offered) if turn.acts else WorkPhase.RESEARCHING
        self._output.phase = phase.value if turn.acts else ""
        self._phase = phase if offer.rules.work_phases else WorkPhase.RESEARCHING

    def _is_offered(self, name: str) -> bool:
        """Whether a tool is in the model's prompt. One that has disappeared stays there: calls of it are answered with
        that error.
        """
        schema = self._offered.get(name)
        if schema is None:
            options = self._turn.question.options
            has_gone = name not in SCHEMAS and name not in self._context.tools.offered(self._context.clock())
            return has_gone and (options is None or options.offers(name))
        called = any(record.tool == name for record in self._turn.records)
        return called or schema.category in CATEGORIES[self._phase]

    async def _call_model(self) -> NextStep:
        turn = self._turn
        await self._offer()
        if TODO_LIST in self._offered and not self._knows_list:
            self._knows_list = True
            left = carried(latest_list(await self._output.earlier_list(self._session_id)))
            turn.begin_with(turn.parts(()).reminded(left))
        told = zip(self._listed.names, self._listed.functions, strict=True)
        functions = turn.functions(function for name, function in told if self._is_offered(name))
        await self._priority.call(partial(self._ask, functions))
        self._output.flush()
        calls = turn.calls_in_text(functions)
        if not calls and self._held.text:
            self._output.receive(ContentDelta(self._held.text))
            self._output.flush()
        self._held = HeldCall(())
        if self._hooks is not None:
            await self._hooks.after_model([*turn.calls, *map(unwrapped, calls)])
        return turn.message_ended(calls, self._timer.end())

    async def _offer(self, *, asks_user: bool = False) -> None:
        """Find out which tools exist now, and which of them are in the model's prompt."""
        tools = self._tools_now(asks_user=asks_user)
        self._offered = tools if self._hooks is None else await self._hooks.tools(tools)
        self._list()

    async def _ask(self, functions: Sequence[Json]) -> None:
        """Hear one message of the model; from its beginning, if it was cut off in one."""
        context = self._context
        if self._is_hearing:
            self._output.begin_again(await self._output.next_attempt())
        self._is_hearing = True
        for is_last_try in (False, True):
            planned = await self._plan(functions)
            try:
                await self._listen(planned, functions)
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
        prompts = self._context.prompts
        shown = functions if prompts.window.takes_tools else ()
        planned, parts = await prompts.fit(turn.parts(shown), self._session_id, self._output.released)
        turn.begin_with(parts, planned.left_out)
        notes = [TOO_LONG] if planned.left_out else []
        notes += [f"no tool is called {name!a} now" for name in self._unknown]
        turn.begin_message(*notes, gauge=gauge_of(planned))
        if planned.is_compacted:
            self._output.compacted(planned, parts)
        if not self._has_told:
            self._has_told = True
            self._told = self._output.provided(planned.said, turn.question.recalled, self._context.prompts.window.meter)
        self._last_prompt = planned, parts
        return planned

    async def _listen(self, planned: Plan, functions: Sequence[Json]) -> None:
        context, turn = self._context, self._turn
        wanted, limit = turn.question.options, min(context.max_answer_tokens, planned.gauge.left)
        if wanted is not None:
            limit = min(limit, wanted.max_tokens or limit)

        def ask(most: int) -> AsyncGenerator[Delta, None]:
            return context.model.chat(
                self._priority.model or context.model_name,
                planned.messages,
                tools=functions,  # a client notes if it leaves them out
                think=turn.thinks,
                options={"num_predict": most, **context.options, **(wanted.sampling if wanted else {})},
                format=wanted.form if wanted else None,
                in_words=turn.wants_words,
            )

        stream = ask(limit)
        links = await self._links_of_message() if turn.tainted else None
        self._held = HeldCall([tool["function"]["name"] for tool in planned.tools])
        self._timer.begin()
        async with aclosing(stream):
            async for delta in stream:
                self._timer.receive(delta)
                if isinstance(delta, RestartDelta):
                    self._output.begin_again(await self._output.next_attempt())
                for heard in (delta,) if links is None else links.receive(delta):
                    turn.receive(heard)
                    for told in self._held.receive(heard):
                        self._output.receive(told)
                await self._output.room()
                if isinstance(delta, AwayDelta):
                    context.on_away(delta.note)
                elif isinstance(delta, Done):
                    context.prompts.window.counted(planned, delta.usage.prompt_tokens)
                    context.on_answered()
                    self._priority.answered(delta.usage)
                if self._held.text and isinstance(delta, ContentDelta) and turn.repeats_itself(planned.tools):
                    break
        if not turn.question.incognito:
            self._priority.asked(ask)

    async def _links_of_message(self) -> DeltaFilter:
        """Return the link filter of a tainted message. Observers join the messages of a turn: the end of one and the
        beginning of the next must not form a link.
        """
        said = [step for step in self._turn.steps if isinstance(step, ModelStep)]
        if any(step.thinking for step in said):
            self._output.receive(ThinkingDelta("\n\n"))
        if any(step.content for step in said):
            self._output.receive(ContentDelta("\n\n"))
        return await self._taint.link_filter()

    async def _store_steps(self) -> None:
        new = self._turn.steps[self._stored :]
        await self._output.store_steps(self._stored, new)
        self._stored += len(new)


def _as_heard(turn: Turn) -> tuple[str, ...]:
    """Return the text of all its messages, joined as observers join them."""
    said = [*(step.content for step in turn.steps if isinstance(step, ModelStep)), turn.content]
    return "".join(said), "\n\n".join(said)


def _explained(error: BaseException) -> ErrorInfo:
    if isinstance(error, LocalError):
        log.warning("the turn failed: %s", error)
        return ErrorInfo.of(error)
    name = type(error).__name__
    log.error("the turn failed: %s: %s", name, error, exc_info=error if log.isEnabledFor(logging.DEBUG) else None)
    return ErrorInfo(kind="internal", message=f"{name}: {error}")
