"""Decides what goes into one prompt: everything if it fits, and else what can best be missed is left out. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from local.agents.answering.context.budget import Gauge, Limits
from local.agents.answering.context.draft import Draft
from local.agents.answering.context.parts import Parts
from local.agents.answering.context.summarising import SummaryJob, plan_summary
from local.agents.answering.context.tokens import Size, TokenMeter, size_of_prompt
from local.models.chat import Json


@dataclass(frozen=True, slots=True)
class Plan:
    """A prompt that fits. `before` is the gauge of everything, uncut and not summarised; `left_out` is the number of
    turns that are in the record alone, `masked` that of results and `folded` that of rounds of calls of this turn that
    are left out. `job`, if there is one, makes the next prompt better."""

    messages: tuple[Json, ...]
    tools: tuple[Json, ...]
    gauge: Gauge
    before: Gauge
    masked: int = 0
    folded: int = 0
    left_out: int = 0
    job: SummaryJob | None = None

    @property
    def size(self) -> Size:
        """What the server will count."""
        return size_of_prompt(self.messages, self.tools)

    @property
    def is_compacted(self) -> bool:
        """Whether anything is missing."""
        return self.gauge.used < self.before.used


def plan(parts: Parts, meter: TokenMeter, limits: Limits) -> Plan:
    """The prompt for these parts, as whole as the limits allow. Raises `ContextTooLarge` if system messages, tools and
    question, with what belongs to the last tool results at their shortest, do not fit.

    The order: a round of long tool results enters with excerpts; above 60 % of the window old results become stubs;
    above 75 % a summary is due. What still exceeds the room loses old thinking, the oldest turns, old rounds of calls,
    the last thinking, more of the last results, and in the end the summary.
    """
    draft = Draft(parts, meter, limits)
    before = draft.gauge()
    draft.excerpt_long_results()
    draft.mask()
    is_summary_due = draft.used > limits.summarise_at
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
    job = plan_summary(parts.summary, parts.exchanges, draft.left_out, meter, limits) if is_summary_due else None
    return Plan(draft.messages(), parts.tools, gauge, before, draft.masked, draft.folded, draft.left_out, job)
