"""A prompt in the making: what is in it, how many tokens that is, and what can best be missed. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from local.agents.answering.context.prompt_parts import Parts, rounds_of
from local.agents.answering.context.summary_job import SummaryJob, plan_summary
from local.agents.answering.context.token_budget import (
    ROUND_SHARE,
    SUMMARY_SHARE,
    Gauge,
    Limits,
    Part,
    Size,
    TokenMeter,
    size_of,
    size_of_prompt,
    size_of_tools,
)
from local.agents.answering.context.tool_results import (
    fitted,
    has_results,
    headed,
    left_out_calls,
    masked,
    repeatable_calls,
    without_thinking,
)
from local.models.chat import Json
from local.protocol.context_block import Said, with_block

MASKED_AT_ONCE = 4  # turns
Group = tuple[Json, ...]


class Draft:
    """Everything, uncut, to begin with. Each way to make room goes only as far as it must: `mask` below its own
    threshold, all after it below the room that the answer leaves."""

    def __init__(self, parts: Parts, meter: TokenMeter, limits: Limits) -> None:
        self._parts, self._meter, self._limits = parts, meter, limits
        self.masked = self.folded = self.left_out = 0
        self._whole_rounds = rounds_of(parts.steps)
        self._rounds = list(self._whole_rounds)
        self._note = ""  # stands before the first result, and tells of rounds that are gone
        self._round_costs = [self._cost(group) for group in self._rounds]
        self._exchanges = list(parts.exchanges)
        self._turn_costs = [self._cost(exchange.messages) for exchange in self._exchanges]
        self._fixed = {Part.SYSTEM: self._cost(parts.system), Part.TOOLS: meter.tokens(size_of_tools(parts.tools))}
        self._ask()
        self._summary: Group
        self._summary_cost: int
        self._tell_summary()

    @property
    def used(self) -> int:
        """Tokens of the prompt as it is now."""
        return sum(self._fixed.values()) + self._summary_cost + self._history_cost() + self._steps_cost()

    def gauge(self) -> Gauge:
        """How full the window is now."""
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
        """The part of the prompt that is of this turn: the question with its block, and what followed."""
        first = next(iter(self._rounds_with_results()), None)
        steps = (
            message
            for index, group in enumerate(self._rounds)
            for message in (headed(group, self._note) if self._note and index == first else group)
        )
        return (self._question, *steps)

    def excerpt_long_results(self) -> None:
        """Let long tool results enter as excerpts. What a round may take depends on nothing else in the prompt, so that
        an excerpt stays the same from call to call and the server finds it in its cache."""
        room = self._limits.share(ROUND_SHARE)
        for index in self._rounds_with_results():
            self._replace(index, fitted(self._rounds[index], self._parts.asked, room, self._meter))

    def mask(self) -> None:
        """Replace old tool results by stubs, the oldest first: those of earlier turns, then those of this turn."""
        self._mask_earlier_turns()
        again = repeatable_calls(self._rounds, self._parts.tools)
        for index in self._rounds_with_results()[:-1]:
            if self.used <= self._limits.mask_at:
                return
            whole = self._whole_rounds[index]
            group = masked(whole, again)
            self.masked += sum(stub is not result for stub, result in zip(group, whole, strict=True))
            self._replace(index, group)

    def _mask_earlier_turns(self) -> None:
        """So many turns at a time that the beginning of the prompt stays the same for the next few turns."""
        index = 0
        while self.used > self._limits.mask_at and index < len(self._exchanges):
            last = self._exchanges[index].position // MASKED_AT_ONCE
            while index < len(self._exchanges) and self._exchanges[index].position // MASKED_AT_ONCE == last:
                self._mask_turn(index)
                index += 1
        self._ask()

    def _mask_turn(self, index: int) -> None:
        whole = self._exchanges[index]
        stubs = whole.without_results()
        self.masked += sum(stub != message for stub, message in zip(stubs.messages, whole.messages, strict=True))
        self._exchanges[index] = stubs
        self._turn_costs[index] = self._cost(stubs.messages)

    def _ask(self) -> None:
        """Have the question say what the turns that are left have not said."""
        self.said = self._parts.said(self._exchanges[self.left_out :])
        content = with_block(self.said, str(self._parts.question.get("content") or ""))
        self._question = {**self._parts.question, "content": content}
        self._fixed[Part.QUESTION] = self._meter.message(self._question)

    def drop_old_thinking(self) -> None:
        """Forget what the model thought before the last round."""
        for index in self._rounds_with_results()[:-1]:
            self._replace(index, without_thinking(self._rounds[index]))

    def leave_out_turns(self) -> None:
        """Leave out the oldest turns, and say so."""
        self._tell_summary(left_out=len(self._turn_costs))
        excess = self.used - self._limits.room
        while excess > 0 and self.left_out < len(self._turn_costs):
            excess -= self._turn_costs[self.left_out]
            self.left_out += 1
            before = self._fixed[Part.QUESTION]
            self._ask()
            excess += self._fixed[Part.QUESTION] - before
        self._tell_summary(self.left_out)

    def fold_old_rounds(self) -> None:
        """Leave out old rounds of calls with their results, the oldest first, and say so."""
        old = self._rounds_with_results()[:-1]
        while self.used > self._limits.room and self.folded < len(old):
            self.folded += 1
            self._note = left_out_calls([self._whole_rounds[index] for index in old[: self.folded]])
            self._replace(old[self.folded - 1], ())

    def drop_last_thinking(self) -> None:
        """Forget what the model thought in the last round, too."""
        for index in self._rounds_with_results():
            self._replace(index, without_thinking(self._rounds[index]))

    def shorten_last_results(self) -> None:
        """Cut the last results to what the rest of the prompt leaves."""
        for index in self._rounds_with_results()[-1:]:
            group = self._rounds[index]
            room = self._cost(group[1:]) + self._limits.room - self.used
            whole = (group[0], *self._whole_rounds[index][1:])
            self._replace(index, fitted(whole, self._parts.asked, room, self._meter))

    def drop_summary(self) -> None:
        """Do without the summary."""
        self._summary, self._summary_cost = (), 0

    def _tell_summary(self, left_out: int = 0) -> None:
        summary = self._parts.summary
        text = "\n".join((*summary.facts, summary.story))
        characters = self._meter.characters(text, self._limits.share(SUMMARY_SHARE))
        self._summary = summary.told(self._parts.asked, characters, left_out)
        self._summary_cost = self._cost(self._summary)

    def _rounds_with_results(self) -> list[int]:
        return [index for index, group in enumerate(self._rounds) if has_results(group)]

    def _replace(self, index: int, group: Group) -> None:
        self._rounds[index] = group
        self._round_costs[index] = self._cost(group)

    def _history_cost(self) -> int:
        return sum(self._turn_costs[self.left_out :])

    def _steps_cost(self) -> int:
        return sum(self._round_costs) + self._meter.tokens(size_of(self._note))

    def _cost(self, messages: Sequence[Json]) -> int:
        return sum(map(self._meter.message, messages))


@dataclass(frozen=True, slots=True)
class Plan:
    """A prompt that fits. `before` is the gauge of everything, uncut and not summarised; `left_out` is the number of
    turns that are in the record alone, `masked` that of results and `folded` that of rounds of calls of this turn that
    are left out. `job`, if there is one, makes the next prompt better. `said` is what its block says, `turn` the part
    of the messages that is of this turn."""

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
    if draft.used > limits.mask_at:
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
    return Plan(
        draft.messages(), parts.tools, gauge, before, draft.masked, draft.folded, draft.left_out, job,
        draft.said, draft.turn_messages(),
    )  # fmt: skip
