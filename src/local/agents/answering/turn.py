"""One query being answered: decides what comes next, from what was asked and what has happened. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from local.agents.answering.call_rules import (
    SideEffectPolicy,
    asks_for_what_is_not_there,
    client_calls,
    cut_off,
    in_vain,
    is_in_vain,
    is_loop,
    planned,
    settle,
    under_id,
    unwrapped,
)
from local.agents.answering.context.prompt_parts import Parts
from local.agents.answering.question import Question as Question
from local.agents.answering.steps import (
    AS_TEXT,
    ModelStep,
    NudgeStep,
    PlannedCall,
    Spoken,
    Step,
    ToolStep,
    signature,
    total_usage,
    usage_of,
)
from local.agents.answering.taint.taint_policy import TaintPolicy
from local.agents.answering.turn_limits import limit_met, notes_of
from local.agents.answering.turn_table import CALLING, TABLE, Status, TurnAction, TurnState
from local.agents.answering.turn_table import Next as Next
from local.models.chat import Delta, Json, ToolCall
from local.models.text_calls import find_text_calls
from local.protocol.messages import (
    ContextGauge,
    ErrorInfo,
    ModelSpan,
    ResponseGeneration,
    ToolCallRecord,
    ToolSchema,
    TurnTotals,
)
from local.runtime.machine import Machine

TOLD = ("prompt", "profile", "incognito", "in_history", "origin")  # what an answer says of its question
EMPTY_ANSWERS_ALLOWED = 2
ANSWER_NOW = "Answer the question now, in plain text, with what you have. No more tool calls are possible."
NO_WORDS = "the model called tools or said nothing instead of answering in words, asked"
SAY_SOMETHING = "Your last message was empty. Answer the question in plain text."


class Turn:
    """Feed it what happens; it says what comes next. `steps` is its whole memory: a turn made from the steps of
    another continues it. `side_effects` settles the calls that are not to be made."""

    def __init__(
        self, question: Question, steps: Sequence[Step] = (), side_effects: SideEffectPolicy | None = None
    ) -> None:
        self.question, self._side_effects = question, side_effects
        self.steps: list[Step] = list(steps)
        self.acts = False  # whether it is offered a tool that does more than read
        self.is_small = False  # whether its model is
        self.listed: frozenset[str] | None = None  # the tools that its model is told of; None: all that it may call
        self.on_change: Callable[[TurnState, TurnAction, TurnState], None] = lambda before, action, after: None
        self._machine: Machine[TurnState, TurnAction] = Machine(
            TABLE, TurnState.IDLE, lambda *change: self.on_change(*change)
        )
        self._status: Status = "answered"
        self._error: ErrorInfo | None = None
        self._spoken = Spoken()
        self._gauge = next((step.usage.context for step in reversed(self._model_steps())), None)
        self._beginning = question.beginning or Parts.beginning(
            question.prelude, question.query, question.summary, question.attached
        )

    @property
    def state(self) -> TurnState:
        """The state in which the turn is."""
        return self._machine.state

    @property
    def content(self) -> str:
        """What the model has said so far of the message it is saying."""
        return self._spoken.content

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in the message that the model is saying."""
        return tuple(map(unwrapped, self._spoken.calls))

    def begin(self) -> Next:
        """The query has been accepted (or a restarted process goes on with it)."""
        self._machine.advance(TurnAction.RECEIVE_QUERY)
        self._machine.advance(TurnAction.START_GENERATION)
        last = self.steps[-1] if self.steps else None
        return self._after_model(last) if isinstance(last, ModelStep) else Next.CALL_MODEL

    @property
    def tainted(self) -> bool:
        """Whether words of strangers are before the model: from here on it may want what they want."""
        return self.question.tainted or any(step.tainted for step in self.steps)

    # What the model is asked

    def parts(self, tools: Sequence[Json]) -> Parts:
        """Everything that the next prompt is about, uncut."""
        steps = list(self.question.continued)
        if self._starts_afresh:
            return replace(self._beginning, tools=tuple(tools), steps=tuple(steps), tainted=self.tainted)
        steps += [message for step in self.steps for message in step.as_messages()]
        if self.totals.steps and not self.offers_tools and not self._own_functions:
            steps.append({"role": "user", "content": ANSWER_NOW})
        return replace(self._beginning, tools=tuple(tools), steps=tuple(steps), tainted=self.tainted)

    def begin_with(self, parts: Parts) -> None:
        """From now on its prompts begin with these parts: a summary stands for the exchanges that they are without."""
        self._beginning = parts

    @property
    def records(self) -> tuple[ToolCallRecord, ...]:
        """How the turn's calls have ended, in order."""
        return tuple(record for step in self.steps if isinstance(step, ToolStep) for record in step.records)

    @property
    def offers_tools(self) -> bool:
        """Whether the model may still call tools."""
        return not (limit_met(self.totals) or self._starts_afresh) and not (
            self.steps and (is_loop(self.steps) or asks_for_what_is_not_there(self.steps))
        )

    @property
    def _starts_afresh(self) -> bool:
        """Whether a small model, which would go on calling tools in vain, is asked the question alone: without tools,
        and without the calls, which it would only repeat."""
        return self.is_small and is_in_vain(self.steps)

    @property
    def totals(self) -> TurnTotals:
        """How much of its limits the turn has used."""
        return self.question.limits.totals(self.steps, acts=self.acts)

    @property
    def thinks(self) -> bool:
        """Whether the model is asked to think; not after an empty answer, which thinking models tend to give."""
        return self.question.think and not self._empty_messages()

    # What the model says

    def hear(self, delta: Delta) -> None:
        """Take in one delta of the message that the model is saying."""
        self._spoken.hear(delta)

    def functions(self, offered: Iterable[Json]) -> list[Json]:
        """What the model is told that it may call: the tools that are `offered`, and the asker's own functions. The
        tools stay when no more calls are made, as the beginning of the prompt has to stay the same; but not for a
        model that calls one all the same."""
        last = self.steps[-1] if self.steps else None
        insists = self._starts_afresh or (isinstance(last, ModelStep) and last.is_empty)
        stay = self.offers_tools or (self.totals.steps > 0 and not insists and not self._own_functions)
        return [*(offered if stay else ()), *self._own_functions]

    @property
    def _own_functions(self) -> tuple[Json, ...]:
        return self.question.options.functions if self.question.options else ()

    def calls_in_text(self, functions: Sequence[Json]) -> list[ToolCall]:
        """The calls that the model wrote as text in the message that it is saying; none if that is an answer."""
        options = self.question.options
        wants_form = options is not None and options.form is not None
        if self.calls or (wants_form and not functions):
            return []
        calls = find_text_calls(self.content, functions, "JSON" if wants_form else self.question.query)
        is_repeating = self.is_small and calls and in_vain(self.steps, calls[0].name)
        return calls[:1] if is_repeating else calls  # what it goes on to write are guesses

    def repeats_itself(self, functions: Sequence[Json]) -> bool:
        """Whether a small model has written a call as text a second time in its message, or one that was made in vain:
        it would only go on so until its tokens end."""
        if not self.is_small or not self.content.rstrip().endswith("}"):
            return False
        calls = self.calls_in_text(functions)
        made = [signature(call.name, call.arguments) for call in calls]
        return len(set(made)) < len(made) or bool(calls and in_vain(self.steps, calls[0].name))

    def message_ended(self, calls_in_text: Sequence[ToolCall] = (), span: ModelSpan | None = None) -> Next:
        """The model has finished its message: decide. `calls_in_text` are calls found where content was expected,
        `span` is when all of it was said."""
        if calls_in_text:
            self._spoken.was_calls(calls_in_text)
        spoken, self._spoken = self._spoken, Spoken()
        done = spoken.done
        step = ModelStep(
            content=spoken.content,
            thinking=spoken.thinking,
            calls=planned(spoken.calls, self.question, len(self.steps), offers_tools=self.offers_tools)
            if spoken.calls
            else (),
            model=done.model,
            usage=usage_of(done, span, self._gauge),
            degraded=tuple(spoken.notes),
            cut_off=spoken.is_cut_off,
            tainted=self.tainted,
        )
        self.steps.append(step)
        return self._after_model(step)

    def begin_message(self, *notes: str, gauge: ContextGauge | None = None) -> None:
        """The model is asked (again, if the prompt was too long). `notes` say what it had to be asked without, `gauge`
        how full its window is."""
        self._gauge = gauge
        self._spoken = Spoken(notes=list(notes))

    # What the tools do

    def calls_to_make(
        self,
        offered: Mapping[str, ToolSchema],
        kept: Mapping[str, ToolCallRecord] = MappingProxyType({}),
        policy: TaintPolicy | None = None,
    ) -> tuple[list[PlannedCall], dict[str, ToolCallRecord]]:
        """The calls of the last message that a tool has to answer, and those already settled, by call_id. `kept` are
        results that an earlier process got of them; `policy` is that of a tainted turn."""
        self._machine.advance(TurnAction.DISPATCH_TOOL)
        calls = self.last_calls
        settled = {call.call_id: kept[call.call_id] for call in calls if call.call_id in kept}
        made = {call.signature for call in calls if call.call_id in kept}
        open_calls, room = list[PlannedCall](), self.totals.max_calls - self.totals.calls
        for index, call in enumerate(calls):
            if call.call_id in kept:
                continue
            record = settle(call, index, offered, self.steps, room, self._side_effects, policy, self.listed)
            if record is not None:
                settled[call.call_id] = record
            elif offered[call.tool].repeatable or call.signature not in made:
                open_calls.append(call if policy is None else call.with_args(policy.as_given(call.tool, call.args)))
                made.add(call.signature)
        return open_calls, settled

    def leave_asked(self) -> None:
        """A person is asked about an open call."""
        self._machine.advance(TurnAction.ASK_LEAVE)

    def leave_decided(self) -> None:
        """Nobody is asked any more."""
        self._machine.advance(TurnAction.LEAVE_DECIDED)

    def requests_sent(self) -> None:
        """Every open call is on its way."""
        self._machine.advance(TurnAction.REQUEST_SENT)

    def tools_settled(self, records: Mapping[str, ToolCallRecord]) -> Next:
        """All calls of the last message have ended; `records` by call_id. A call without one was the same as an earlier
        one of the message and shares its record."""
        calls = self.last_calls
        made = {call.signature: records[call.call_id] for call in reversed(calls) if call.call_id in records}
        ordered = tuple(records.get(call.call_id) or under_id(call, made[call.signature]) for call in calls)
        all_late = all(record.error is not None and record.error.kind == "timeout" for record in ordered)
        self.steps.append(ToolStep(records=ordered))
        self._machine.advance(TurnAction.TOOL_TIMEOUT if all_late else TurnAction.TOOL_RESULT)
        return Next.CALL_MODEL

    def cancel(self, results: Mapping[str, ToolCallRecord] = MappingProxyType({})) -> Next:
        """The user wants no more of it. `results` are what the calls under way have brought, by call_id."""
        if self.state in CALLING:
            records = (results.get(call.call_id) or cut_off(call) for call in self.last_calls)
            self.steps.append(ToolStep(records=tuple(records)))
        if self._ends_by(TurnAction.CANCEL):
            self._status = "cancelled"
        return Next.PUBLISH

    def fail(self, error: ErrorInfo) -> Next:
        """Something ended it that a model cannot mend."""
        if self._ends_by(TurnAction.FAIL):
            self._status, self._error = "failed", error
        return Next.PUBLISH

    def published(self) -> None:
        """The response is out."""
        self._machine.advance(TurnAction.PUBLISHED)

    def response(self, cut_off: ModelSpan | None = None) -> ResponseGeneration:
        """The answer and its record; what was said so far if it ended early, perhaps in a call that was `cut_off`."""
        steps = self._model_steps()
        said = [step for step in steps if step.content.strip()]
        thoughts = [*(step.thinking for step in steps), self._spoken.thinking]
        notes = [*self.question.notes, *(note for step in steps for note in step.degraded), *self._spoken.notes]
        notes += notes_of(self.totals)
        if self._empty_messages():
            notes.append(f"the model gave an empty answer {self._empty_messages()} times and was asked again")
        return ResponseGeneration(
            query_id=self.question.query_id,
            respondent_id=self.question.respondent_id,
            status=self._status,
            query=self.question.query,
            answer=self.content or (said[-1].content if said else ""),
            cut_off=bool(said and not self.content and said[-1].cut_off),
            thinking="\n\n".join(text for text in thoughts if text),
            tool_calls=self.records,
            client_calls=client_calls(self.last_calls, self.question) if self._own_functions else (),
            model=next((step.model for step in reversed(steps) if step.model), ""),
            remember=self.question.options is not None and self.question.options.remember,
            usage=total_usage([step.usage for step in steps], cut_off, self._gauge, self.totals),
            degraded=tuple(dict.fromkeys(notes)),
            tainted=self.tainted,
            error=self._error,
            agent=self.question.task.name if self.question.task else "",
            **{name: getattr(self.question, name) for name in TOLD},
        )

    def _ends_by(self, action: TurnAction) -> bool:
        """Take an action that ends a turn early; False if it comes too late to do so."""
        before = self.state
        return self._machine.advance(action) is not before

    def _after_model(self, step: ModelStep) -> Next:
        if step.calls and not client_calls(step.calls, self.question):
            return Next.CALL_TOOLS
        if not step.is_empty:
            self._machine.advance(TurnAction.FINISH)
            return Next.PUBLISH
        empty = self._empty_messages()
        if empty > EMPTY_ANSWERS_ALLOWED:
            wrote_calls = any(AS_TEXT in note for step in self._model_steps() for note in step.degraded)
            what = f"{NO_WORDS} {empty} times" if wrote_calls else f"the model gave an empty answer {empty} times"
            return self.fail(ErrorInfo(kind="empty_answer", message=what))
        if empty == EMPTY_ANSWERS_ALLOWED:
            self.steps.append(NudgeStep(text=SAY_SOMETHING))
        return Next.CALL_MODEL

    @property
    def last_calls(self) -> tuple[PlannedCall, ...]:
        """What the model's last message calls."""
        last = self.steps[-1] if self.steps else None
        return last.calls if isinstance(last, ModelStep) else ()

    def _model_steps(self) -> list[ModelStep]:
        return [step for step in self.steps if isinstance(step, ModelStep)]

    def _empty_messages(self) -> int:
        return sum(step.is_empty for step in self._model_steps())
