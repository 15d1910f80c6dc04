"""A model's to-do list at the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from local.cli.client import StreamEvent
from local.cli.renderer import PlainRenderer, QueryProgress, plan_lines, todo_lines

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


PLAN = {"call_id": "q:0:0", "tool": "propose_plan", "args": {"title": "A\x1b list", "steps": ["write", "read"]}}
STEP = {"call_id": "q:1:0", "tool": "plan_step", "args": {"step": 1, "state": "done"}, "result": "Steps left: 2"}


def test_a_plan_is_shown_as_it_stands_once_it_is_approved_and_at_each_step() -> None:
    approved = {**PLAN, "result": "The user has approved the plan."}
    assert plan_lines([approved], approved) == [r"plan: A\x1b list", "  [ ] 1. write", "  [ ] 2. read"]
    assert plan_lines([approved, STEP], STEP)[1:] == ["  [x] 1. write", "  [ ] 2. read"]
    assert plan_lines([PLAN], PLAN) == plan_lines([STEP], STEP) == plan_lines([approved], call()) == []
