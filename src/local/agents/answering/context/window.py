"""The window of one model, as its turns use it: learns from every call, and has turns summarised where that helps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from local.agents.answering.context.budget import Limits
from local.agents.answering.context.parts import Parts
from local.agents.answering.context.plan import Plan, plan
from local.agents.answering.context.summarising import SummaryJob
from local.agents.answering.context.summary import Summary
from local.agents.answering.context.tokens import AFTER_OVERFLOW, TokenMeter
from local.errors import ModelError

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
