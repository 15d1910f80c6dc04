"""What a turn is at, told by the calls that it has made; and which tools the model is shown then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_stage.pen import PenTool

from local.bus.message import ErrorInfo
from local.bus.messages import AgentTransition, ResponseGeneration, ToolCallRecord, ToolSchema
from local.bus.vocabulary import PLAN_STEP, PROPOSE_PLAN, TODO_LIST, Category
from local.generator.builtin_tools import SCHEMAS
from local.generator.tool_registry import READS_AGAIN, WorkPhase, phase_after, phase_of
from local.models.chat import ToolCall

RESEARCHING, EDITING, VERIFYING, COMPLETING = WorkPhase
KINDS: dict[str, Category] = {
    "read_file": "read", "search_code": "search", "write_file": "write", "shell_exec": "shell", "git_commit": "git",
    "web_search": "web", "dice": "data", "ast_query": "search", "search_memory": "memory",
}  # fmt: skip


def schema(name: str, description: str = "") -> ToolSchema:
    return ToolSchema(tool=name, description=description, parameters={}, category=KINDS[name])


TOOLS = {name: schema(name) for name in KINDS}


def record(tool: str, result: str | None = "done", **args: Any) -> ToolCallRecord:
    error = None if result is not None else ErrorInfo(kind="denied", message="")
    return ToolCallRecord(call_id=f"q:0:{tool}", tool=tool, args=args, result=result, error=error)


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


async def test_with_work_phases_a_model_that_edits_is_not_shown_the_web_and_without_them_the_list_stays(
    stage: Any, tmp_path: Path
) -> None:
    for settings, shown in (({}, True), ({"work_phases": True}, False)):
        served = await stage.generator(**settings)
        await stage.gatekeeper(mode="acceptEdits")
        await stage.tool(PenTool(tmp_path))
        await stage.frontend.bus.publish(
            ToolSchema(tool="web_search", description="S.", parameters={}, safety="L0", category="web")
        )
        await stage.frontend.until(lambda: any(schema.tool == "web_search" for schema in stage.frontend.of(ToolSchema)))
        stage.model.will_say(ToolCall("pen", {"path": "a", "content": str(shown)}))
        stage.model.will_say(ToolCall(TODO_LIST, {"items": [{"text": "write", "state": "done"}]}))
        stage.model.will_say("Done.")
        query_id = f"q{shown}"
        await stage.frontend.ask("Write!", query_id, session=query_id)
        await stage.frontend.hears(ResponseGeneration, query_id=query_id)
        first, then, _ = stage.model.asked[-3:]
        assert "web_search" in first.tools and ("web_search" in then.tools) is shown
        await stage.frontend.hears(AgentTransition, query_id=query_id, action="PUBLISHED")
        phases = [change.phase for change in stage.frontend.of(AgentTransition, query_id=query_id) if change.phase]
        assert list(dict.fromkeys(phases)) == ["researching", "editing", "completing"]
        await served.stop()
