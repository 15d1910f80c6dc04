"""What a turn is at, told by the calls that it has made; and which tools the model is shown then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from local.agents.answering.own_schemas import SCHEMAS
from local.agents.answering.shown_tools import CORE, ToolRoom, phase_after, shown
from local.agents.answering.work_phase import CATEGORIES, READS_AGAIN, WorkPhase, phase_of
from local.models.chat import ToolCall
from local.models.tool_selection import Tier
from local.protocol.messages import (
    AgentTransition,
    AnswerOptions,
    ErrorInfo,
    ResponseGeneration,
    ToolCallRecord,
    ToolSchema,
)
from local.protocol.safety import Category
from local.protocol.turn_tools import PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH
from tests.agents.test_gatekeeper import PenTool

RESEARCHING, EDITING, VERIFYING, COMPLETING = WorkPhase
KINDS: dict[str, Category] = {
    "read_file": "read", "search_code": "search", "write_file": "write", "shell_exec": "shell", "git_commit": "git",
    "web_search": "web", "dice": "data", "ast_query": "search", "search_memory": "memory",
}  # fmt: skip


def schema(name: str, description: str = "") -> ToolSchema:
    return ToolSchema(tool=name, description=description, parameters={}, category=KINDS[name])


TOOLS = {name: schema(name) for name in KINDS}
ROOM = ToolRoom(32, 1_000_000, lambda schema: 1)


def record(tool: str, result: str | None = "done", **args: Any) -> ToolCallRecord:
    error = None if result is not None else ErrorInfo(kind="denied", message="")
    return ToolCallRecord(call_id=f"q:0:{tool}", tool=tool, args=args, result=result, error=error)


def told(
    records: Sequence[ToolCallRecord] = (),
    question: str = "",
    tier: Tier = Tier.MID,
    room: ToolRoom = ROOM,
    **more: Any,
) -> list[str]:
    tools = {**TOOLS, TODO_LIST: SCHEMAS[TODO_LIST], **more}
    return shown(tools, records, question, phase_after(records, tools), tier, room)


@pytest.mark.parametrize(
    ("made", "phase"),
    [
        ([], RESEARCHING),
        (["read", "search", "web", "data"], RESEARCHING),
        (["shell", "git"], RESEARCHING),
        (["read", "write"], EDITING),
        (["write", "read", "read", "meta"], EDITING),
        (["write", "shell"], VERIFYING),
        (["write", "git", "read"], VERIFYING),
        (["write", "shell", "write"], EDITING),
        (["write", *["read"] * READS_AGAIN], RESEARCHING),
        (["write", *["read"] * READS_AGAIN, "shell"], VERIFYING),
    ],
)
def test_the_calls_made_so_far_say_what_a_turn_is_at(made: list[Category], phase: WorkPhase) -> None:
    assert phase_of(made, all_done=False) is phase
    assert phase_of(made, all_done=True) is COMPLETING


def test_each_phase_has_its_kinds_of_tools_and_reading_and_the_conversation_are_among_them_always() -> None:
    assert set(CATEGORIES) == set(WorkPhase)
    assert CATEGORIES[RESEARCHING] == set(get_args(Category))
    assert CATEGORIES[EDITING] == CATEGORIES[VERIFYING] == CATEGORIES[RESEARCHING] - {"web", "data"}
    assert CATEGORIES[COMPLETING] == {"read", "shell", "git", "meta"}


def test_a_turn_completes_when_nothing_is_left_of_what_it_has_set_itself() -> None:
    done, left = ({"items": [{"text": "x", "state": state}]} for state in ("done", "open"))
    plan = record(PROPOSE_PLAN, title="T", steps=["x"])
    tools = {**TOOLS, **SCHEMAS}
    for records, phase in (
        ([record(TODO_LIST, **done)], COMPLETING),
        ([record(TODO_LIST, **done), record(TODO_LIST, **left)], RESEARCHING),
        ([plan, record("write_file")], EDITING),
        ([plan, record("write_file"), record(PLAN_STEP, step=1, state="done")], COMPLETING),
        ([record(PROPOSE_PLAN, None, title="T", steps=["x"])], RESEARCHING),
        ([record("write_file", None)], RESEARCHING),
    ):
        assert phase_after(records, tools) is phase, records


def test_arguments_that_are_nested_too_deep_for_json_are_no_trouble() -> None:
    nested: dict[str, Any] = {}
    for _ in range(300):
        nested = {"x": nested}
    assert phase_after([record("write_file", **nested)], TOOLS) is EDITING


def test_while_it_edits_the_web_is_not_shown_but_for_what_is_called_or_named_and_can_be_found() -> None:
    everything = [*TOOLS, TODO_LIST]
    assert told() == everything
    edits = [record("write_file")]
    assert told(edits) == [name for name in everything if name not in ("web_search", "dice")] + [TOOL_SEARCH]
    assert "dice" in told(edits, "Then roll the dice")
    assert "web_search" in told([record("web_search"), *edits])
    assert "web_search" in told([*edits, record(TOOL_SEARCH, query="search the web")])


def test_a_weak_model_is_shown_the_core_and_what_the_question_names() -> None:
    core = [name for name in TOOLS if name in CORE]
    assert told(tier=Tier.WEAK) == [*core, TODO_LIST, TOOL_SEARCH]
    assert told(tier=Tier.WEAK, question="Commit it with git") == [
        name for name in (*TOOLS, TODO_LIST, TOOL_SEARCH) if name in (*core, "git_commit", TODO_LIST, TOOL_SEARCH)
    ]


def test_where_there_are_more_tools_than_fit_the_rest_is_found_by_a_search() -> None:
    few = ToolRoom(4, 1_000_000, lambda schema: 1)
    assert told(room=few) == ["read_file", "search_code", TODO_LIST, TOOL_SEARCH]
    assert told(room=few, question="Roll the dice") == ["read_file", "dice", TODO_LIST, TOOL_SEARCH]
    narrow = ToolRoom(32, 30, lambda schema: 10)
    assert told(room=narrow) == ["read_file", "search_code", TODO_LIST, TOOL_SEARCH]
    assert told(room=ToolRoom(10, 10, lambda schema: 1)) == [*TOOLS, TODO_LIST]


async def test_what_is_found_is_shown_from_then_on_and_what_is_not_shown_is_made_all_the_same(
    stage: Any, dice: Any, tmp_path: Path
) -> None:
    await stage.generator(max_offered_tools=2)
    await stage.tool(dice)
    await stage.tool(PenTool(tmp_path))
    await stage.door.bus.publish(ToolSchema(tool="odd", description="Odd.", parameters={}, safety="L0"))
    await stage.door.hears(ToolSchema, 3)
    for call in (ToolCall(TOOL_SEARCH, {"query": "write it into a file"}), ToolCall("dice", {"sides": 6})):
        stage.model.will_say(call)
    stage.model.will_say("A 3.")
    await stage.door.ask("Be lucky!", "q1", session="s", options=AnswerOptions(deny=(TODO_LIST,)))
    response = await stage.door.hears(ResponseGeneration, query_id="q1")
    assert [asked.tools for asked in stage.model.asked] == [
        ["dice", TOOL_SEARCH],
        ["pen", TOOL_SEARCH],
        ["dice", TOOL_SEARCH],
    ]
    found, rolled = response.tool_calls
    assert found.result == "You can call these now:\n- pen: Write a file." and not found.tainted
    assert rolled.error is None
    assert {change.phase for change in stage.door.of(AgentTransition, to_state="PUBLISHING")} == {"researching"}


async def test_what_a_turn_is_at_is_told_with_its_changes_of_state(stage: Any, tmp_path: Path) -> None:
    await stage.generator()
    await stage.gatekeeper(mode="acceptEdits")
    await stage.tool(PenTool(tmp_path))
    stage.model.will_say(ToolCall("pen", {"path": "a", "content": "b"}))
    stage.model.will_say(ToolCall(TODO_LIST, {"items": [{"text": "write", "state": "done"}]}))
    stage.model.will_say("Done.")
    await stage.door.ask("Write!", "q1", session="s")
    await stage.door.hears(ResponseGeneration, query_id="q1")
    await stage.door.hears(AgentTransition, action="PUBLISHED")
    phases = [change.phase for change in stage.door.of(AgentTransition) if change.phase]
    assert list(dict.fromkeys(phases)) == ["researching", "editing", "completing"]
