"""The budget of a prompt: which parts it keeps if not everything fits into the model's window.

Problem: a conversation grows without end, a tool's result may be longer than the window, and only the server knows how
many tokens a text has. A prompt that is too long fails the turn; one that begins differently each time is evaluated
again.

Idea: tokens are estimated from letters, digits and other characters, and the estimate learns from the server's counts
(`TokenMeter`). While everything fits, the prompt only grows at its end. To change its beginning seldom, room is made
ahead: above 75 % of the window older turns are summarised in the background until a third is left; where a prompt does
not fit, old results become one line each, which explains how to get them again, until half is left. The summary stays
the same until the next one is made: its oldest and its youngest facts, and its story. Of the other facts, those that a
question is about are placed just before it. Parts that still do not fit are left out in a fixed order, the least useful
first: old thinking, old turns, old rounds of calls, the ends of the last results, the summary.

Invariants: the system message, the tools, the question and the turn's notes to the model stay whole; calls keep their
results; the answer keeps its reserve; if not even that fits, `ContextTooLarge` names the size of each part.

Rejected: dropping the oldest messages alone, which forgets the user's statements; counting with a tokenizer, as each
model has its own; and choosing the summary's facts by the question, which changed the beginning of each prompt.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from local.bus.messages import ContextCompacted, ContextGauge, Said, with_block
from local.core.errors import ContextTooLarge, ModelError, StoreFailed, StoreFenced
from local.generator.context import (
    AFTER_OVERFLOW,
    ROUND_SHARE,
    Gauge,
    Limits,
    Part,
    PromptParts,
    Summary,
    SummaryJob,
    TextComposition,
    TokenMeter,
    fitted,
    has_results,
    headed,
    left_out_calls,
    masked,
    plan_summary,
    repeatable_calls,
    rounds_of,
    size_of,
    size_of_prompt,
    size_of_tools,
    without_thinking,
)
from local.generator.history import ConversationService
from local.models.chat import ChatModel, Json, ModelInfo, whole_reply
from local.models.leases import Leases

Group = tuple[Json, ...]


class PromptBudget:
    """A prompt that is cut until it fits, complete at first. Each step cuts no more than necessary: `mask` to its own
    threshold, all later steps to the room beside the answer.
    """

    def __init__(self, parts: PromptParts, meter: TokenMeter, limits: Limits) -> None:
        self._parts, self._meter, self._limits = parts, meter, limits
        self.masked = self.folded = self.left_out = 0
        self._whole_rounds = rounds_of(parts.steps)
        self._rounds = list(self._whole_rounds)
        self._note = ""  # before the first result: which rounds were left out
        self._round_costs = [self._cost(group) for group in self._rounds]
        self._exchanges = list(parts.exchanges)
        self._turn_costs = [self._cost(exchange.messages) for exchange in self._exchanges]
        self._fixed = {Part.SYSTEM: self._cost(parts.system), Part.TOOLS: meter.tokens(size_of_tools(parts.tools))}
        self._facts = parts.summary.asked_for(parts.asked, limits)
        self._ask()
        self._summary: Group
        self._summary_cost: int
        self._add_summary()

    @property
    def used(self) -> int:
        """Return the tokens of the prompt in its present form."""
        return sum(self._fixed.values()) + self._summary_cost + self._history_cost() + self._steps_cost()

    def gauge(self) -> Gauge:
        """Return how full the window is."""
        parts = {
            **self._fixed,
            Part.SUMMARY: self._summary_cost,
            Part.HISTORY: self._history_cost(),
            Part.STEPS: self._steps_cost(),
            Part.RESERVE: self._limits.reserve,
        }
        return Gauge(self._limits.window, {part: parts[part] for part in Part})

    def messages(self) -> tuple[Json, ...]:
        """The prompt."""
        turns = (message for exchange in self._exchanges[self.left_out :] for message in exchange.messages)
        return (*self._parts.system, *self._summary, *turns, *self.turn_messages())

    def turn_messages(self) -> tuple[Json, ...]:
        """Return the part of the prompt from this turn: the question with its block, and the messages after it."""
        first = next(iter(self._rounds_with_results()), None)
        steps = (
            message
            for index, group in enumerate(self._rounds)
            for message in (headed(group, self._note) if self._note and index == first else group)
        )
        return (self._question, *steps)

    def excerpt_long_results(self) -> None:
        """Cut long tool results to excerpts. The room of a round depends on nothing else in the prompt, so that an
        excerpt stays the same from call to call and the server finds it in its cache.
        """
        room = self._limits.share(ROUND_SHARE)
        for index in self._rounds_with_results():
            self._replace(index, fitted(self._rounds[index], self._parts.asked, room, self._meter))

    def mask_as_before(self) -> None:
        """Leave out the results that have been stubs since the summary was made."""
        masked = [i for i, each in enumerate(self._exchanges) if each.position <= self._parts.summary.masked]
        for index in masked:
            self._mask_turn(index)
        if masked:
            self._ask()

    def mask(self) -> None:
        """Replace old tool results by stubs, the oldest first: those of earlier turns, then those of this turn except
        the last round.

        The outcome is that of a prompt growing from its beginning: each time it exceeds the high-water mark, results
        are masked down to the low one. So the same ones stay masked until the mark is exceeded again.
        """
        again = repeatable_calls(self._rounds, self._parts.tools)
        old, grown = deque[Callable[[], int]](), self.used - self._history_cost() - self._steps_cost()
        grown -= self._fixed[Part.QUESTION]
        for index, cost in enumerate(self._turn_costs):
            old.append(partial(self._mask_turn, index))
            grown = self._masked_down(grown + cost, old)
        rounds, costs = self._rounds_with_results(), list(self._round_costs)
        for index, cost in enumerate(costs):
            grown = self._masked_down(grown + cost, old)
            if index in rounds[:-1]:
                old.append(partial(self._mask_round, index, again))
        while old and self.used > self._limits.room:  # the question, too, takes room
            old.popleft()()
        self._ask()

    def _masked_down(self, grown: int, old: deque[Callable[[], int]]) -> int:
        if grown > self._limits.high_water:
            while old and grown > self._limits.mask_to:
                grown -= old.popleft()()
        return grown

    def _mask_round(self, index: int, again: frozenset[str]) -> int:
        whole, before = self._whole_rounds[index], self._round_costs[index]
        group = masked(whole, again)
        self.masked += sum(stub is not result for stub, result in zip(group, whole, strict=True))
        self._replace(index, group)
        return before - self._round_costs[index]

    def _mask_turn(self, index: int) -> int:
        whole, before = self._exchanges[index], self._turn_costs[index]
        stubs = whole.without_results()
        self.masked += sum(stub != message for stub, message in zip(stubs.messages, whole.messages, strict=True))
        self._exchanges[index] = stubs
        self._turn_costs[index] = self._cost(stubs.messages)
        return before - self._turn_costs[index]

    def _ask(self) -> None:
        """Add to the question what the remaining turns do not contain."""
        self.said = self._parts.block_items(self._exchanges[self.left_out :], self._facts)
        content = with_block(self.said, str(self._parts.question.get("content") or ""))
        self._question = {**self._parts.question, "content": content}
        self._fixed[Part.QUESTION] = self._meter.message(self._question)

    def drop_old_thinking(self) -> None:
        """Drop the model's thinking before the last round."""
        for index in self._rounds_with_results()[:-1]:
            self._replace(index, without_thinking(self._rounds[index]))

    def leave_out_turns(self) -> None:
        """Leave out the oldest turns, with a note."""
        self._add_summary(left_out=len(self._turn_costs))
        excess = self.used - self._limits.room
        while excess > 0 and self.left_out < len(self._turn_costs):
            excess -= self._turn_costs[self.left_out]
            self.left_out += 1
            before = self._fixed[Part.QUESTION]
            self._ask()
            excess += self._fixed[Part.QUESTION] - before
        self._add_summary(self.left_out)

    def fold_old_rounds(self) -> None:
        """Leave out old rounds of calls with their results, the oldest first, with a note."""
        old = self._rounds_with_results()[:-1]
        while self.used > self._limits.room and self.folded < len(old):
            self.folded += 1
            self._note = left_out_calls([self._whole_rounds[index] for index in old[: self.folded]])
            self._replace(old[self.folded - 1], ())

    def drop_last_thinking(self) -> None:
        """Drop the model's thinking of the last round, too."""
        for index in self._rounds_with_results():
            self._replace(index, without_thinking(self._rounds[index]))

    def shorten_last_results(self) -> None:
        """Cut the last results to the room that the rest of the prompt leaves."""
        for index in self._rounds_with_results()[-1:]:
            group = self._rounds[index]
            room = self._cost(group[1:]) + self._limits.room - self.used
            whole = (group[0], *self._whole_rounds[index][1:])
            self._replace(index, fitted(whole, self._parts.asked, room, self._meter))

    def drop_summary(self) -> None:
        """Do without the summary and its facts."""
        self._summary, self._summary_cost, self._facts = (), 0, ()
        self._ask()

    def _add_summary(self, left_out: int = 0) -> None:
        self._summary = self._parts.summary.as_messages(self._limits, left_out)
        self._summary_cost = self._cost(self._summary)

    def _rounds_with_results(self) -> list[int]:
        return [index for index, group in enumerate(self._rounds) if has_results(group)]

    def _replace(self, index: int, group: Group) -> None:
        self._rounds[index] = group
        self._round_costs[index] = self._cost(group)

    def _history_cost(self) -> int:
        return sum(self._turn_costs[self.left_out :])

    def _steps_cost(self) -> int:
        return sum(self._round_costs) + (self._meter.tokens(size_of(self._note)) if self._note else 0)

    def _cost(self, messages: Sequence[Json]) -> int:
        return sum(map(self._meter.message, messages))


@dataclass(frozen=True, slots=True)
class Plan:
    """A prompt that fits. `before` is the gauge of the complete, unsummarised prompt; `left_out` is the number of
    turns, `masked` that of results and `folded` that of rounds of calls that are left out. `job`, if set, improves the
    next prompt. `said` is the content of its block, `turn` the messages of this turn.
    """

    messages: tuple[Json, ...]
    tools: tuple[Json, ...]
    gauge: Gauge
    before: Gauge
    masked: int = 0
    folded: int = 0
    left_out: int = 0
    job: SummaryJob | None = None
    said: Said = ()
    turn: tuple[Json, ...] = ()

    @property
    def size(self) -> TextComposition:
        """Return the size that the server will count."""
        return size_of_prompt(self.messages, self.tools)

    @property
    def is_compacted(self) -> bool:
        """Whether anything is missing."""
        return self.gauge.used < self.before.used


def plan(parts: PromptParts, meter: TokenMeter, limits: Limits) -> Plan:
    """Return the prompt for these parts, as complete as the limits allow. Raises `ContextTooLarge` if system messages,
    tools and question, with the shortest form of the last tool results, do not fit.

    The order: a round of long tool results enters with excerpts; if the prompt does not fit, old results become stubs;
    above 75 % of the window a summary is due. What still exceeds the room loses old thinking, the oldest turns, old
    rounds of calls, the last thinking, more of the last results, and in the end the summary.
    """
    draft = PromptBudget(parts, meter, limits)
    before = draft.gauge()
    draft.mask_as_before()
    draft.excerpt_long_results()
    if draft.used > limits.room:
        draft.mask()
    is_summary_due = draft.used > limits.high_water
    for make_room in (
        draft.drop_old_thinking,
        draft.leave_out_turns,
        draft.fold_old_rounds,
        draft.drop_last_thinking,
        draft.shorten_last_results,
        draft.drop_summary,
    ):
        if draft.used > limits.room:
            make_room()
    gauge = draft.gauge()
    if draft.used > limits.room:
        raise gauge.too_large()
    others = gauge.parts[Part.SYSTEM] + gauge.parts[Part.TOOLS]
    job = None
    if is_summary_due:
        job = plan_summary(parts.summary, parts.exchanges, draft.left_out, meter, limits, others)
    return Plan(
        draft.messages(), parts.tools, gauge, before, draft.masked, draft.folded, draft.left_out, job,
        draft.said, draft.turn_messages(),
    )  # fmt: skip


# Has the prompts of a respondent's turns fitted into its model's window, and the summaries made that this takes.

log = logging.getLogger(__name__)

PLAUSIBLE = 0.5  # an estimate is not wrong by more than this
LEAST_WINDOW = 512
QUICKLY_RANKED = 4_000  # characters, in a millisecond or two
MOST_WAITED_FOR = 3  # summaries before one prompt; a conversation that needs more is caught up with by later ones

Summarise = Callable[[SummaryJob], Awaitable[str]]
Keep = Callable[[Summary], Awaitable[None]]


@dataclass(slots=True)
class ContextWindow:
    """The window of one model, with the learned size of its tokens; shared by all turns that use the model with this
    window. `takes_tools` is False for a model whose prompts have no tools, because it cannot call any.
    """

    limits: Limits
    meter: TokenMeter = field(default_factory=TokenMeter)
    takes_tools: bool = True

    async def fit(self, parts: PromptParts, summarise: Summarise, keep: Keep) -> tuple[Plan, PromptParts]:
        """Return the prompt for these parts, and the parts it was made from: with a newer summary, if one had to be
        made.

        `summarise` asks the model in the role `fast` and returns its text, or raises `ModelError`: the prompt then
        lacks the turns in question. `keep` stores a summary. Raises `ContextTooLarge`, and the errors of `keep`.
        """
        planned = await self._plan(parts)
        for _ in range(MOST_WAITED_FOR):
            if planned.job is None or not planned.job.urgent:
                break
            better = await self.summarised(planned, parts, summarise, keep)
            if better is None:
                break
            planned, parts = better
        return planned, parts

    async def summarised(
        self, planned: Plan, parts: PromptParts, summarise: Summarise, keep: Keep
    ) -> tuple[Plan, PromptParts] | None:
        """Return the prompt that `fit` returns after the plan's job; None if there is no job or the model failed, which
        is logged.
        """
        if planned.job is None:
            return None
        try:
            summary = planned.job.result(await summarise(planned.job))
            summary = replace(summary, tainted=summary.tainted or parts.tainted)
        except ModelError as error:
            log.warning("older turns could not be summarised: %s", error)
            return None
        await keep(summary)
        rest = tuple(exchange for exchange in parts.exchanges if exchange.position > summary.through)
        parts = replace(parts, summary=summary, exchanges=rest)
        return replace(await self._plan(parts), before=planned.before), parts

    async def _plan(self, parts: PromptParts) -> Plan:
        # Ranking the paragraphs of a very long result may take a tenth of a second; counting a prompt takes less time
        # than a thread takes to begin.
        if parts.ranked_characters <= QUICKLY_RANKED:
            return plan(parts, self.meter, self.limits)
        return await asyncio.to_thread(plan, parts, self.meter, self.limits)

    def counted(self, planned: Plan, prompt_tokens: int) -> None:
        """Correct the estimate by the server's count for that prompt."""
        self.meter = self.meter.corrected(planned.size, prompt_tokens)

    def learn(self, info: ModelInfo, configured: int) -> None:
        """The model's server has described it; `configured` is the window where that is unknown."""
        self.at_most(info.context_length or configured)
        self.takes_tools = not info.capabilities or "tools" in info.capabilities

    def at_most(self, tokens: int) -> None:
        """The model cannot take more than this, whatever was configured."""
        self.limits = Limits(min(self.limits.window, tokens))

    def overflowed(self, planned: Plan) -> None:
        """Correct the estimate after the server found that prompt too long: the next one will be much shorter. If the
        prompt should have filled less than half of the window, the server's window is assumed to be smaller.
        """
        expected = self.meter.tokens(planned.size)
        if expected < self.limits.window * PLAUSIBLE:
            self.at_most(max(LEAST_WINDOW, int(expected / AFTER_OVERFLOW)))
        else:
            self.meter = self.meter.overflowed(planned.size, self.limits.window)


def gauge_of(planned: Plan) -> ContextGauge:
    """Return how full a prompt makes the window, for the bus."""
    return ContextGauge.model_validate(planned.gauge.as_json())


def compacted(planned: Plan, parts: PromptParts, query_id: str, respondent_id: str) -> ContextCompacted:
    """Return the message that reports a shortened prompt."""
    return ContextCompacted(
        query_id=query_id,
        respondent_id=respondent_id,
        summarised_turns=parts.summary.through,
        left_out_turns=planned.left_out,
        masked_results=planned.masked,
        folded_rounds=planned.folded,
        tokens_before=planned.before.used,
        gauge=gauge_of(planned),
    )


class PromptFitter:
    """The fitter of one respondent; enter `is_open` before the first turn. `fast` is the model that summarises;
    `window` is that of the model `answering`, and learns from every call. `of` returns the fitter for another model.
    """

    def __init__(
        self,
        model: ChatModel,
        fast: str,
        window: int,
        conversation: ConversationService,
        leases: Leases | None = None,
        answering: str = "",
    ) -> None:
        self._model, self._fast, self._conversation = model, fast, conversation
        self._leases = leases or Leases()
        self._most, self.window = window, ContextWindow(Limits(window))
        self._by_model = {answering: self}  # shared by them all
        self._under_way: dict[str, asyncio.Task[None]] = {}

    def of(self, model: str) -> PromptFitter:
        """Return the fitter for the turns of another model, with its own window."""
        if model not in self._by_model:
            other = copy.copy(self)
            other.window = ContextWindow(Limits(self._most))
            self._by_model[model] = other
        return self._by_model[model]

    @asynccontextmanager
    async def is_open(self) -> AsyncIterator[None]:
        """Own the summaries made in the background; one that is not finished at the end is made when it is needed."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                for task in self._under_way.values():
                    task.cancel()

    async def fit(
        self, parts: PromptParts, session_id: str | None, released: Callable[[], Awaitable[None]]
    ) -> tuple[Plan, PromptParts]:
        """See `ContextWindow.fit`; without a session the summary is for this turn alone. No summary is made before
        `released()`."""

        async def summarise(job: SummaryJob) -> str:
            await released()
            return await self._summarise(self._at(session_id), job)

        return await self.window.fit(parts, summarise, partial(self._keep, session_id))

    def characters(self, text: str, share: float) -> int:
        """Return how many characters of a text like this one fit into that share of the window."""
        return self.window.meter.characters(text, self.window.limits.share(share))

    def afterwards(
        self, planned: Plan, parts: PromptParts, session_id: str | None, tell: Callable[[Plan, PromptParts], None]
    ) -> None:
        """Summarise in the background as the turn's last prompt requires, and report the result to `tell`."""
        if planned.job is None or session_id is None or session_id in self._under_way:
            return
        preparing = self._prepare(planned, parts, session_id, tell)
        task = self._under_way[session_id] = self._group.create_task(preparing, name=f"summarise {session_id}")
        task.add_done_callback(lambda _: self._under_way.pop(session_id, None))

    def drop(self, session_id: str) -> None:
        """Stop summarising a session, and forget the latest prompt, because content of it is being deleted."""
        self._leases.forget()
        if (task := self._under_way.get(session_id)) is not None:
            task.cancel()

    async def _prepare(
        self, planned: Plan, parts: PromptParts, session_id: str, tell: Callable[[Plan, PromptParts], None]
    ) -> None:
        try:
            keep = partial(self._keep, session_id)
            summarise = partial(self._summarise_in_background, self._at(session_id))
            better = await self.window.summarised(planned, parts, summarise, keep)
        except (StoreFailed, StoreFenced, ContextTooLarge) as error:
            log.warning("older turns could not be summarised ahead: %s", error)
        else:
            if better is not None:
                tell(*better)

    def _at(self, session_id: str | None) -> str:
        """The model that summarises, at the server of a session."""
        return self._fast if session_id is None else self._leases.at(self._fast, session_id, turn=False)

    async def _summarise_in_background(self, model: str, job: SummaryJob) -> str:
        return await self._leases.in_background(model, "summary", partial(self._summarise, model, job))

    async def _summarise(self, model: str, job: SummaryJob) -> str:
        options: dict[str, Any] = {
            "num_ctx": self.of(self._fast).window.limits.window,
            "num_predict": job.max_tokens,
            "temperature": 0,
        }
        begun = time.monotonic()
        text, usage = await whole_reply(self._model.chat(model, job.messages, options=options))
        self._leases.report_use("summary", self._fast, usage, begun)
        return text

    async def _keep(self, session_id: str | None, summary: Summary) -> None:
        if session_id is not None:
            await self._conversation.keep_summary(session_id, summary.through, summary.as_json())
