"""Which calls of a model need no tool: one too many, one that nobody offers, one that was answered before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from local.agents.steps import ModelStep, PlannedCall, Step, ToolStep
from local.protocol.messages import ErrorInfo, ToolCallRecord, ToolSchema

MAX_CALLS_AT_ONCE = 16


def settle_here(
    call: PlannedCall, index: int, offered: Mapping[str, ToolSchema], steps: Sequence[Step]
) -> ToolCallRecord | None:
    """The record of a call that no tool has to answer, or None. `index` is its place in the model's message."""
    if index >= MAX_CALLS_AT_ONCE:
        return _refused(call, "too_many_calls", f"at most {MAX_CALLS_AT_ONCE} calls are made at once")
    schema = offered.get(call.tool)
    if schema is None:
        names = ", ".join(sorted(offered)) or "none"
        return _refused(call, "unknown_tool", f"there is no tool {call.tool!r} now; tools: {names}")
    return None if schema.repeatable else _recorded(call, steps)


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


def _refused(call: PlannedCall, kind: str, message: str) -> ToolCallRecord:
    return ToolCallRecord(
        call_id=call.call_id, tool=call.tool, args=call.args, error=ErrorInfo(kind=kind, message=message)
    )
