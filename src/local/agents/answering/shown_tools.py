"""Which of the tools that can be called the model is shown: those of use in this phase, and no more than it can hold.

This is about the prompt alone: a call of a tool that is not shown is made like any other, and asks for leave like it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from local.agents.answering.own_schemas import SCHEMAS
from local.agents.answering.tool_finder import found_by, named_in
from local.agents.answering.work_phase import CATEGORIES, WorkPhase, phase_of
from local.models.tool_selection import Tier
from local.protocol.messages import ToolCallRecord, ToolSchema
from local.protocol.plan_messages import latest_plan
from local.protocol.todo_messages import CLOSED, latest_list
from local.protocol.turn_tools import TOOL_SEARCH

SHARE = 0.25  # of the model's window, for all schemas together
CORE = (
    "read_file", "list_files", "search_code", "web_search", "search_memory", "shell_exec", "write_file", "edit_file",
    "web_fetch",
)  # fmt: skip
"""What a weak model is shown, the most useful first."""


@dataclass(frozen=True, slots=True)
class ToolRoom:
    """How many schemas a model can hold: so `many`, and so many `tokens`, as `tokens_of` counts them."""

    many: int
    tokens: int
    tokens_of: Callable[[ToolSchema], int]


def phase_after(records: Sequence[ToolCallRecord], tools: Mapping[str, ToolSchema]) -> WorkPhase:
    """What a turn is at that has made these calls."""
    calls = [dict(record) for record in records]
    plan = latest_plan(calls)
    steps = plan.steps if plan is not None and plan.status == "approved" else ()
    states = [item.state for item in latest_list(calls)] + [step.state for step in steps]
    made = [tools[record.tool].category for record in records if record.result is not None and record.tool in tools]
    return phase_of(made, all_done=bool(states) and CLOSED.issuperset(states))


def shown(
    offered: Mapping[str, ToolSchema],
    records: Sequence[ToolCallRecord],
    question: str,
    phase: WorkPhase,
    tier: Tier,
    room: ToolRoom,
) -> list[str]:
    """The names of the tools that are shown, in the order in which they are offered; with `tool_search` if there are
    others. What was called or found in this turn is shown in every phase, and so is what the question names."""
    tools = {name: schema for name, schema in offered.items() if name != TOOL_SEARCH}
    kept = [
        *dict.fromkeys(record.tool for record in records if record.tool in tools),
        *sorted(found_by(records, tools)),
        *(name for name in tools if name in SCHEMAS),
        *sorted(named_in(question, tools.values())),
    ]
    core = [name for name in CORE if name in tools]
    others = [] if tier is Tier.WEAK else list(tools)
    in_phase = [name for name in (*core, *others) if tools[name].category in CATEGORIES[phase]]
    ranked = list(dict.fromkeys((*kept, *in_phase)))
    if len(ranked) < len(tools) or not _fits(ranked, tools, room):
        ranked = [TOOL_SEARCH, *_cut(ranked, tools, room)]
    return [name for name in (*tools, TOOL_SEARCH) if name in ranked]


def _fits(names: Sequence[str], tools: Mapping[str, ToolSchema], room: ToolRoom) -> bool:
    return len(names) <= room.many and sum(room.tokens_of(tools[name]) for name in names) <= room.tokens


def _cut(names: Sequence[str], tools: Mapping[str, ToolSchema], room: ToolRoom) -> list[str]:
    """The first of them, as many as there is room for beside the search."""
    left, chosen = room.tokens, list[str]()
    for name in names[: max(0, room.many - 1)]:
        left -= room.tokens_of(tools[name])
        if left < 0:
            break
        chosen.append(name)
    return chosen
