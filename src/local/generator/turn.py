"""One query being answered: the next action, decided from the question and the events so far. No I/O.

Problem: a turn is a loop of model calls and tool calls that may take minutes. Its process may die at any moment, its
user may cancel it, its model may call nonsense, the same thing again and again, or nothing.

Idea: a `Turn` is fed with events and returns the next action (`NextStep`); `runner.py` executes it. Its whole memory is
the list of steps, which is stored before any of its consequences are published. A turn made from the steps of another
one continues it: the ids of calls, the limits used and the taint all follow from the steps.

Invariants: every call of a message has a record before the model is asked again, in the order of the calls; the id of a
call is `query:step:index` in every process; which state an action leads to is the literal table in `steps.py`, and
anything else raises and changes nothing; a turn that has ended keeps its end.

Which calls are made is decided by the first rule that applies (`settle`): too many, unknown tool, not offered, bad
arguments, repeated, already made by the first respondent, refused by the rule of taint. Rejected: leaving loops to a
limit of steps alone, since small models use up all of them on the same call.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Any

from pydantic_core import to_json

from local.bus.message import MAIN_RESPONDENT, MAX_ARGUMENTS_DEPTH, ErrorInfo, is_deeper
from local.bus.messages import (
    AnswerOptions,
    ClientCall,
    ContextGauge,
    ModelSpan,
    ResponseGeneration,
    ToolCallRecord,
    ToolSchema,
    TurnTotals,
    hint_in,
)
from local.bus.vocabulary import CALL_TOOL, PLAN_STEP, TOOL_SEARCH
from local.generator.builtin_tools import FAULTS, SCHEMAS, found_by, schema_as_text
from local.generator.context import PromptParts
from local.generator.hints import ANSWER, tool_in
from local.generator.history import StoredTurn
from local.generator.steps import (
    AS_TEXT,
    CALLING,
    READ_RESULT,
    TABLE,
    TOO_MANY_CALLS,
    ModelStep,
    NudgeStep,
    PartialMessage,
    PlannedCall,
    Status,
    Step,
    ToolStep,
    TurnAction,
    TurnInput,
    TurnState,
    limit_met,
    notes_of,
    signature,
    total_usage,
    usage_of,
)
from local.generator.steps import NextStep as NextStep
from local.generator.taint_policy import RECALL, REFUSALS, TaintPolicy
from local.models.chat import Delta, Json, ToolCall
from local.models.client import asks_for_json, find_text_calls
from local.permissions.messages import QUESTIONS_OF_THE_MODEL, SILENCE
from local.runtime.machine import Machine

# Which calls of a model are made, and which need no tool: the asker's, too many, made before, or not to be made.

MAX_CALLS_AT_ONCE = 16
SAME_CALL_REFUSED = 3
SAME_CALL_ENDS_LOOP = 4
UNKNOWN_TOOL, NOT_OFFERED, REPEATED = "unknown_tool", "not_offered", "repeated_call"
UNKNOWN_ENDS = 2  # rounds of calls of tools that there are not: then the model has to answer in words
TOLD_IN_RESULTS = frozenset({READ_RESULT, PLAN_STEP, TOOL_SEARCH, CALL_TOOL})  # results explain how these are called
NOT_MADE = (
    frozenset({TOO_MANY_CALLS, UNKNOWN_TOOL, NOT_OFFERED, REPEATED, "denied", "not_granted"}) | REFUSALS
)  # kinds of error of refused calls
_REFUSED = frozenset({"denied", "not_granted"}) | REFUSALS
NOT_FOR_A_SECOND = "is not run for the second respondent, because it changes something; go on without its result"
TOO_DEEP = "nested too deep"  # the only argument of a call with arguments nested too deep
_TOLD = "arguments; answer with what its results say, or ask for something else"


def planned(
    calls: Sequence[ToolCall], question: TurnInput, step: int, *, offers_tools: bool
) -> tuple[PlannedCall, ...]:
    """Return the calls of a message, which is that step, that are made. Calls of the asker's functions, with whose
    results the asker continues, are made without others beside them.
    """
    options = question.options or AnswerOptions()
    calls = [call if call.name in options.function_names else unwrapped(call) for call in calls]
    wanted = [call for call in calls if call.name in options.function_names] or (calls if offers_tools else ())
    return tuple(
        PlannedCall(call_id=f"{question.query_id}:{step}:{index}", tool=call.name, args=_sayable(call.arguments))
        for index, call in enumerate(wanted[:1] if options.one_call else wanted)
    )


def unwrapped(call: ToolCall) -> ToolCall:
    """A call by way of `call_tool` as the call of the tool that it names: everything else goes by that one."""
    name, args = call.arguments.get("name"), call.arguments.get("args", {})
    if call.name != CALL_TOOL or not isinstance(name, str) or not isinstance(args, dict):
        return call
    if name.strip() in ("", CALL_TOOL) or call.arguments.keys() - {"name", "args"}:
        return call
    return replace(call, name=name.strip(), arguments=args)


def _sayable(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the replacement character for unpaired surrogates, which cannot be encoded; empty for
    arguments that are nested too deep for a message.
    """
    if is_deeper(dict(args), MAX_ARGUMENTS_DEPTH):
        return {TOO_DEEP: True}
    text = json.dumps(args, ensure_ascii=False)
    if text.isascii():
        return dict(args)
    said: dict[str, Any] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return said


def client_calls(calls: Iterable[PlannedCall], question: TurnInput) -> tuple[ClientCall, ...]:
    """Return the calls that the asker is to make: those of its own functions."""
    names = question.options.function_names if question.options else ()
    own = [call for call in calls if call.tool in names]
    return tuple(ClientCall(call_id=call.call_id, function=call.tool, arguments=call.args) for call in own)


def settle(
    call: PlannedCall,
    index: int,
    offered: Mapping[str, ToolSchema],
    steps: Sequence[Step],
    room: int,
    side_effects: SideEffectPolicy | None,
    policy: TaintPolicy | None,
    listed: Collection[str] | None = None,
    *,
    once: bool = False,
) -> ToolCallRecord | None:
    """Return the record of a call that is not made, by the first rule that applies; None for one that is made. `listed`
    are the tools in the model's prompt, None if these are all that are `offered`. `once`: no call is repeated.
    """
    record = settle_here(call, index, offered, steps, room, listed, once=once)
    if record is None and side_effects is not None:
        record = side_effects.settle(call, offered[call.tool])
    if record is None and policy is not None:
        record = settle_tainted(call, offered[call.tool], policy)
    return record


def settle_here(
    call: PlannedCall,
    index: int,
    offered: Mapping[str, ToolSchema],
    steps: Sequence[Step],
    room: int = MAX_CALLS_AT_ONCE,
    listed: Collection[str] | None = None,
    *,
    once: bool = False,
) -> ToolCallRecord | None:
    """The record of a call that no tool has to answer, or None. `index` is its place in the model's message, `room` how
    many more calls the turn may have. `once`: a call is not even made again from the record."""
    if index >= MAX_CALLS_AT_ONCE:
        return refused(call, TOO_MANY_CALLS, f"at most {MAX_CALLS_AT_ONCE} calls are made at once")
    if index >= room:
        return refused(call, TOO_MANY_CALLS, "no more calls can be made for this question; answer with what you have")
    schema = offered.get(call.tool)
    if schema is None and listed is not None and call.tool in listed:
        return refused(call, "unavailable", f"{call.tool} is not there now; go on without it")
    if schema is None:
        if once:  # a model that follows the last line calls whatever an error names
            return refused(call, UNKNOWN_TOOL, f"there is no tool {call.tool!r}")
        names = ", ".join(sorted(offered if listed is None else listed)) or "none"
        text = f"there is no such tool, {call.tool!r}; answer in words. The tools that there are now: {names}"
        return refused(call, UNKNOWN_TOOL, text)
    if listed is not None and call.tool not in listed and not is_described(call.tool, steps, offered):
        text = f"{call.tool} was not in your list; call it with these arguments: {schema_as_text(schema)}"
        return refused(call, NOT_OFFERED, text)
    if TOO_DEEP in call.args:
        return refused(call, "bad_arguments", f"{call.tool}: arguments are {TOO_DEEP}, at most {MAX_ARGUMENTS_DEPTH}")
    if call.tool in FAULTS and (fault := FAULTS[call.tool](call.args)):
        return refused(call, "bad_arguments", fault)
    times = sum(call.signature in asked for asked in rounds(steps))
    if once and times:
        return refused(call, REPEATED, f"{call.tool} has answered this call; its result is above")
    if schema.repeatable:
        return None
    if times + 1 >= SAME_CALL_REFUSED:
        return refused(call, REPEATED, f"{call.tool} was called {times} times with the same {_TOLD}")
    if alternates([*rounds(steps), frozenset({call.signature})]):
        return refused(call, REPEATED, f"the same two calls are made in turn, with the same {_TOLD}")
    return _recorded(call, steps)


def is_described(tool: str, steps: Sequence[Step], offered: Mapping[str, ToolSchema]) -> bool:
    """Whether a tool that is not on the list was described to the model in this turn."""
    records = [record for step in steps if isinstance(step, ToolStep) for record in step.records]
    if tool in TOLD_IN_RESULTS or any(record.tool == tool for record in records):
        return True
    return tool in found_by(records, {name: schema for name, schema in offered.items() if name not in SCHEMAS})


def asks_for_what_is_not_there(steps: Sequence[Step]) -> bool:
    """Whether the model was informed that there is no such tool, and has called nothing else since."""
    ended = [step.records for step in steps if isinstance(step, ToolStep)][-UNKNOWN_ENDS:]
    errors = [record.error.kind if record.error else "" for records in ended for record in records]
    return len(ended) == UNKNOWN_ENDS and all(kind == UNKNOWN_TOOL for kind in errors)


def settle_tainted(call: PlannedCall, schema: ToolSchema, policy: TaintPolicy) -> ToolCallRecord | None:
    """Return the record of a call that is not made because untrusted content is in front of the model, or None."""
    refusal = policy.refusal(call.tool, call.args, schema.effect, sends_out=schema.sends_out)
    return None if refusal is None else refused(call, refusal.kind, refusal.message)


def rounds(steps: Sequence[Step]) -> list[frozenset[str]]:
    """Return the calls of each message whose calls have ended."""
    ended = [step for step, after in pairwise(steps) if isinstance(step, ModelStep) and isinstance(after, ToolStep)]
    return [frozenset(call.signature for call in step.calls) for step in ended]


def is_loop(steps: Sequence[Step]) -> bool:
    """Whether the model goes round in circles: it asks for the same again and again, or for two things in turn."""
    asked = Counter(call.signature for step in steps if isinstance(step, ModelStep) for call in step.calls)
    return max(asked.values(), default=0) >= SAME_CALL_ENDS_LOOP or alternates(rounds(steps))


def is_in_vain(steps: Sequence[Step]) -> bool:
    """Whether the model has called one tool at least twice without a useful result: each call has failed, or has found
    no memories. Calls refused by a person do not count.
    """
    ended = [step.records for step in steps if isinstance(step, ToolStep)]
    if len(ended) < 2 or not {record.tool for record in ended[0]} & {record.tool for record in ended[-1]}:
        return False
    return all(map(_brought_nothing, chain.from_iterable(ended)))


def in_vain(steps: Sequence[Step], tool: str) -> bool:
    """Whether a tool has been called, and no call of it has brought anything."""
    records = [record for step in steps if isinstance(step, ToolStep) for record in step.records if record.tool == tool]
    return bool(records) and all(map(_brought_nothing, records))


def _brought_nothing(record: ToolCallRecord) -> bool:
    if record.error is not None:
        return record.error.kind not in _REFUSED
    return record.tool == RECALL and not record.sources


def alternates(asked: Sequence[frozenset[str]]) -> bool:
    """Whether the last four messages ask for one thing and another in turn, twice."""
    if len(asked) < 4:
        return False
    first, second, third, fourth = asked[-4:]
    return first == third != second == fourth


def _recorded(call: PlannedCall, steps: Sequence[Step]) -> ToolCallRecord | None:
    """The result of the same call made earlier in this turn, under the id of this one."""
    made = {
        planned.call_id
        for step in steps
        if isinstance(step, ModelStep)
        for planned in step.calls
        if planned.signature == call.signature
    }
    for step in steps:
        for record in step.records if isinstance(step, ToolStep) else ():
            if record.call_id in made and record.result is not None:
                return under_id(call, record)
    return None


def under_id(call: PlannedCall, record: ToolCallRecord) -> ToolCallRecord:
    """The record of an equal call as that of this one, which cost no time."""
    return record.model_copy(update={"call_id": call.call_id, "duration_ms": 0.0})


def without_unknown(call: PlannedCall, schema: ToolSchema | None) -> PlannedCall:
    """Return a call of a reading tool without the arguments that the tool does not have. Those of other tools stay, and
    are refused: a model that writes `dry_run` does not want the call made without it.
    """
    if schema is None or schema.effect == "write" or schema.parameters.get("additionalProperties") is not False:
        return call
    known = schema.parameters.get("properties") or {}
    return call.with_args({name: value for name, value in call.args.items() if name in known or name == TOO_DEEP})


def cut_off(call: PlannedCall) -> ToolCallRecord:
    """Return the record of a call whose result is no longer waited for."""
    return refused(call, "cancelled", f"{call.tool} was cancelled before it had answered; it may have done its work")


def refused(call: PlannedCall, kind: str, message: str) -> ToolCallRecord:
    """The record of a call that is not made, for a reason that the model reads."""
    return ToolCallRecord(
        call_id=call.call_id, tool=call.tool, args=call.args, error=ErrorInfo(kind=kind, message=message)
    )


MOST_DENIALS = 3  # of one tool in a turn: after that no person is asked about it again
DENIED_BEFORE = "earlier"  # in `denied_by`: a decision about an earlier call of the turn
DENIED_ENDS = 2  # rounds of calls that were denied before: then the model has to answer in words
DO_NOT_ASK = "do not ask again; answer in words"
TARGETS = ("path", "file_path", "command", "script", "url", "uri", "address")  # arguments with the target of a call


def denial_key(call: PlannedCall) -> str:
    """Return the tool and the target of a call, by which a denial holds for the rest of the turn: the same tool with
    the same path, command or address; every call of a tool that has none of these arguments. Each question of the model
    to the user counts separately.
    """
    if call.tool in QUESTIONS_OF_THE_MODEL:
        return call.call_id
    return signature(call.tool, _target(call.args))


def _target(args: Mapping[str, Any]) -> dict[str, Any]:
    target = {name: args[name] for name in TARGETS if name in args}
    for name, value in target.items():
        if isinstance(value, list):
            target[name] = shlex.join(map(str, value))
        elif isinstance(value, str):
            target[name] = posixpath.normpath(value.strip()) if name in ("path", "file_path") else value.strip()
    return target


def why_not_asked(call: PlannedCall, records: Iterable[ToolCallRecord]) -> str:
    """Why no person is asked about a call, as the model reads it; empty if one may be. `records` are the calls of the
    turn so far. A question of the model and a plan are asked each time."""
    if call.tool in QUESTIONS_OF_THE_MODEL:
        return ""
    denied = [record for record in records if record.tool == call.tool and record.denied_by not in ("", DENIED_BEFORE)]
    same = [record for record in denied if signature(call.tool, _target(record.args)) == denial_key(call)]
    if not same and len(denied) < MOST_DENIALS:
        return ""
    if (same or denied)[-1].denied_by == SILENCE:
        return f"nobody answered the question about it in this turn; {DO_NOT_ASK}"
    return f"denied by the user in this turn; {DO_NOT_ASK}"


def denied_before(call: PlannedCall, why: str) -> ToolCallRecord:
    """Return the record of a call that is not put to a person, because a denial in this turn covers it."""
    record = refused(call, "denied", f"{call.tool} was not run: {why}")
    return record.model_copy(update={"denied_by": DENIED_BEFORE})


def asks_for_what_is_denied(steps: Sequence[Step]) -> bool:
    """Whether the model was instructed not to repeat a denied call, and has called nothing else since."""
    ended = [step.records for step in steps if isinstance(step, ToolStep)][-DENIED_ENDS:]
    return len(ended) == DENIED_ENDS and all(
        record.denied_by == DENIED_BEFORE for records in ended for record in records
    )


class SideEffectPolicy:
    """The rule for calls of a second respondent: what it may not do, and which results of the main one it uses instead.

    `made` are the calls of the main respondent, in order; a used result is marked as its own.
    """

    def __init__(self, made: Iterable[ToolCallRecord] = ()) -> None:
        self._made: dict[str, ToolCallRecord] = {}
        for record in made:
            was_made = record.error is None or record.error.kind not in NOT_MADE
            if was_made and record.tool != READ_RESULT:  # by its call_id it means another call here
                key = signature(record.tool, record.args)
                if key not in self._made or self._made[key].result is None:
                    self._made[key] = record

    def settle(self, call: PlannedCall, schema: ToolSchema) -> ToolCallRecord | None:
        """The record of a call that must not be made, or was made already; None for any other."""
        if schema.effect == "write" or schema.safety != "L0":
            return refused(call, "fenced", f"{call.tool} {NOT_FOR_A_SECOND}")
        record = self._made.get(call.signature)
        return None if record is None else under_id(call, record).model_copy(update={"made_by": MAIN_RESPONDENT})


TOLD = ("prompt", "profile", "incognito", "in_history", "origin", "own_words")  # copied from question to answer
EMPTY_ANSWERS_ALLOWED = 2
SAY_DENIED = "The user did not allow it, so it was not done. Say so in plain text. No more tool calls are possible."
ANSWER_NOW = "Answer the question now, in plain text, with what you have. No more tool calls are possible."
NO_WORDS = "the model called tools or said nothing instead of answering in words, asked"
SAY_SOMETHING = "Your last message was empty. Answer the question in plain text."

# The line that a guided model reads behind each round of results: small models follow what stands last [m].
FROM_RESULT = "Answer in words, from this result: {query}"
FROM_SEARCH = "Answer in a sentence, from this result, with its URL in brackets at the end: {query}"
READ_PAGE = "Call web_fetch with {link}, then answer: {query}"
_TO_READ = READ_PAGE.partition("{")[0]
NOT_REMEMBERED = "This is not remembered. Say so in words: {query}"
NOT_ALLOWED = "The user did not allow it, so it was not done. Say so in words: {query}"
NOT_THERE = "There is no such tool. Answer in words: {query}"
NOT_DONE = "That was not done. Say so in words: {query}"
FAILED = "That did not work. Correct the call, or say in words what did not work: {query}"
IN_WORDS = "Answer in words, with what you have: {query}"
CALL_NOW = "Call {tool} now."
NOT_WRITTEN = "no file was written: the model called no tool"
_WRITTEN = re.compile(r"\b(?:written|saved|created|stored|added|updated|replaced|changed)\b", re.IGNORECASE)
_TELLS = frozenset({"fact", "recalled", "earlier", "file"})  # kinds of content in the block with words of the user's
_LET_CALL = tuple(
    text.partition("{")[0] for text in (FROM_RESULT, FROM_SEARCH, CALL_NOW, FAILED)
)  # the others want words
SEARCH, FETCH, WRITE = "web_search", "web_fetch", "write_file"
_WANTS_PAGE = re.compile(r"\b(?:pages?|web ?sites?|sites?|articles?|links?|top result|summari[sz]e|read)\b", re.I)
_PLAIN_LINK = re.compile(r"https?://[\w.:/?=&%~+-]{1,200}", re.ASCII)
LONGEST_REPEATED = 400  # characters of a question; a longer one is not repeated whole


def closing_line(records: Sequence[ToolCallRecord], query: str, *, may_fetch: bool = False) -> str:
    """Return the line behind the results of a round of calls, which repeats the question. Behind the results of a
    search it names the first page, if the question is about the content of a page, which the model may fetch.
    """
    kinds = {record.error.kind if record.error else "" for record in records}
    found = (link for record in records if record.tool == SEARCH for link in (*record.sources, *record.links))
    links = [link for link in found if _PLAIN_LINK.fullmatch(link)]  # it is repeated outside of the results
    if links and may_fetch and _WANTS_PAGE.search(query):
        return _asking(READ_PAGE, query, links[0])
    if kinds <= {"denied", "not_granted"}:
        text = NOT_ALLOWED
    elif kinds <= _REFUSED:
        text = NOT_DONE
    elif kinds == {UNKNOWN_TOOL}:
        text = NOT_THERE
    elif kinds == {REPEATED}:
        text = IN_WORDS
    elif not all(map(_brought_nothing, records)):
        text = FROM_SEARCH if any(record.tool == SEARCH for record in records) else FROM_RESULT
    else:
        text = NOT_REMEMBERED if kinds == {""} else FAILED
    return _asking(text, query)


def _asking(text: str, query: str, link: str = "") -> str:
    asked = query if len(query) <= LONGEST_REPEATED else f"{query[:LONGEST_REPEATED]}…"
    return text.format(query=asked, link=link)


class Turn:
    """One query being answered: feed it events; it returns the next action. `steps` is its whole memory: a turn made
    from the steps of another continues it. `side_effects` settles the calls that are not to be made.
    """

    def __init__(
        self, question: TurnInput, steps: Sequence[Step] = (), side_effects: SideEffectPolicy | None = None
    ) -> None:
        self.question, self._side_effects = question, side_effects
        self.steps: list[Step] = list(steps)
        self.acts = False  # whether it is offered a tool that does more than read
        self.is_small = False  # whether its model is
        self.is_guided = question.guided
        self.listed: frozenset[str] | None = None  # the tools in its model's prompt; None: all that it may call
        self.on_change: Callable[[TurnState, TurnAction, TurnState], None] = lambda before, action, after: None
        self._machine: Machine[TurnState, TurnAction] = Machine(
            TABLE, TurnState.IDLE, lambda *change: self.on_change(*change)
        )
        self._status: Status = "answered"
        self._error: ErrorInfo | None = None
        self._spoken = PartialMessage()
        self._gauge = next((step.usage.context for step in reversed(self._model_steps())), None)
        self._beginning = question.beginning or PromptParts.beginning(
            question.prelude, question.query, question.summary, question.attached
        )
        self._left_out = 0  # exchanges that are left out of the prompt

    @property
    def state(self) -> TurnState:
        """The state in which the turn is."""
        return self._machine.state

    @property
    def content(self) -> str:
        """Return the content so far of the message that the model generates."""
        return self._spoken.content

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in the message that the model is saying."""
        return tuple(map(unwrapped, self._spoken.calls))

    def begin(self) -> NextStep:
        """Begin the accepted query, or continue it in a restarted process."""
        self._machine.advance(TurnAction.RECEIVE_QUERY)
        self._machine.advance(TurnAction.START_GENERATION)
        last = self.steps[-1] if self.steps else None
        return self._after_model(last) if isinstance(last, ModelStep) else NextStep.CALL_MODEL

    @property
    def tainted(self) -> bool:
        """Whether untrusted content is in front of the model, so that it may obey it."""
        return self.question.tainted or any(step.tainted for step in self.steps)

    # The model's input

    def parts(self, tools: Sequence[Json]) -> PromptParts:
        """Everything that the next prompt is about, uncut."""
        steps = list(self.question.continued)
        if self.is_guided:
            steps += self._guided_steps()
        else:
            steps += [message for step in self.steps for message in step.as_messages()]
            if self.totals.steps and not self.offers_tools and not self._own_functions:
                text = SAY_DENIED if asks_for_what_is_denied(self.steps) else ANSWER_NOW
                steps.append({"role": "user", "content": text})
        return replace(self._beginning, tools=tuple(tools), steps=tuple(steps), tainted=self.tainted)

    def begin_with(self, parts: PromptParts, left_out: int = 0) -> None:
        """Begin further prompts with these parts: a summary replaces the exchanges that are missing in them. `left_out`
        exchanges of them are in no prompt for now.
        """
        self._beginning, self._left_out = parts, left_out

    @property
    def shown_since(self) -> float | None:
        """See `PromptParts.shown_since`."""
        return self._beginning.shown_since(self._left_out)

    @property
    def records(self) -> tuple[ToolCallRecord, ...]:
        """Return the results of the turn's calls, in order."""
        return tuple(record for step in self.steps if isinstance(step, ToolStep) for record in step.records)

    @property
    def offers_tools(self) -> bool:
        """Whether the model may still call tools."""
        return not limit_met(self.totals) and not (
            is_loop(self.steps)
            or asks_for_what_is_not_there(self.steps)
            or asks_for_what_is_denied(self.steps)
            or (self.is_small and is_in_vain(self.steps))
            or (self.is_guided and self._has_repeated)
        )

    @property
    def _has_repeated(self) -> bool:
        """Whether the last round of calls repeated earlier ones."""
        last = next((step.records for step in reversed(self.steps) if isinstance(step, ToolStep)), ())
        return bool(last) and all(record.error is not None and record.error.kind == REPEATED for record in last)

    def _guided_steps(self) -> list[Json]:
        """Return the messages since the question, with a line behind each round of results. The lines of earlier
        rounds stay, so that the prompt only grows.
        """
        messages = list[Json]()
        for step in self._shown_steps():
            messages += step.as_messages()
            if isinstance(step, ToolStep):
                messages.append({"role": "user", "content": self._line_behind(step)})
        return messages

    def _line_behind(self, step: ToolStep) -> str:
        may_fetch = self.listed is not None and FETCH in self.listed
        return closing_line(step.records, self.question.query, may_fetch=may_fetch)

    def _shown_steps(self) -> Sequence[Step]:
        """Return the steps in the prompt: without a call that was only repeated, and without calls that led nowhere,
        where the model insists on them. A model that reads its own calls repeats them.
        """
        if self._asks_anew:
            return ()
        return self.steps[:-2] if self._has_repeated and isinstance(self.steps[-1], ToolStep) else self.steps

    @property
    def _insists(self) -> bool:
        """Whether the model's last message had no words though it should be an answer."""
        last = self._model_steps()[-1:]
        return bool(last) and last[0].is_empty and not self.offers_tools

    @property
    def _asks_anew(self) -> bool:
        """Whether a guided model is asked its question without the calls that it insists on: they are of tools that do
        not exist, or the question is one to answer. With its own calls before it the model would only repeat them.
        """
        if not self.is_guided or not self._insists:
            return False
        kinds = {record.error.kind if record.error else "" for record in self.records}
        return kinds <= {UNKNOWN_TOOL, REPEATED} or (self._is_plain and all(map(_brought_nothing, self.records)))

    @property
    def _is_plain(self) -> bool:
        """Whether the line behind the question says to answer."""
        return hint_in(self._beginning.context.items) == ANSWER

    @property
    def wants_words(self) -> bool:
        """Whether the last line of the prompt tells a guided model to answer, and not to call a tool."""
        if not self.is_guided or self._own_functions or asks_for_json(self.question.query):
            return False
        said = self._guided_steps()
        if not said:
            return self._is_plain or self._insists
        return not self.offers_tools or not str(said[-1]["content"]).startswith(_LET_CALL)

    @property
    def totals(self) -> TurnTotals:
        """Return the used shares of its limits."""
        return self.question.limits.totals(self.steps, acts=self.acts)

    @property
    def thinks(self) -> bool:
        """Whether the model is asked to think; not after an empty answer, to which thinking models tend."""
        return self.question.think and not self._empty_messages()

    # The model's output

    def receive(self, delta: Delta) -> None:
        """Take in one delta of the message that the model is saying."""
        self._spoken.receive(delta)

    def functions(self, offered: Iterable[Json]) -> list[Json]:
        """Return the functions in the model's prompt: the `offered` tools and the asker's own functions. The tools stay
        when no more calls are made, because the beginning of the prompt must not change; but not for a model that calls
        one all the same.
        """
        stay = self.offers_tools or (self.totals.steps > 0 and not self._insists and not self._own_functions)
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
        question = "JSON" if wants_form else self.question.query
        calls = find_text_calls(self.content, functions, question, among_words=self.is_small)
        is_repeating = self.is_small and calls and in_vain(self.steps, calls[0].name)
        return calls[:1] if is_repeating else calls  # the later ones are guesses

    def repeats_itself(self, functions: Sequence[Json]) -> bool:
        """Whether a small model has written a call as text twice in its message, or repeated a useless one: it would
        continue so until its tokens end.
        """
        if not self.is_small or not self.content.rstrip().endswith("}"):
            return False
        calls = self.calls_in_text(functions)
        made = [signature(call.name, call.arguments) for call in calls]
        return len(set(made)) < len(made) or bool(calls and in_vain(self.steps, calls[0].name))

    def message_ended(self, calls_in_text: Sequence[ToolCall] = (), span: ModelSpan | None = None) -> NextStep:
        """Decide after the end of the model's message. `calls_in_text` are calls found in its content, `span` is its
        time.
        """
        if calls_in_text:
            self._spoken.was_calls(calls_in_text)
        spoken, self._spoken = self._spoken, PartialMessage()
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
        """Begin a model call (again, if the prompt was too long). `notes` name missing parts of the prompt, `gauge` is
        the fill level of its window.
        """
        self._gauge = gauge
        self._spoken = PartialMessage(notes=list(notes))

    # The tools' results

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
            call = without_unknown(call, offered.get(call.tool))
            record = settle(
                call, index, offered, self.steps, room, self._side_effects, policy, self.listed, once=self.is_guided
            )
            if record is not None:
                settled[call.call_id] = record
            elif offered[call.tool].repeatable or call.signature not in made:
                open_calls.append(call if policy is None else call.with_args(policy.as_given(call.tool, call.args)))
                made.add(call.signature)
        return open_calls, settled

    def approval_requested(self) -> None:
        """Note that a person is asked about an open call."""
        self._machine.advance(TurnAction.REQUEST_APPROVAL)

    def approval_decided(self) -> None:
        """Note that no person is being asked any more."""
        self._machine.advance(TurnAction.APPROVAL_DECIDED)

    def requests_sent(self) -> None:
        """Every open call is on its way."""
        self._machine.advance(TurnAction.REQUEST_SENT)

    def tools_settled(self, records: Mapping[str, ToolCallRecord]) -> NextStep:
        """All calls of the last message have ended; `records` by call_id. A call without one was the same as an earlier
        one of the message and shares its record."""
        calls = self.last_calls
        made = {call.signature: records[call.call_id] for call in reversed(calls) if call.call_id in records}
        ordered = tuple(records.get(call.call_id) or under_id(call, made[call.signature]) for call in calls)
        all_late = all(record.error is not None and record.error.kind == "timeout" for record in ordered)
        self.steps.append(ToolStep(records=ordered))
        self._machine.advance(TurnAction.TOOL_TIMEOUT if all_late else TurnAction.TOOL_RESULT)
        return NextStep.CALL_MODEL

    def cancel(self, results: Mapping[str, ToolCallRecord] = MappingProxyType({})) -> NextStep:
        """End the turn at the user's request. `results` are those of the calls under way, by call_id."""
        if self.state in CALLING:
            records = (results.get(call.call_id) or cut_off(call) for call in self.last_calls)
            self.steps.append(ToolStep(records=tuple(records)))
        if self._ends_by(TurnAction.CANCEL):
            self._status = "cancelled"
        return NextStep.PUBLISH

    def fail(self, error: ErrorInfo) -> NextStep:
        """End the turn with an error that a model cannot correct."""
        if self._ends_by(TurnAction.FAIL):
            self._status, self._error = "failed", error
        return NextStep.PUBLISH

    def published(self) -> None:
        """Note that the response is published."""
        self._machine.advance(TurnAction.PUBLISHED)

    def response(self, cut_off: ModelSpan | None = None) -> ResponseGeneration:
        """Return the answer and its record; the partial answer if it ended early, possibly in a call that was
        `cut_off`.
        """
        steps = self._model_steps()
        said = [step for step in steps if step.content.strip()]
        thoughts = [*(step.thinking for step in steps), self._spoken.thinking]
        notes = [*self.question.notes, *(note for step in steps for note in step.degraded), *self._spoken.notes]
        notes += notes_of(self.totals)
        notes += self._dropped_arguments()
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

    def _dropped_arguments(self) -> list[str]:
        records = {record.call_id: record for record in self.records}
        return [
            f"{call.tool} has no argument {name!a}: it was left out"
            for step in self._model_steps()
            for call in step.calls
            if call.call_id in records
            for name in call.args.keys() - records[call.call_id].args.keys()
        ]

    def _ends_by(self, action: TurnAction) -> bool:
        """Take an action that ends a turn early; False if it comes too late to do so."""
        before = self.state
        return self._machine.advance(action) is not before

    def _after_model(self, step: ModelStep) -> NextStep:
        if step.calls and not client_calls(step.calls, self.question):
            return NextStep.CALL_TOOLS
        if self.is_guided and (tool := self._left_uncalled(step)):
            self.steps.append(NudgeStep(text=CALL_NOW.format(tool=tool)))
            return NextStep.CALL_MODEL
        if not step.is_empty:
            if self._claims_a_file(step):
                self.steps[-1] = step.model_copy(update={"degraded": (*step.degraded, NOT_WRITTEN)})
            self._machine.advance(TurnAction.FINISH)
            return NextStep.PUBLISH
        empty = self._empty_messages()
        if empty > EMPTY_ANSWERS_ALLOWED:
            wrote_calls = any(AS_TEXT in note for step in self._model_steps() for note in step.degraded)
            what = f"{NO_WORDS} {empty} times" if wrote_calls else f"the model gave an empty answer {empty} times"
            return self.fail(ErrorInfo(kind="empty_answer", message=what))
        if self.is_guided and self.records:  # the same prompt would bring the same silence
            self.steps.append(NudgeStep(text=_asking(IN_WORDS, self.question.query)))
        elif empty == EMPTY_ANSWERS_ALLOWED:
            self.steps.append(NudgeStep(text=SAY_SOMETHING))
        return NextStep.CALL_MODEL

    def _left_uncalled(self, step: ModelStep) -> str:
        """The tool that the line before a message says to call, and that the message only talks about. Or it is the
        memory, where the prompt has nothing of the user's, or the message says that a file is written: that is invented
        then. Empty if there is none. Small models write "I would call web_search" [m].
        """
        begun, before = self._beginning, self.steps[-2:-1]
        tool = "" if before else tool_in(hint_in(begun.context.items))
        if before and isinstance(before[0], ToolStep) and self._line_behind(before[0]).startswith(_TO_READ):
            tool = FETCH
        if not tool or step.calls or step.is_empty:
            return ""
        is_told = bool(begun.exchanges or begun.summary or _TELLS.intersection(x.kind for x in begun.context.items))
        is_named = tool in step.content.replace(" ", "_")  # "the web search function"
        return tool if is_named or (tool == RECALL and not is_told) or self._claims_a_file(step) else ""

    def _claims_a_file(self, step: ModelStep) -> bool:
        """Whether a message says that the file is written which the question asks for, though no tool was called."""
        asks = tool_in(hint_in(self._beginning.context.items)) == WRITE
        return asks and not self.records and _WRITTEN.search(step.content) is not None

    @property
    def last_calls(self) -> tuple[PlannedCall, ...]:
        """Return the calls of the model's last message."""
        last = self.steps[-1] if self.steps else None
        return last.calls if isinstance(last, ModelStep) else ()

    def _model_steps(self) -> list[ModelStep]:
        return [step for step in self.steps if isinstance(step, ModelStep)]

    def _empty_messages(self) -> int:
        return sum(step.is_empty for step in self._model_steps())


# A turn of the record, with everything that a page shows of it.

PAGE_BYTES = 48_000  # of turns in one answer: a larger one would travel as a separate file
_OF_ANSWER = ("thinking", "tool_calls", "model", "usage", "degraded", "cut_off", "tainted")


def turn_view(turn: StoredTurn, context: str | None = None) -> Json:
    """Return the turn as JSON. `attachments` are ids; fields of an answer are empty before there is one. `context` is
    the memory content in the prompt, as JSON.
    """
    outcome = {} if turn.outcome is None else json.loads(turn.outcome)
    answer = outcome if turn.outcome_subject == ResponseGeneration.subject else {}
    shown = {
        "query_id": turn.query_id,
        "session_id": turn.session_id,
        "copy_of": turn.copy_of,
        "query": turn.query,
        "attachments": json.loads(turn.body).get("attachments", []),
        "status": turn.status,
        "attempt": turn.attempt,
        "answer": turn.answer,
        "error": outcome.get("error"),
        "context": None if context is None else json.loads(context),
        "created_at": turn.created_at,
        "finished_at": turn.finished_at,
    }
    empty: Json = {"thinking": "", "tool_calls": [], "model": "", "usage": None, "degraded": []}
    shown |= {**empty, "cut_off": False, "tainted": False}
    shown |= {name: answer[name] for name in _OF_ANSWER if name in answer}
    for call in shown["tool_calls"]:
        call.pop("made_by", None)  # the main respondent makes its calls itself
    return shown


def fitting_views(turns: Sequence[StoredTurn], contexts: Mapping[str, str]) -> list[Json]:
    """The first of these turns, as many as travel in one message, at least one if there is any."""
    fitting, room = list[Json](), PAGE_BYTES
    for turn in turns:
        view = turn_view(turn, contexts.get(turn.query_id))
        room -= len(to_json(view))
        if room < 0 and fitting:
            break
        fitting.append({**view, "position": turn.position})
    return fitting
