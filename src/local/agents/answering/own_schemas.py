"""The tools that a turn is itself: as the model is told of them, and what is wrong with a call of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from local.agents.answering import clarification, plans, result_reader, todo_list, tool_finder
from local.protocol.messages import ToolSchema
from local.protocol.turn_tools import CALL_TOOL, CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH

SCHEMAS: Final[Mapping[str, ToolSchema]] = {
    schema.tool: schema
    for schema in (
        result_reader.SCHEMA,
        clarification.SCHEMA,
        todo_list.SCHEMA,
        plans.PROPOSAL,
        plans.STEP,
        tool_finder.SCHEMA,
        tool_finder.CALL,
    )
}
FAULTS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    CLARIFICATION: clarification.fault_of,
    TODO_LIST: todo_list.fault_of,
    PROPOSE_PLAN: plans.fault_of_plan,
    PLAN_STEP: plans.fault_of_step,
    TOOL_SEARCH: tool_finder.fault_of,
    CALL_TOOL: tool_finder.fault_of_call,
}
"""Of the tools whose arguments are looked at before anybody is asked, and before the call is made."""
