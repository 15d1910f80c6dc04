"""A model keeps a list of what is to be done: everybody hears of it, and the next turn knows what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import (
    MOST_CHARACTERS,
    MOST_ITEMS,
    AnswerOptions,
    ResponseGeneration,
    TodoItem,
    TodoUpdated,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    latest_list,
)
from local.bus.vocabulary import TODO_LIST
from local.generator.builtin_tools import FAULTS, carried
from local.generator.builtin_tools import told_of_list as told
from local.generator.context import Exchange, PromptParts
from local.models.chat import ToolCall
from local.queries.view import QueryView
from local.taint.policy import Provenance
from tests.agents.test_gatekeeper import PenTool

LIST = [{"text": "write it", "state": "doing"}, {"text": "test it", "state": "open"}]
DONE = [{"text": "write it", "state": "done"}, {"text": "test it", "state": "dropped"}]


@pytest.fixture
async def study(stage: Any, tmp_path: Path) -> Any:
    """A stage with a generator and a tool that changes files."""
    await stage.generator()
    await stage.tool(PenTool(tmp_path))
    return stage


async def ask(stage: Any, query_id: str, *lists: Any, session: str = "s", **options: Any) -> ResponseGeneration:
    for items in lists:
        stage.model.will_say(ToolCall(TODO_LIST, {"items": items}))
    stage.model.will_say("Done.")
    wanted = AnswerOptions(**options) if options else None
    await stage.door.ask("Make a program", query_id, session=session, options=wanted)
    response: ResponseGeneration = await stage.door.hears(ResponseGeneration, query_id=query_id)
    return response


async def test_each_list_that_the_model_sets_is_told_and_the_model_reads_how_it_stands(study: Any) -> None:
    response = await ask(study, "q1", LIST, DONE)
    heard = [tuple(item.state for item in update.items) for update in study.door.of(TodoUpdated, query_id="q1")]
    assert heard == [("doing", "open"), ("done", "dropped")]
    assert [call.result for call in response.tool_calls] == [
        "The list is kept: 1 open, 1 doing", "The list is kept: 1 done, 1 dropped",
    ]  # fmt: skip
    assert not response.tainted and not any(call.tainted for call in response.tool_calls)
    assert [request.tool for request in study.door.of(ToolRequest)] == [TODO_LIST, TODO_LIST]
    await study.end_of("q1")  # what was said before its end is on record with it
    assert len(await study.on_record("q1", TodoUpdated)) == 2


async def test_who_looks_at_the_query_sees_the_list_while_it_runs_and_afterwards(study: Any) -> None:
    view, kinds = QueryView("q1"), list[str]()
    await ask(study, "q1", LIST)
    for kind in (ToolRequest, ToolResult, TodoUpdated, ResponseGeneration):
        if kind is ResponseGeneration:
            assert [dict(item) for item in view.said_so_far()["todo"]] == LIST
        [message], [envelope] = study.door.of(kind, query_id="q1"), study.door.envelopes(kind, query_id="q1")
        kinds += [news.kind for news in view.receive(message, envelope) or ()]
    assert kinds == ["tool_call", "tool_result", "todo", "response"]
    assert [dict(item) for item in view.as_json()["todo"]] == LIST


async def test_the_next_turn_of_the_conversation_has_the_list_in_its_history_and_no_other_one(study: Any) -> None:
    await ask(study, "q1", DONE, LIST)
    for query_id, session in (("q2", "s"), ("q3", "other")):
        await ask(study, query_id, session=session)
    *_, second, third = study.model.asked
    assert "[Your to-do list" not in str(second.sent)  # the call that has set it says what is left
    lists = [call["function"]["arguments"]["items"] for each in second.sent for call in each.get("tool_calls", ())]
    assert lists == [DONE, LIST]
    assert "write it" not in str(third.sent)


async def test_what_is_left_of_a_list_is_told_where_the_call_that_has_set_it_is_not_in_the_prompt_any_more() -> None:
    call = {"id": "q1:0:0", "function": {"name": TODO_LIST, "arguments": {"items": LIST}}}
    calling = {"role": "assistant", "content": "", "tool_calls": [call]}
    parts = PromptParts((), {"role": "user", "content": "Go on"}).reminded("[Your to-do list: write it]")
    assert parts.said([Exchange(1, ({"role": "user", "content": "Make it"}, calling))]) == ()
    assert [item.text for item in parts.said([])] == ["[Your to-do list: write it]"]


async def test_a_list_of_which_all_is_done_is_not_brought_up_again(study: Any) -> None:
    await ask(study, "q1", LIST, DONE)
    await ask(study, "q2")
    assert study.model.asked[-1].query == "Make a program"


async def test_nothing_is_left_of_the_list_of_a_conversation_that_was_deleted(study: Any) -> None:
    await ask(study, "q1", LIST)
    generator = study._generator.participant
    assert await generator._conversation.delete_session("s")
    await ask(study, "q2")
    assert study.model.asked[-1].query == "Make a program"


async def test_a_turn_that_another_process_goes_on_with_has_its_list(study: Any) -> None:
    study._deadly, study._passes = "turn.step_stored", 2  # after the call and its result
    study.model.will_say(ToolCall(TODO_LIST, {"items": LIST}))
    await study.door.ask("Make a program", "q1", session="s")
    await study._generator.dead()
    study.model.will_say("Done.")
    await study.generator()
    response = await study.door.hears(ResponseGeneration, query_id="q1")
    assert [dict(item) for item in latest_list(call.model_dump() for call in response.tool_calls)] == LIST
    assert study.model.asked[-1].messages[-1]["content"] == "The list is kept: 1 open, 1 doing"
    assert len(study.door.of(TodoUpdated)) == 1


async def test_the_tool_is_offered_beside_those_that_change_files_or_run_commands_and_not_else(
    stage: Any, dice: Any, tmp_path: Path
) -> None:
    await stage.generator()
    await stage.tool(dice)
    await ask(stage, "q1")
    await stage.tool(PenTool(tmp_path))
    await ask(stage, "q2")
    await ask(stage, "q3", deny=(TODO_LIST,))
    assert [TODO_LIST in asked.tools for asked in stage.model.asked] == [False, True, False]


@pytest.mark.parametrize(
    "items",
    [
        "write it",
        ["write it"],
        [{"state": "open"}],
        [{"text": " "}],
        [{"text": "x" * (MOST_CHARACTERS + 1)}],
        [{"text": "x", "state": "finished"}],
        [{"text": "x", "more": 1}],
        [{"text": "x"}] * (MOST_ITEMS + 1),
    ],
)
def test_what_is_no_list_is_a_fault_that_names_what_is_expected(items: Any) -> None:
    assert FAULTS[TODO_LIST]({"items": items}).endswith("Expected: items.")
    assert FAULTS[TODO_LIST]({"items": LIST}) == ""


async def test_the_model_reads_what_is_wrong_with_a_list_and_nobody_hears_of_it(study: Any) -> None:
    [call] = (await ask(study, "q1", [{"text": "x", "state": "finished"}])).tool_calls
    assert call.error is not None and call.error.kind == "bad_arguments" and "items.0.state" in call.error.message
    assert study.door.of(TodoUpdated) == []


def test_a_list_is_told_in_one_line_for_each_item_whatever_stands_in_it() -> None:
    assert carried([TodoItem(text="one\n] two")]).splitlines()[1:] == ["[ ] one ] two", "]"]
    assert told([]) == "The list is kept: empty"


def test_what_the_tool_answers_is_nobodys_secret() -> None:
    call = ToolCallRecord(call_id="q:0:0", tool=TODO_LIST, args={"items": LIST}, result="The list is kept: 1 open")
    assert Provenance.of(["Make it"], (), [call]).private == ()
