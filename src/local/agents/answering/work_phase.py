"""What a turn is at, as the calls that it has made tell it, and which kinds of tools are of use then: one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, get_args

from local.protocol.messages import ToolCallRecord, ToolSchema
from local.protocol.plan_messages import latest_plan
from local.protocol.safety import Category
from local.protocol.todo_messages import CLOSED, latest_list


class WorkPhase(StrEnum):
    """What a turn is at."""

    RESEARCHING = "researching"
    EDITING = "editing"
    VERIFYING = "verifying"
    COMPLETING = "completing"


_WORKING: frozenset[Category] = frozenset({"read", "search", "write", "shell", "git", "meta", "memory"})
CATEGORIES: Final[Mapping[WorkPhase, frozenset[Category]]] = {
    WorkPhase.RESEARCHING: frozenset(get_args(Category)),
    WorkPhase.EDITING: _WORKING,
    WorkPhase.VERIFYING: _WORKING,
    WorkPhase.COMPLETING: frozenset({"read", "shell", "git", "meta"}),  # git: what is done is committed
}
READS_AGAIN = 4  # so many calls that only look something up, one after the other, are research


def phase_of(made: Iterable[Category], *, all_done: bool) -> WorkPhase:
    """The phase after calls of tools of these kinds; `all_done`: of what the turn has set itself nothing is left."""
    if all_done:
        return WorkPhase.COMPLETING
    phase, lookups, has_edited = WorkPhase.RESEARCHING, 0, False
    for category in made:
        if category == "write":
            phase, lookups, has_edited = WorkPhase.EDITING, 0, True
        elif category in ("shell", "git"):
            phase, lookups = WorkPhase.VERIFYING if has_edited else phase, 0
        elif category != "meta":
            lookups += 1
            phase = WorkPhase.RESEARCHING if lookups >= READS_AGAIN else phase
    return phase


def phase_after(records: Sequence[ToolCallRecord], tools: Mapping[str, ToolSchema]) -> WorkPhase:
    """What a turn is at that has made these calls."""
    calls = [dict(record) for record in records]
    plan = latest_plan(calls)
    steps = plan.steps if plan is not None and plan.status == "approved" else ()
    states = [item.state for item in latest_list(calls)] + [step.state for step in steps]
    made = [tools[record.tool].category for record in records if record.result is not None and record.tool in tools]
    return phase_of(made, all_done=bool(states) and CLOSED.issuperset(states))
