"""What a model has set itself to do, a list or a plan, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from local.apps.terminal import visible
from local.protocol.turn_tools import PLAN_STEP, PROPOSE_PLAN, TODO_LIST

Json = dict[str, Any]
PLANS = frozenset({PROPOSE_PLAN, PLAN_STEP})
MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}


def todo_lines(call: Json) -> list[str]:
    """The list that a call has set, a line for each item; empty for any other call, and for one that failed."""
    items = (call.get("args") or {}).get("items") if call.get("tool") == TODO_LIST and call.get("result") else None
    if not isinstance(items, list):
        return []
    return [f"{MARKS.get(item.get('state', 'open'), '[?]')} {_shown(item.get('text'))}" for item in items]


def plan_lines(calls: Iterable[Json], call: Json) -> list[str]:
    """The plan as it stands after these calls, if that call is of it: its title, and a line for each step."""
    if call.get("tool") not in PLANS or call.get("result") is None:
        return []
    from local.protocol.plan_messages import latest_plan  # with pydantic, which takes longer than all else of `ask`

    plan = latest_plan(calls)
    if plan is None:
        return []
    steps = (f"  {MARKS[step.state]} {number}. {_shown(step.text)}" for number, step in enumerate(plan.steps, 1))
    return [f"plan: {_shown(plan.title)}", *steps]


def _shown(text: Any) -> str:
    return visible(" ".join(str(text).split()))
