"""Which calls of a model are made, and which need no tool: the asker's, too many, made before, or not to be made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

from local.agents.answering.own_schemas import FAULTS, SCHEMAS
from local.agents.answering.question import Question
from local.agents.answering.steps import READ_RESULT, ModelStep, PlannedCall, Step, ToolStep, signature
from local.agents.answering.taint.provenance import RECALL
from local.agents.answering.taint.taint_policy import REFUSALS, TaintPolicy
from local.agents.answering.tool_finder import found_by, schema_as_text
from local.agents.answering.turn_limits import TOO_MANY_CALLS
from local.models.chat import ToolCall
from local.protocol.message import MAIN_RESPONDENT, MAX_ARGUMENTS_DEPTH, is_deeper
from local.protocol.messages import AnswerOptions, ClientCall, ErrorInfo, ToolCallRecord, ToolSchema
from local.protocol.turn_tools import CALL_TOOL, PLAN_STEP, TOOL_SEARCH

MAX_CALLS_AT_ONCE = 16
SAME_CALL_REFUSED = 3
SAME_CALL_ENDS_LOOP = 4
UNKNOWN_TOOL, NOT_OFFERED = "unknown_tool", "not_offered"
UNKNOWN_ENDS = 2  # rounds of calls of tools that there are not: then the model has to answer in words
TOLD_IN_RESULTS = frozenset({READ_RESULT, PLAN_STEP, TOOL_SEARCH, CALL_TOOL})  # results say how these are called
NOT_MADE = (
    frozenset({TOO_MANY_CALLS, UNKNOWN_TOOL, NOT_OFFERED, "repeated_call", "denied", "not_granted"}) | REFUSALS
)  # kinds of what is refused here
_REFUSED = frozenset({"denied", "not_granted"}) | REFUSALS
NOT_FOR_A_SECOND = "is not run for the second respondent, because it changes something; go on without its result"
TOO_DEEP = "nested too deep"  # the one argument of a call whose arguments are
_TOLD = "arguments; answer with what its results say, or ask for something else"


def planned(calls: Sequence[ToolCall], question: Question, step: int, *, offers_tools: bool) -> tuple[PlannedCall, ...]:
    """The calls of a message, which is that step, that are made. Calls of the asker's functions, with whose results the
    asker goes on, come without others beside them."""
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
    """Arguments with the replacement character for half a character, which nobody could be sent; of those that are
    nested too deep for a message, nothing but that."""
    if is_deeper(dict(args), MAX_ARGUMENTS_DEPTH):
        return {TOO_DEEP: True}
    text = json.dumps(args, ensure_ascii=False)
    if text.isascii():
        return dict(args)
    said: dict[str, Any] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return said


def client_calls(calls: Iterable[PlannedCall], question: Question) -> tuple[ClientCall, ...]:
    """The calls that the asker is to make: those of its own functions."""
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
) -> ToolCallRecord | None:
    """The record of a call that is not made, by the first rule that says so; None for one that is. `listed` are the
    tools that the model is told of, None if these are all that are `offered`."""
    record = settle_here(call, index, offered, steps, room, listed)
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
) -> ToolCallRecord | None:
    """The record of a call that no tool has to answer, or None. `index` is its place in the model's message, `room` how
    many more calls the turn may have."""
    if index >= MAX_CALLS_AT_ONCE:
        return refused(call, TOO_MANY_CALLS, f"at most {MAX_CALLS_AT_ONCE} calls are made at once")
    if index >= room:
        return refused(call, TOO_MANY_CALLS, "no more calls can be made for this question; answer with what you have")
    schema = offered.get(call.tool)
    if schema is None and listed is not None and call.tool in listed:
        return refused(call, "unavailable", f"{call.tool} is not there now; go on without it")
    if schema is None:
        names = ", ".join(sorted(offered if listed is None else listed)) or "none"
        text = f"there is no such tool, {call.tool!r}; answer in words. The tools that there are now: {names}"
        return refused(call, UNKNOWN_TOOL, text)
    if listed is not None and call.tool not in listed and not is_told(call.tool, steps, offered):
        text = f"{call.tool} was not in your list; call it with these arguments: {schema_as_text(schema)}"
        return refused(call, NOT_OFFERED, text)
    if TOO_DEEP in call.args:
        return refused(call, "bad_arguments", f"{call.tool}: arguments are {TOO_DEEP}, at most {MAX_ARGUMENTS_DEPTH}")
    if call.tool in FAULTS and (fault := FAULTS[call.tool](call.args)):
        return refused(call, "bad_arguments", fault)
    if schema.repeatable:
        return None
    times = sum(call.signature in asked for asked in rounds(steps))
    if times + 1 >= SAME_CALL_REFUSED:
        return refused(call, "repeated_call", f"{call.tool} was called {times} times with the same {_TOLD}")
    if alternates([*rounds(steps), frozenset({call.signature})]):
        return refused(call, "repeated_call", f"the same two calls are made in turn, with the same {_TOLD}")
    return _recorded(call, steps)


def is_told(tool: str, steps: Sequence[Step], offered: Mapping[str, ToolSchema]) -> bool:
    """Whether the model has been told in this turn how a tool that is not on its list is called."""
    records = [record for step in steps if isinstance(step, ToolStep) for record in step.records]
    if tool in TOLD_IN_RESULTS or any(record.tool == tool for record in records):
        return True
    return tool in found_by(records, {name: schema for name, schema in offered.items() if name not in SCHEMAS})


def asks_for_what_is_not_there(steps: Sequence[Step]) -> bool:
    """Whether the model has been told that there is no such tool, and has called nothing else since."""
    ended = [step.records for step in steps if isinstance(step, ToolStep)][-UNKNOWN_ENDS:]
    errors = [record.error.kind if record.error else "" for records in ended for record in records]
    return len(ended) == UNKNOWN_ENDS and all(kind == UNKNOWN_TOOL for kind in errors)


def settle_tainted(call: PlannedCall, schema: ToolSchema, policy: TaintPolicy) -> ToolCallRecord | None:
    """The record of a call that is not made because words of strangers are before the model, or None."""
    refusal = policy.refusal(call.tool, call.args, schema.effect)
    return None if refusal is None else refused(call, refusal.kind, refusal.message)


def rounds(steps: Sequence[Step]) -> list[frozenset[str]]:
    """What each message asked for whose calls have ended."""
    ended = [step for step, after in pairwise(steps) if isinstance(step, ModelStep) and isinstance(after, ToolStep)]
    return [frozenset(call.signature for call in step.calls) for step in ended]


def is_loop(steps: Sequence[Step]) -> bool:
    """Whether the model goes round in circles: it asks for the same again and again, or for two things in turn."""
    asked = Counter(call.signature for step in steps if isinstance(step, ModelStep) for call in step.calls)
    return max(asked.values(), default=0) >= SAME_CALL_ENDS_LOOP or alternates(rounds(steps))


def is_in_vain(steps: Sequence[Step]) -> bool:
    """Whether the model has called one tool at least twice, and no call has brought anything: each has failed, or has
    found that nothing is remembered. What a person has refused does not count."""
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


def cut_off(call: PlannedCall) -> ToolCallRecord:
    """The record of a call whose result nobody waits for any more."""
    return refused(call, "cancelled", f"{call.tool} was cancelled before it had answered; it may have done its work")


def refused(call: PlannedCall, kind: str, message: str) -> ToolCallRecord:
    """The record of a call that is not made, for a reason that the model reads."""
    return ToolCallRecord(
        call_id=call.call_id, tool=call.tool, args=call.args, error=ErrorInfo(kind=kind, message=message)
    )


class SideEffectPolicy:
    """What a second respondent may not do, and what it takes from the main one instead of having it done again.

    `made` are the calls of the main respondent, in order; what is taken from them is marked as its own.
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
