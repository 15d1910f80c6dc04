"""The tools that a turn is itself: as the model is told of them, and when, and what is wrong with a call of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from local.agents.answering import clarification, plans, result_reader, todo_list, tool_finder
from local.agents.answering.steps import READ_RESULT
from local.agents.answering.turn_limits import does_more_than_read
from local.protocol.answer_options import AnswerOptions
from local.protocol.messages import ToolCallRecord, ToolSchema
from local.protocol.turn_tools import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH

SCHEMAS: Final[Mapping[str, ToolSchema]] = {
    schema.tool: schema
    for schema in (
        result_reader.SCHEMA,
        clarification.SCHEMA,
        todo_list.SCHEMA,
        plans.PROPOSAL,
        plans.STEP,
        tool_finder.SCHEMA,
    )
}
FAULTS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    CLARIFICATION: clarification.fault_of,
    TODO_LIST: todo_list.fault_of,
    PROPOSE_PLAN: plans.fault_of_plan,
    PLAN_STEP: plans.fault_of_step,
    TOOL_SEARCH: tool_finder.fault_of,
}
"""Of the tools whose arguments are looked at before anybody is asked, and before the call is made."""
_ACTING = frozenset({"write", "shell"})  # categories


def with_own(
    tools: Mapping[str, ToolSchema],
    records: Iterable[ToolCallRecord],
    options: AnswerOptions | None,
    *,
    asks_user: bool,
) -> dict[str, ToolSchema]:
    """The tools with those of the turn itself that are of use: after these calls, and where it `asks_user`."""
    records, own = list(records), list[str]()
    if asks_user:
        own += [CLARIFICATION, *([PROPOSE_PLAN] if does_more_than_read(tools.values()) else ())]
    if any(record.tool == PROPOSE_PLAN and record.result is not None for record in records):
        own.append(PLAN_STEP)
    if any(schema.category in _ACTING for schema in tools.values()):
        own.append(TODO_LIST)
    wanted = [name for name in own if options is None or options.offers(name)]
    read_on = [READ_RESULT] if any(record.whole for record in records) else []
    return {**tools, **{name: SCHEMAS[name] for name in (*wanted, *read_on)}}
