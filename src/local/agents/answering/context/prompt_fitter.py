"""Has the prompts of a respondent's turns fitted into its model's window, and the summaries made that this takes."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from local.agents.answering.context.prompt_draft import Plan, plan
from local.agents.answering.context.prompt_parts import Parts, Summary
from local.agents.answering.context.summary_job import SummaryJob
from local.agents.answering.context.token_budget import AFTER_OVERFLOW, Limits, TokenMeter
from local.agents.leases import Leases
from local.errors import ContextTooLarge, ModelError, StoreFailed, StoreFenced
from local.models.chat import ChatModel, whole_reply
from local.protocol.messages import ContextCompacted, ContextGauge
from local.services.conversation import ConversationService

log = logging.getLogger(__name__)

PLAUSIBLE = 0.5  # an estimate is not wrong by more than this
LEAST_WINDOW = 512
QUICKLY_RANKED = 4_000  # characters, in a millisecond or two
MOST_WAITED_FOR = 3  # summaries before one prompt; a conversation that needs more is caught up with by later ones

Summarise = Callable[[SummaryJob], Awaitable[str]]
Keep = Callable[[Summary], Awaitable[None]]


@dataclass(slots=True)
class ContextWindow:
    """Shared by all turns that use the model with this window."""

    limits: Limits
    meter: TokenMeter = field(default_factory=TokenMeter)

    async def fit(self, parts: Parts, summarise: Summarise, keep: Keep) -> tuple[Plan, Parts]:
        """The prompt for these parts, and the parts it was made from: with a newer summary, if one had to be made.

        `summarise` asks the model in the role `fast` and returns its text, or raises `ModelError`: the prompt then does
        without the turns in question. `keep` stores a summary. Raises `ContextTooLarge`, and what `keep` raises.
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
        self, planned: Plan, parts: Parts, summarise: Summarise, keep: Keep
    ) -> tuple[Plan, Parts] | None:
        """What `fit` would give after the plan's job, if it has one; None if the model failed, which is logged."""
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

    async def _plan(self, parts: Parts) -> Plan:
        # Ranking the paragraphs of a very long result may take a tenth of a second; counting a prompt takes less time
        # than a thread takes to begin.
        if parts.ranked_characters <= QUICKLY_RANKED:
            return plan(parts, self.meter, self.limits)
        return await asyncio.to_thread(plan, parts, self.meter, self.limits)

    def counted(self, planned: Plan, prompt_tokens: int) -> None:
        """The server has told how long that prompt was."""
        self.meter = self.meter.corrected(planned.size, prompt_tokens)

    def at_most(self, tokens: int) -> None:
        """The model cannot take more than this, whatever was configured."""
        self.limits = Limits(min(self.limits.window, tokens))

    def overflowed(self, planned: Plan) -> None:
        """The server found that prompt too long: the next one will be much shorter. A prompt that should have filled
        less than half of the window tells of a server with a smaller one."""
        expected = self.meter.tokens(planned.size)
        if expected < self.limits.window * PLAUSIBLE:
            self.at_most(max(LEAST_WINDOW, int(expected / AFTER_OVERFLOW)))
        else:
            self.meter = self.meter.overflowed(planned.size, self.limits.window)


def gauge_of(planned: Plan) -> ContextGauge:
    """How full a prompt makes the window, as the bus tells it."""
    return ContextGauge.model_validate(planned.gauge.as_json())


def compacted(planned: Plan, parts: Parts, query_id: str, respondent_id: str) -> ContextCompacted:
    """What the bus is told of a prompt that is not whole."""
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
    """The fitter of one respondent; `is_open` has to be entered before the first turn. `fast` is the model that
    summarises; `window` is that of the model `answering`, and learns from every call. `of` gives the fitter for another
    model."""

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
        """The fitter for the turns of another model, with a window of its own."""
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
        self, parts: Parts, session_id: str | None, released: Callable[[], Awaitable[None]]
    ) -> tuple[Plan, Parts]:
        """See `ContextWindow.fit`; without a session the summary is for this turn alone. No summary is made before
        `released()`."""

        async def summarise(job: SummaryJob) -> str:
            await released()
            return await self._summarise(job)

        return await self.window.fit(parts, summarise, partial(self._keep, session_id))

    def characters(self, text: str, share: float) -> int:
        """How many characters of a text like this one go into that share of the window."""
        return self.window.meter.characters(text, self.window.limits.share(share))

    def afterwards(
        self, planned: Plan, parts: Parts, session_id: str | None, tell: Callable[[Plan, Parts], None]
    ) -> None:
        """Summarise in the background what the turn's last prompt says is due, and tell what that brings."""
        if planned.job is None or session_id is None or session_id in self._under_way:
            return
        preparing = self._prepare(planned, parts, session_id, tell)
        task = self._under_way[session_id] = self._group.create_task(preparing, name=f"summarise {session_id}")
        task.add_done_callback(lambda _: self._under_way.pop(session_id, None))

    def drop(self, session_id: str) -> None:
        """Something of a session is to be forgotten: stop summarising it."""
        if (task := self._under_way.get(session_id)) is not None:
            task.cancel()

    async def _prepare(self, planned: Plan, parts: Parts, session_id: str, tell: Callable[[Plan, Parts], None]) -> None:
        try:
            keep = partial(self._keep, session_id)
            better = await self.window.summarised(planned, parts, self._summarise_in_background, keep)
        except (StoreFailed, StoreFenced, ContextTooLarge) as error:
            log.warning("older turns could not be summarised ahead: %s", error)
        else:
            if better is not None:
                tell(*better)

    async def _summarise_in_background(self, job: SummaryJob) -> str:
        return await self._leases.in_background(self._fast, "summary", partial(self._summarise, job))

    async def _summarise(self, job: SummaryJob) -> str:
        options: dict[str, Any] = {
            "num_ctx": self.of(self._fast).window.limits.window,
            "num_predict": job.max_tokens,
            "temperature": 0,
        }
        begun = time.monotonic()
        text, usage = await whole_reply(self._model.chat(self._fast, job.messages, options=options))
        self._leases.tell_use("summary", self._fast, usage, begun)
        return text

    async def _keep(self, session_id: str | None, summary: Summary) -> None:
        if session_id is not None:
            await self._conversation.keep_summary(session_id, summary.through, summary.as_json())
