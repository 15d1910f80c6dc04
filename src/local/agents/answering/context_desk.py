"""Has the prompts of a generator's turns fitted into its model's window, and keeps the summaries that this takes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from local.agents.answering.context.budget import Limits
from local.agents.answering.context.parts import Parts
from local.agents.answering.context.plan import Plan
from local.agents.answering.context.summarising import SummaryJob
from local.agents.answering.context.summary import Summary
from local.agents.answering.context.window import ContextWindow
from local.agents.leases import Leases
from local.errors import ContextTooLarge, StoreFailed, StoreFenced
from local.models.chat import ChatModel, ContentDelta
from local.protocol.messages import ContextCompacted, ContextGauge
from local.services.conversation import ConversationService

log = logging.getLogger(__name__)


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


class ContextDesk:
    """One for a generator; `is_open` has to be entered before the first turn. `fast` is the model that summarises."""

    def __init__(
        self,
        model: ChatModel,
        fast: str,
        window: int,
        conversation: ConversationService,
        leases: Leases | None = None,
    ) -> None:
        self._model, self._fast, self._conversation = model, fast, conversation
        self._leases = leases or Leases()
        self._window = ContextWindow(Limits(window))
        self._under_way: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def is_open(self) -> AsyncIterator[None]:
        """Own the summaries made in the background; one that is not finished at the end is made when it is needed."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                for task in self._under_way.values():
                    task.cancel()

    async def fit(self, parts: Parts, session_id: str | None) -> tuple[Plan, Parts]:
        """See `ContextWindow.fit`; without a session the summary is for this turn alone."""
        return await self._window.fit(parts, self._summarise, partial(self._keep, session_id))

    def characters(self, text: str, share: float) -> int:
        """How many characters of a text like this one go into that share of the window."""
        return self._window.meter.characters(text, self._window.limits.share(share))

    def at_most(self, tokens: int) -> None:
        """The model cannot take more than this, whatever was configured."""
        self._window.at_most(tokens)

    def counted(self, planned: Plan, prompt_tokens: int) -> None:
        """The server has told how long that prompt was."""
        self._window.counted(planned, prompt_tokens)

    def overflowed(self, planned: Plan) -> None:
        """The server found that prompt too long."""
        self._window.overflowed(planned)

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
            better = await self._window.summarised(planned, parts, self._summarise_in_background, keep)
        except (StoreFailed, StoreFenced, ContextTooLarge) as error:
            log.warning("older turns could not be summarised ahead: %s", error)
        else:
            if better is not None:
                tell(*better)

    async def _summarise_in_background(self, job: SummaryJob) -> str:
        return await self._leases.in_background(self._fast, "summary", partial(self._summarise, job))

    async def _summarise(self, job: SummaryJob) -> str:
        options: dict[str, Any] = {
            "num_ctx": self._window.limits.window,
            "num_predict": job.max_tokens,
            "temperature": 0,
        }
        async with aclosing(self._model.chat(self._fast, job.messages, options=options)) as stream:
            return "".join([delta.text async for delta in stream if isinstance(delta, ContentDelta)])

    async def _keep(self, session_id: str | None, summary: Summary) -> None:
        if session_id is not None:
            await self._conversation.keep_summary(session_id, summary.through, summary.as_json())
