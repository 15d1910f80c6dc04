"""A model's to-do list at the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from local.apps.console.query_progress import QueryProgress
from local.apps.console.renderer import PlainRenderer
from local.apps.console.todo_lines import todo_lines
from local.apps.system_client import StreamEvent

ITEMS = [{"text": "write\x1b[2J it", "state": "done"}, {"text": "test it", "state": "doing"}, {"text": "ship it"}]
LINES = [r"[x] write\x1b[2J it", "[>] test it", "[ ] ship it"]


def call(**fields: Any) -> dict[str, Any]:
    return {"call_id": "q:0:0", "tool": "todo", "args": {"items": ITEMS}, "result": "The list is kept", **fields}


def test_each_item_is_a_line_with_its_state_and_without_control_characters() -> None:
    assert todo_lines(call()) == LINES


@pytest.mark.parametrize("fields", [{"tool": "dice"}, {"result": None}, {"args": {"items": "x"}}, {"args": None}])
def test_any_other_call_and_one_that_failed_has_no_list(fields: dict[str, Any]) -> None:
    assert todo_lines(call(**fields)) == []


def test_a_list_that_was_set_is_shown_in_place_of_its_call() -> None:
    noted, progress = list[str](), QueryProgress()
    renderer = PlainRenderer(noted.append, noted.append)
    for name, data in (("tool_call", call(result=None)), ("tool_result", call())):
        event = StreamEvent(name, data, "1")
        progress.receive(event)
        renderer.receive(event, progress)
    assert "".join(noted).splitlines() == ["to do:", *(f"  {line}" for line in LINES)]
