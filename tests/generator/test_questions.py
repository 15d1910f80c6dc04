"""What a model asks its user, the plan that it has approved, and the list that it keeps: whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_stage.pen import MILK, PenTool, decide

from local.bus.envelope import Trace
from local.bus.messages import (
    MOST_CHARACTERS,
    MOST_ITEMS,
    AgentTransition,
    AnswerOptions,
    ParticipantStatus,
    PlanCreated,
    PlanStep,
    ResponseGeneration,
    TodoItem,
    TodoUpdated,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    latest_list,
    latest_plan,
)
from local.bus.vocabulary import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST
from local.core.errors import ToolError
from local.generator.builtin_tools import FAULTS, MOST_OPTIONS, carried, fault_of_clarification, list_result
from local.generator.context import Exchange, PromptParts
from local.generator.permissions import PermissionClient
from local.generator.steps import TurnInput, TurnLimits
from local.generator.taint_policy import Provenance
from local.models.chat import ToolCall
from local.permissions.messages import (
    ApprovalDecision,
    ApprovalRequest,
    GrantRequest,
    GrantResult,
    PermissionDecision,
    PermissionRequest,
    PermissionResult,
)
from local.queries.view import QueryView

SECONDS = 90.0
QUESTION = {"question": "Which colour?", "options": ["red", "blue"]}
PLAN = {"title": "A shopping list", "steps": ["write it", "read it"]}
OTHER = {"title": "A shopping list", "steps": ["write it", "send it"]}
PROPOSE, WRITE = ToolCall(PROPOSE_PLAN, PLAN), ToolCall("pen", MILK)
NOT_BEFORE = "pen was not run: only what reads is done before a plan is approved; propose one"


@pytest.fixture
async def study(stage: Any, tmp_path: Path) -> AsyncIterator[Any]:
    """A stage with a generator, a gatekeeper and a pen."""
    await stage.generator()
    await stage.gatekeeper()
    stage.pen = PenTool(tmp_path)
    await stage.tool(stage.pen)
    yield stage


async def ask(stage: Any, *said: Any, query_id: str = "q1", session: str = "s", **options: Any) -> None:
    for call in said:
        stage.model.will_say(call)
    stage.model.will_say("Done.")
    wanted = AnswerOptions.model_validate(options) if options else None
    await stage.frontend.ask("Write a list!", query_id, session=session, options=wanted)


async def calls(stage: Any, query_id: str = "q1") -> tuple[ToolCallRecord, ...]:
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    return response.tool_calls


def message(call: ToolCallRecord) -> str:
    assert call.error is not None
    return call.error.message


# Questions


async def test_the_model_reads_what_its_user_has_said(study: Any) -> None:
    await ask(study, ToolCall(CLARIFICATION, QUESTION))
    asked = await study.frontend.hears(ApprovalRequest)
    assert (asked.tool, asked.args, asked.level, asked.category) == (CLARIFICATION, QUESTION, "L0", "meta")
    await study.frontend.hears(AgentTransition, to_state="WAITING_FOR_APPROVAL")
    assert study.frontend.of(ToolRequest) == []
    for answer in (None, " \n"):
        refused = await decide(study, "q1:0:0", answer=answer)
        assert refused.error is not None and refused.error.kind == "invalid"
    assert (await decide(study, "q1:0:0", answer="red", of_user="somebody")).error is not None
    assert (await decide(study, "q1:0:0", "allow_session", answer=" blue \n", of_user="user")).error is None
    [call] = await calls(study)
    assert (call.result, call.error, call.tainted) == ("blue", None, False)
    assert (await study.frontend.hears(ToolResult, query_id="q1")).result == "blue"
    decision = await study.frontend.hears(ApprovalDecision)
    assert (decision.answer, decision.decision) == ("blue", "allow")  # of one answer nothing is remembered
    remembered = await study.frontend.bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)
    assert remembered.remembered == ()


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_small_model_can_ask_its_user_where_a_person_wants_that(stage: Any, is_there: bool) -> None:
    stage.model.parameters = 1.5
    await stage.generator()
    if is_there:
        await stage.gatekeeper()
        await stage.tool(PenTool(stage.database.parent))
    offered = []
    asked = (("What is it?", "s"), ("Ask me which colour I like.", "s"), ("Frag mich etwas!", "t"))
    for number, (query, session) in enumerate(asked):
        stage.model.will_say("Done.", to=query)
        await stage.frontend.ask(query, f"q{number}", session=session)
        await stage.frontend.hears(ResponseGeneration, query_id=f"q{number}")
        offered.append(CLARIFICATION in stage.model.asked[-1].tools)
    assert offered == [False, is_there, is_there]


async def test_a_user_who_says_nothing_is_no_failure_of_the_turn(study: Any) -> None:
    await ask(study, ToolCall(CLARIFICATION, {"question": ""}), ToolCall(CLARIFICATION, QUESTION))
    await decide(study, "q1:2:0", "deny")
    faulty, unanswered = await calls(study)
    assert faulty.error is not None and faulty.error.kind == "bad_arguments"
    assert unanswered.error is not None and unanswered.error.kind == "unanswered"
    assert message(unanswered) == "the user gave no answer; go on without an answer, and say what you assume"
    assert len(study.frontend.of(ApprovalRequest)) == 1


async def test_silence_is_no_answer_and_denies_a_plan(stage: Any, tmp_path: Path) -> None:
    await stage.generator()
    await stage.gatekeeper(answer_seconds=0.05)
    await stage.tool(PenTool(tmp_path))
    await ask(stage, ToolCall(CLARIFICATION, QUESTION), PROPOSE, WRITE, mode="plan")
    unanswered, proposed, written = await calls(stage)
    assert message(unanswered).startswith("nobody answered within 0.05 s; go on")
    assert "nobody answered within 0.05 s" in message(proposed)
    assert message(written) == NOT_BEFORE


async def test_an_open_question_is_waited_for_as_long_as_it_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.generator.permissions.ANSWER_SECONDS", 0.02)
    client, decided = PermissionClient(), asyncio.Event()
    status = {"name": "gatekeeper", "kind": "service", "pid": 1, "instance": "i", "state": "ready"}
    client.status(ParticipantStatus.model_validate(status))
    whose = {"query_id": "q", "call_id": "q:0:0", "tool": "pen", "args": {}}

    class OneBus:
        async def request(self, *_: object) -> GrantResult:
            await decided.wait()
            return GrantResult(query_id="q", call_id="q:0:0", decision=PermissionDecision.ALLOW)

    bus: Any = OneBus()
    waiting = asyncio.create_task(client.request(bus, GrantRequest(**whose), Trace("q")))
    await asyncio.sleep(0)
    client.asked(ApprovalRequest(**whose, session_id="s", level="L1", asked_at=0.0, expires_at=time.time() + 100))
    await asyncio.sleep(0.04)
    decided.set()
    assert (await waiting).decision is PermissionDecision.ALLOW
    decided.clear()
    with pytest.raises(ToolError, match="no gatekeeper runs"):  # nobody is asked, and nobody answers
        await client.request(bus, GrantRequest(**whose), Trace("q"))


@pytest.mark.parametrize("answered", [True, pytest.param(False, marks=pytest.mark.thorough)])
async def test_a_turn_that_another_process_goes_on_with_asks_nothing_again(study: Any, answered: bool) -> None:
    await ask(study, ToolCall(CLARIFICATION, QUESTION))
    await study.frontend.hears(ApprovalRequest)
    await study._generator.kill()
    if answered:
        await decide(study, "q1:0:0", answer="blue")
    await study.generator()
    if not answered:
        await decide(study, "q1:0:0", answer="blue")
    assert [call.result for call in await calls(study)] == ["blue"]
    assert len(await study.on_record("q1", ApprovalRequest)) == 1


async def test_questions_and_plans_are_offered_where_somebody_is_there_and_not_elsewhere(study: Any) -> None:
    await ask(study)
    await calls(study)
    assert CLARIFICATION in study.model.asked[-1].tools
    gate = study._generator.participant._gate
    question = TurnInput(query_id="q", respondent_id="A", query="", prelude=(), think=False, limits=TurnLimits())
    assert gate.may_ask(question) and not gate.may_ask(replace(question, respondent_id="B"))
    await ask(study, ToolCall(CLARIFICATION, QUESTION), PROPOSE, query_id="q2", session="t", mode="dontAsk")
    assert [call.error and call.error.kind for call in await calls(study, "q2")] == ["unknown_tool"] * 2
    assert not {CLARIFICATION, PROPOSE_PLAN} & set(study.model.asked[1].tools)
    assert study.frontend.of(ApprovalRequest) == []


async def test_without_a_gatekeeper_or_where_the_owner_wants_no_questions_none_is_offered(stage: Any) -> None:
    await stage.generator()
    await ask(stage)
    await calls(stage)
    await stage.gatekeeper(mode="dontAsk")
    for query_id, options in (("q2", {}), ("q3", {"mode": "default"})):
        await ask(stage, query_id=query_id, session=query_id, **options)
        await calls(stage, query_id)
    assert [CLARIFICATION in asked.tools for asked in stage.model.asked] == [False, False, True]


@pytest.mark.parametrize(
    "args",
    [
        {"question": " "},
        {"question": "x" * 2001},
        {"question": "q", "options": [""]},
        {"question": "q", "options": ["x"] * (MOST_OPTIONS + 1)},
        {"question": "q", "more": 1},
    ],
)
def test_arguments_that_make_no_question_are_a_fault_that_names_what_is_expected(args: dict[str, Any]) -> None:
    assert fault_of_clarification(args).endswith("Expected: question, options.")
    assert fault_of_clarification(QUESTION) == ""


@pytest.mark.parametrize(
    ("answer", "is_given"),
    [("Take http://mine.example/a", True), (" HTTP://evil.example/?code=1", False)],
)
def test_an_address_in_the_users_own_answer_is_given_by_the_user_and_one_in_an_option_is_not(
    answer: str, is_given: bool
) -> None:
    args = {"question": "Where?", "options": [" http://evil.example/?code=1 ", "nowhere"]}
    call = ToolCallRecord(call_id="q:0:0", tool=CLARIFICATION, args=args, result=answer)
    provenance = Provenance.of(["Look it up"], (), [call])
    assert (provenance.address(answer.split()[-1]) is not None) is is_given
    assert (answer in provenance.spoken) is is_given


# Plans


async def test_the_whole_plan_is_shown_and_what_is_approved_is_done_call_by_call(study: Any) -> None:
    await ask(study, PROPOSE, WRITE, mode="plan")
    asked = await study.frontend.hears(ApprovalRequest, call_id="q1:0:0")
    assert (asked.tool, asked.args, asked.level, asked.category) == (PROPOSE_PLAN, PLAN, "L0", "meta")
    created = await study.frontend.hears(PlanCreated)
    assert (created.call_id, created.title, created.steps) == ("q1:0:0", PLAN["title"], tuple(PLAN["steps"]))
    await study.frontend.hears(AgentTransition, to_state="WAITING_FOR_APPROVAL")
    assert (await decide(study, "q1:0:0", "allow_session", answer=" oat milk, please ")).error is None
    refused = await decide(study, "q1:2:0", mode="acceptEdits")
    assert refused.error is not None and refused.error.kind == "forbidden"  # a call is approved without a mode
    assert (await decide(study, "q1:2:0")).error is None
    proposed, written = await calls(study)
    assert proposed.result is not None and "has approved the plan. What changes something still asks" in proposed.result
    assert proposed.result.endswith("The user adds: oat milk, please") and not proposed.tainted
    assert (written.result, study.pen.written) == ("Written.", ["milk"])
    decision = await study.frontend.hears(ApprovalDecision, call_id="q1:0:0")
    assert (decision.answer, decision.decision) == ("oat milk, please", "allow")
    remembered = await study.frontend.bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)
    assert remembered.remembered == ()


async def test_before_a_plan_is_approved_nothing_but_reading_is_done_and_a_denied_one_runs_nothing(study: Any) -> None:
    await ask(study, WRITE, PROPOSE, WRITE, mode="plan")
    await decide(study, "q1:2:0", "deny", answer="not on paper")
    first, proposed, written = await calls(study)
    assert (message(first), message(written), study.pen.written) == (NOT_BEFORE, NOT_BEFORE, [])
    assert proposed.error is not None and proposed.error.kind == "denied"
    assert "the user said no: not on paper" in message(proposed)
    assert len(study.frontend.of(ApprovalRequest)) == 1


async def test_a_changed_plan_asks_again_and_an_approval_holds_for_its_turn_and_plan_alone(study: Any) -> None:
    await ask(study, PROPOSE, mode="plan")
    await decide(study, "q1:0:0", mode="acceptEdits")
    await calls(study)
    await ask(study, WRITE, PROPOSE, ToolCall(PROPOSE_PLAN, OTHER), WRITE, query_id="q2", mode="plan")
    await decide(study, "q2:2:0")
    await decide(study, "q2:4:0", "deny")
    before, *_, after = await calls(study, "q2")
    assert (message(before), message(after), study.pen.written) == (NOT_BEFORE, NOT_BEFORE, [])
    assert [asked.args for asked in study.frontend.of(ApprovalRequest)] == [PLAN, PLAN, OTHER]


@pytest.mark.parametrize("mode", ["plan", None])
async def test_the_owner_may_approve_that_edits_need_no_more_approval(study: Any, mode: str | None) -> None:
    await ask(study, PROPOSE, WRITE, **({"mode": mode} if mode else {}))
    await decide(study, "q1:0:0", mode="acceptEdits")
    proposed, written = await calls(study)
    assert proposed.result is not None and "What can be undone is done without asking" in proposed.result
    assert written.result == "Written."
    assert len(study.frontend.of(ApprovalRequest)) == 1
    assert (await study.frontend.hears(ApprovalDecision)).mode == "acceptEdits"


@pytest.mark.thorough
async def test_a_user_does_not_decide_that_edits_need_no_approval(stage: Any, tmp_path: Path) -> None:
    await stage.generator()
    await stage.gatekeeper(users_may_approve=True)
    await stage.tool(PenTool(tmp_path))
    await ask(stage, PROPOSE, mode="plan")
    for fields, kind in (({"mode": "acceptEdits"}, "forbidden"), ({}, None)):
        result = await decide(stage, "q1:0:0", of_user="user", **fields)
        assert (result.error and result.error.kind) == kind
    assert (await calls(stage))[0].result


async def test_a_forged_approval_on_the_bus_runs_nothing(study: Any) -> None:
    await ask(study, PROPOSE, WRITE, mode="plan")
    await study.frontend.hears(ApprovalRequest)
    forged = ApprovalDecision(
        query_id="q1", call_id="q1:0:0", session_id="s", tool=PROPOSE_PLAN, decision="allow", by="page",
        mode="acceptEdits", decided_at=1.0,
    )  # fmt: skip
    await study.frontend.bus.publish(forged, Trace("q1", None, "s", "user"))
    asking = GrantRequest(query_id="q1", call_id="q1:2:0", tool="pen", args=MILK, mode="plan")
    result = await study.frontend.bus.request(asking, GrantResult, SECONDS)
    assert (result.decision, result.grant) == ("deny", None)
    forged_call = ToolRequest(query_id="q1", call_id="q1:2:0", tool="pen", args=MILK)
    done = await study.frontend.bus.request(forged_call, ToolResult, SECONDS)
    assert done.error is not None and done.error.kind == "not_granted"
    await decide(study, "q1:0:0", "deny")
    _, written = await calls(study)
    assert (message(written), study.pen.written) == (NOT_BEFORE, [])


async def test_a_turn_or_gatekeeper_that_is_killed_asks_nothing_again_and_goes_by_what_was_decided(study: Any) -> None:
    await ask(study, PROPOSE, WRITE, mode="plan")
    await study.frontend.hears(ApprovalRequest)
    await study._generator.kill()
    await decide(study, "q1:0:0", mode="acceptEdits")
    keeper = next(served for served in study._served if served.participant.name == "gatekeeper")
    await keeper.kill()
    await study.gatekeeper()
    await study.generator()
    proposed, written = await calls(study)
    assert proposed.result is not None and written.result == "Written."
    assert study.pen.written == ["milk"]
    assert len(await study.on_record("q1", ApprovalRequest)) == 1
    assert len(await study.on_record("q1", PlanCreated)) == 1


async def test_nobody_is_shown_what_is_no_plan_neither_by_the_model_nor_by_a_generator_that_went_wrong(
    study: Any,
) -> None:
    for number, args in enumerate(({}, {"title": "x", "steps": []}, {**PLAN, "hidden": "and more"}, {"title": "x"})):
        assert FAULTS[PROPOSE_PLAN](args).endswith("Expected: title, steps.")
        asking = GrantRequest(query_id="q", call_id=f"q:{number}:0", tool=PROPOSE_PLAN, args=args, mode="plan")
        result = await study.frontend.bus.request(asking, GrantResult, SECONDS)
        assert (result.decision, study.frontend.of(ApprovalRequest)) == ("deny", [])
    asking = GrantRequest(query_id="q", call_id="q:9:0", tool=PROPOSE_PLAN, args=PLAN, mode="dontAsk")
    assert (await study.frontend.bus.request(asking, GrantResult, SECONDS)).decision == "deny"


async def test_each_step_that_is_reported_is_heard_and_who_looks_sees_how_far_it_is(study: Any) -> None:
    steps = [{"step": 1, "state": "doing"}, {"step": 1, "state": "done"}, {"step": 3, "state": "doing"}]
    await ask(study, PROPOSE, *(ToolCall(PLAN_STEP, args) for args in steps), mode="plan")
    await decide(study, "q1:0:0")
    made = await calls(study)
    assert len({tuple(asked.tools) for asked in study.model.asked}) == 1
    assert [call.result for call in made[1:]] == ["Steps left: 1, 2", "Steps left: 2", None]
    assert message(made[3]) == "plan_step: the plan has 2 steps"
    told = [(step.call_id, step.index, step.state) for step in study.frontend.of(PlanStep)]
    assert told == [("q1:0:0", 0, "doing"), ("q1:0:0", 0, "done")]
    view = QueryView("q1")
    [response], [envelope] = study.frontend.of(ResponseGeneration), study.frontend.envelopes(ResponseGeneration)
    view.receive(response, envelope)
    plan = view.as_json()["plan"]
    assert (plan.status, [step.state for step in plan.steps]) == ("approved", ["done", "open"])


def test_the_plan_is_the_one_that_was_proposed_last() -> None:
    first = {"call_id": "q:0:0", "tool": PROPOSE_PLAN, "args": PLAN, "result": "approved"}
    step = {"call_id": "q:1:0", "tool": PLAN_STEP, "args": {"step": 1, "state": "done"}, "result": "…"}
    second = {"call_id": "q:2:0", "tool": PROPOSE_PLAN, "args": OTHER}
    assert latest_plan([]) is None
    approved, proposed = latest_plan([first, step]), latest_plan([first, step, second])
    assert approved is not None and approved.steps[0].state == "done"
    assert proposed is not None and (proposed.status, proposed.steps[0].state) == ("proposed", "open")
    denied = latest_plan([{**second, "error": {"kind": "denied", "message": ""}}, step])
    assert denied is not None and denied.status == "denied"


# The to-do list

LIST = [{"text": "write it", "state": "doing"}, {"text": "test it", "state": "open"}]
DONE = [{"text": "write it", "state": "done"}, {"text": "test it", "state": "dropped"}]


@pytest.fixture
async def desk(stage: Any, tmp_path: Path) -> Any:
    """A stage with a generator and a tool that changes files."""
    await stage.generator()
    await stage.tool(PenTool(tmp_path))
    return stage


async def keep(stage: Any, query_id: str, *lists: Any, **fields: Any) -> ResponseGeneration:
    """A turn in which the model sets these lists, one after the other."""
    await ask(stage, *(ToolCall(TODO_LIST, {"items": items}) for items in lists), query_id=query_id, **fields)
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    return response


async def test_each_list_that_the_model_sets_is_published_and_the_next_turn_has_it_in_its_history(desk: Any) -> None:
    response = await keep(desk, "q1", DONE, LIST)
    heard = [tuple(item.state for item in update.items) for update in desk.frontend.of(TodoUpdated, query_id="q1")]
    assert heard == [("done", "dropped"), ("doing", "open")]
    assert [call.result for call in response.tool_calls] == [
        "The list is kept: 1 done, 1 dropped", "The list is kept: 1 open, 1 doing",
    ]  # fmt: skip
    assert not response.tainted and not any(call.tainted for call in response.tool_calls)
    assert [request.tool for request in desk.frontend.of(ToolRequest)] == [TODO_LIST, TODO_LIST]
    await desk.end_of("q1")  # what was said before its end is on record with it
    assert len(await desk.on_record("q1", TodoUpdated)) == 2
    for query_id, session in (("q2", "s"), ("q3", "other")):
        await keep(desk, query_id, session=session)
    *_, second, third = desk.model.asked
    assert "[Your to-do list" not in str(second.sent)  # the call that has set it says what is left
    lists = [call["function"]["arguments"]["items"] for each in second.sent for call in each.get("tool_calls", ())]
    assert lists == [DONE, LIST]
    assert "write it" not in str(third.sent)
    [call] = (await keep(desk, "q4", [{"text": "x", "state": "finished"}])).tool_calls
    assert call.error is not None and call.error.kind == "bad_arguments" and "items.0.state" in call.error.message
    assert desk.frontend.of(TodoUpdated, query_id="q4") == []


async def test_who_looks_at_the_query_sees_the_list_while_it_runs_and_afterwards(desk: Any) -> None:
    view, kinds = QueryView("q1"), list[str]()
    await keep(desk, "q1", LIST)
    for kind in (ToolRequest, ToolResult, TodoUpdated, ResponseGeneration):
        if kind is ResponseGeneration:
            assert [dict(item) for item in view.partial_answer()["todo"]] == LIST
        [message], [envelope] = desk.frontend.of(kind, query_id="q1"), desk.frontend.envelopes(kind, query_id="q1")
        kinds += [news.kind for news in view.receive(message, envelope) or ()]
    assert kinds == ["tool_call", "tool_result", "todo", "response"]
    assert [dict(item) for item in view.as_json()["todo"]] == LIST


def test_what_is_left_of_a_list_is_told_where_the_call_that_has_set_it_is_not_in_the_prompt_any_more() -> None:
    call = {"id": "q1:0:0", "function": {"name": TODO_LIST, "arguments": {"items": LIST}}}
    calling = {"role": "assistant", "content": "", "tool_calls": [call]}
    parts = PromptParts((), {"role": "user", "content": "Go on"}).reminded("[Your to-do list: write it]")
    assert parts.block_items([Exchange(1, ({"role": "user", "content": "Make it"}, calling))]) == ()
    assert [item.text for item in parts.block_items([])] == ["[Your to-do list: write it]"]
    assert carried([TodoItem(text="one\n] two")]).splitlines()[1:] == ["[ ] one ] two", "]"]
    assert (list_result([]), carried([TodoItem(text="x", state="done")])) == ("The list is kept: empty", "")
    made = ToolCallRecord(call_id="q:0:0", tool=TODO_LIST, args={"items": LIST}, result="The list is kept: 1 open")
    assert Provenance.of(["Make it"], (), [made]).private == ()  # it is nobody's secret


@pytest.mark.thorough
async def test_a_turn_that_another_process_goes_on_with_has_its_list(desk: Any) -> None:
    desk._deadly, desk._passes = "turn.step_stored", 2  # after the call and its result
    desk.model.will_say(ToolCall(TODO_LIST, {"items": LIST}))
    await desk.frontend.ask("Make a program", "q1", session="s")
    await desk._generator.dead()
    desk.model.will_say("Done.")
    await desk.generator()
    response = await desk.frontend.hears(ResponseGeneration, query_id="q1")
    assert [dict(item) for item in latest_list(call.model_dump() for call in response.tool_calls)] == LIST
    assert desk.model.asked[-1].messages[-1]["content"] == "The list is kept: 1 open, 1 doing"
    assert len(desk.frontend.of(TodoUpdated)) == 1


async def test_the_list_is_offered_beside_tools_that_change_something_and_not_else(
    stage: Any, dice: Any, tmp_path: Path
) -> None:
    await stage.generator()
    await stage.tool(dice)
    await keep(stage, "q1")
    await stage.tool(PenTool(tmp_path))
    await keep(stage, "q2")
    await keep(stage, "q3", deny=(TODO_LIST,))
    assert [TODO_LIST in asked.tools for asked in stage.model.asked] == [False, True, False]


@pytest.mark.parametrize(
    "items",
    [
        "write it",
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
