"""What the stand-in writes down of its own work, where a question tells it to."""

from __future__ import annotations

import re
from collections.abc import Container

from local.models.stand_in.conversation import ToolUse

_TO_DO = re.compile(r"\bto-?do list\b[^:.?]*:\s*(?P<items>[^.?]+)", re.I)
OWN = frozenset({"todo"})


def own_call(question: str, tools: Container[str]) -> ToolUse | None:
    """The call that keeps what stands after "to-do list …:", if that tool is offered."""
    if "todo" in tools and (wanted := _TO_DO.search(question)):
        return ToolUse("todo", {"items": [{"text": item, "state": "open"} for item in _parts(wanted["items"])]})
    return None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",|\band\b", text) if part.strip()]
