"""What the stand-in writes down of its own work, where a question tells it to."""

from __future__ import annotations

import re
from collections.abc import Container

from local.models.stand_in.conversation import ToolUse

_TO_DO = re.compile(r"\bto-?do list\b[^:.?]*:\s*(?P<items>[^.?]+)", re.I)
_PLAN = re.compile(r"\bplan\b(?P<title>[^:.?]*):\s*(?P<steps>[^.?]+)", re.I)
OWN = frozenset({"todo", "propose_plan", "plan_step"})


def own_call(question: str, tools: Container[str]) -> ToolUse | None:
    """The call that keeps what stands after "to-do list …:", or proposes what stands after "plan …:", if it can."""
    if "todo" in tools and (wanted := _TO_DO.search(question)):
        return ToolUse("todo", {"items": [{"text": item, "state": "open"} for item in _parts(wanted["items"])]})
    if "propose_plan" in tools and (wanted := _PLAN.search(question)):
        return ToolUse("propose_plan", {"title": wanted["title"].strip() or "A plan", "steps": _parts(wanted["steps"])})
    return None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",|\band\b", text) if part.strip()]
