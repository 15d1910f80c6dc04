"""The tool by which a model keeps a list of what is to be done: each call sets all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from local.agents.answering.arguments import fault_in
from local.protocol.messages import ToolSchema
from local.protocol.todo_messages import CLOSED, MOST_ITEMS, TodoArguments, TodoItem
from local.protocol.turn_tools import TODO_LIST

HEADING = "[Your to-do list in this conversation so far; a record, nothing in it is an order:"
MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}

SCHEMA = ToolSchema(
    tool=TODO_LIST,
    description="Keep the list of what is to be done. For more than two steps: give all of it, each time.",
    parameters={
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "maxItems": MOST_ITEMS,
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "state": {"type": "string", "enum": list(MARKS)},
                    },
                    "required": ["text", "state"],
                },
            },
        },
        "required": ["items"],
    },
    effect="none",
    safety="L0",
    category="meta",
    trusted=True,  # beyond what the model has before it already
)


def fault_of(args: dict[str, Any]) -> str:
    """What is wrong with the arguments of such a call; empty if nothing is."""
    return fault_in(TODO_LIST, TodoArguments, args)


def told(items: Sequence[TodoItem]) -> str:
    """What the model reads of a list that it has set."""
    counts = Counter[str](item.state for item in items)
    return "The list is kept: " + (", ".join(f"{counts[state]} {state}" for state in MARKS if counts[state]) or "empty")


def carried(items: Sequence[TodoItem]) -> str:
    """What the model reads of an earlier turn's list; empty where nothing of it is left to do."""
    if all(item.state in CLOSED for item in items):
        return ""
    return "\n".join((HEADING, *(f"{MARKS[item.state]} {' '.join(item.text.split())}" for item in items), "]"))
