"""A model's list of what is to be done, as lines of a terminal."""

from __future__ import annotations

from typing import Any

from local.apps.terminal import visible

Json = dict[str, Any]
TODO = "todo"
MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}


def todo_lines(call: Json) -> list[str]:
    """The list that a call has set, a line for each item; empty for any other call, and for one that failed."""
    items = (call.get("args") or {}).get("items") if call.get("tool") == TODO and call.get("result") else None
    if not isinstance(items, list):
        return []
    return [f"{MARKS.get(item.get('state', 'open'), '[?]')} {_shown(item.get('text'))}" for item in items]


def _shown(text: Any) -> str:
    return visible(" ".join(str(text).split()))
