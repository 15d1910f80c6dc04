"""A plan is shown, approved and followed: before its approval nothing but reading is done, whatever dies meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import (
    AgentTransition,
    AnswerOptions,
    PlanCreated,
    PlanStep,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    latest_plan,
)
from local.bus.vocabulary import PLAN_STEP, PROPOSE_PLAN
from local.generator.builtin_tools import FAULTS
from local.models.chat import ToolCall
from local.permissions.messages import (
    ApprovalDecision,
    ApprovalRequest,
    GrantRequest,
    GrantResult,
    PermissionRequest,
    PermissionResult,
)
from local.queries.view import QueryView
from tests.agents.test_gatekeeper import PenTool

SECONDS = 20.0
PLAN = {"title": "A shopping list", "steps": ["write it", "read it"]}
OTHER = {"title": "A shopping list", "steps": ["write it", "send it"]}
MILK = {"path": "list.txt", "content": "milk"}
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


async def ask(stage: Any, *said: ToolCall, query_id: str = "q1", mode: str | None = "plan") -> None:
    for call in said:
        stage.model.will_say(call)
    stage.model.will_say("Done.")
    options = AnswerOptions.model_validate({"mode": mode}) if mode else None
    await stage.door.ask("Write a list!", query_id, session="s", options=options)


async def decide(stage: Any, call_id: str, decision: str = "allow", **fields: Any) -> PermissionResult:
    await stage.door.hears(ApprovalRequest, call_id=call_id)
    request = PermissionRequest.model_validate(
        {"verb": "decide", "call_id": call_id, "decision": decision, "by": "page", **fields}
    )
    result: PermissionResult = await stage.door.bus.request(request, PermissionResult, SECONDS)
    return result


async def calls(stage: Any, query_id: str = "q1") -> tuple[ToolCallRecord, ...]:
    response: ResponseGeneration = await stage.door.hears(ResponseGeneration, query_id=query_id)
    return response.tool_calls


def message(call: ToolCallRecord) -> str:
    assert call.error is not None
    return call.error.message


async def test_the_whole_plan_is_shown_and_what_is_approved_is_done_call_by_call(study: Any) -> None:
    await ask(study, PROPOSE, WRITE)
    asked = await study.door.hears(ApprovalRequest, call_id="q1:0:0")
    assert (asked.tool, asked.args, asked.level, asked.category) == (PROPOSE_PLAN, PLAN, "L0", "meta")
    created = await study.door.hears(PlanCreated)
    assert (created.call_id, created.title, created.steps) == ("q1:0:0", PLAN["title"], tuple(PLAN["steps"]))
    await study.door.hears(AgentTransition, to_state="WAITING_FOR_LEAVE")
    assert (await decide(study, "q1:0:0", answer=" oat milk, please ")).error is None
    assert (await decide(study, "q1:2:0")).error is None
    proposed, written = await calls(study)
    assert proposed.result is not None and "has approved the plan. What changes something still asks" in proposed.result
    assert proposed.result.endswith("The user adds: oat milk, please") and not proposed.tainted
    assert (written.result, study.pen.written) == ("Written.", ["milk"])
    assert (await study.door.hears(ApprovalDecision, call_id="q1:0:0")).answer == "oat milk, please"


async def test_before_a_plan_is_approved_nothing_but_reading_is_done_and_nobody_is_asked(study: Any) -> None:
    await ask(study, WRITE)
    [written] = await calls(study)
    assert (message(written), study.pen.written, study.door.of(ApprovalRequest)) == (NOT_BEFORE, [], [])


async def test_a_plan_that_is_denied_runs_nothing_and_the_model_reads_what_the_user_says(study: Any) -> None:
    await ask(study, PROPOSE, WRITE)
    await decide(study, "q1:0:0", "deny", answer="not on paper")
    proposed, written = await calls(study)
    assert proposed.error is not None and proposed.error.kind == "denied"
    assert "the user said no: not on paper" in message(proposed)
    assert (message(written), study.pen.written) == (NOT_BEFORE, [])


async def test_silence_denies_a_plan(stage: Any, tmp_path: Path) -> None:
    await stage.generator()
    await stage.gatekeeper(answer_seconds=0.05)
    await stage.tool(PenTool(tmp_path))
    await ask(stage, PROPOSE, WRITE)
    proposed, written = await calls(stage)
    assert "nobody answered within 0.05 s" in message(proposed)
    assert message(written) == NOT_BEFORE


async def test_a_changed_plan_asks_again_and_the_one_before_it_holds_no_longer(study: Any) -> None:
    await ask(study, PROPOSE, ToolCall(PROPOSE_PLAN, OTHER), WRITE)
    await decide(study, "q1:0:0")
    await decide(study, "q1:2:0", "deny")
    *_, written = await calls(study)
    assert (message(written), study.pen.written) == (NOT_BEFORE, [])
    assert [asked.args for asked in study.door.of(ApprovalRequest)] == [PLAN, OTHER]


async def test_an_approval_is_of_its_turn_alone(study: Any) -> None:
    await ask(study, PROPOSE)
    await decide(study, "q1:0:0", mode="acceptEdits")
    await calls(study)
    await ask(study, WRITE, query_id="q2")
    [written] = await calls(study, "q2")
    assert message(written) == NOT_BEFORE


@pytest.mark.parametrize("mode", ["plan", "default", None])
async def test_the_owner_may_approve_that_edits_need_no_more_leave(study: Any, mode: str | None) -> None:
    await ask(study, PROPOSE, WRITE, mode=mode)
    await decide(study, "q1:0:0", mode="acceptEdits")
    proposed, written = await calls(study)
    assert proposed.result is not None and "What can be undone is done without asking" in proposed.result
    assert written.result == "Written."
    assert len(study.door.of(ApprovalRequest)) == 1
    assert (await study.door.hears(ApprovalDecision)).mode == "acceptEdits"


async def test_a_user_does_not_decide_that_edits_need_no_leave(stage: Any, tmp_path: Path) -> None:
    await stage.generator()
    await stage.gatekeeper(users_may_approve=True)
    await stage.tool(PenTool(tmp_path))
    await ask(stage, PROPOSE)
    for fields, kind in (({"mode": "acceptEdits"}, "forbidden"), ({}, None)):
        result = await decide(stage, "q1:0:0", of_user="user", **fields)
        assert (result.error and result.error.kind) == kind
    assert (await calls(stage))[0].result


async def test_leave_for_a_call_has_no_mode(study: Any) -> None:
    await ask(study, WRITE, mode="default")
    refused = await decide(study, "q1:0:0", mode="acceptEdits")
    assert refused.error is not None and refused.error.kind == "forbidden"
    await decide(study, "q1:0:0", "deny")
    assert study.pen.written == []


async def test_for_a_whole_conversation_a_plan_is_approved_once(study: Any) -> None:
    await ask(study, PROPOSE)
    await decide(study, "q1:0:0", "allow_session")
    await calls(study)
    assert (await study.door.hears(ApprovalDecision)).decision == "allow"
    remembered = await study.door.bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)
    assert remembered.remembered == ()


async def test_a_forged_approval_on_the_bus_runs_nothing(study: Any) -> None:
    await ask(study, PROPOSE, WRITE)
    await study.door.hears(ApprovalRequest)
    forged = ApprovalDecision(
        query_id="q1", call_id="q1:0:0", session_id="s", tool=PROPOSE_PLAN, decision="allow", by="page",
        mode="acceptEdits", decided_at=1.0,
    )  # fmt: skip
    await study.door.bus.publish(forged, Trace("q1", None, "s", "user"))
    leave = GrantRequest(query_id="q1", call_id="q1:2:0", tool="pen", args=MILK, mode="plan")
    result = await study.door.bus.request(leave, GrantResult, SECONDS)
    assert (result.verdict, result.grant) == ("denied", None)
    forged_call = ToolRequest(query_id="q1", call_id="q1:2:0", tool="pen", args=MILK)
    done = await study.door.bus.request(forged_call, ToolResult, SECONDS)
    assert done.error is not None and done.error.kind == "not_granted"
    await decide(study, "q1:0:0", "deny")
    _, written = await calls(study)
    assert (message(written), study.pen.written) == (NOT_BEFORE, [])


async def test_a_turn_or_gatekeeper_that_is_killed_asks_nothing_again_and_goes_by_what_was_decided(study: Any) -> None:
    await ask(study, PROPOSE, WRITE)
    await study.door.hears(ApprovalRequest)
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


@pytest.mark.parametrize("args", [{}, {"title": "x", "steps": []}, {**PLAN, "hidden": "and more"}, {"title": "x"}])
async def test_nobody_is_shown_what_is_no_plan_neither_by_the_model_nor_by_a_generator_that_went_wrong(
    study: Any, args: dict[str, Any]
) -> None:
    assert FAULTS[PROPOSE_PLAN](args).endswith("Expected: title, steps.")
    leave = GrantRequest(query_id="q1", call_id="q1:0:0", tool=PROPOSE_PLAN, args=args, mode="plan")
    result = await study.door.bus.request(leave, GrantResult, SECONDS)
    assert (result.verdict, study.door.of(ApprovalRequest)) == ("denied", [])


async def test_where_nobody_is_there_no_plan_is_asked_for(study: Any) -> None:
    await ask(study, PROPOSE, mode="dontAsk")
    [proposed] = await calls(study)
    assert proposed.error is not None and proposed.error.kind == "unknown_tool"
    assert PROPOSE_PLAN not in study.model.asked[0].tools
    leave = GrantRequest(query_id="q1", call_id="q1:9:0", tool=PROPOSE_PLAN, args=PLAN, mode="dontAsk")
    assert (await study.door.bus.request(leave, GrantResult, SECONDS)).verdict == "denied"


async def test_each_step_that_is_told_is_heard_and_who_looks_sees_how_far_it_is(study: Any) -> None:
    steps = [{"step": 1, "state": "doing"}, {"step": 1, "state": "done"}, {"step": 3, "state": "doing"}]
    await ask(study, PROPOSE, *(ToolCall(PLAN_STEP, args) for args in steps))
    await decide(study, "q1:0:0")
    made = await calls(study)
    assert PLAN_STEP in study.model.asked[0].tools
    assert len({tuple(asked.tools) for asked in study.model.asked}) == 1
    assert [call.result for call in made[1:]] == ["Steps left: 1, 2", "Steps left: 2", None]
    assert message(made[3]) == "plan_step: the plan has 2 steps"
    told = [(step.call_id, step.index, step.state) for step in study.door.of(PlanStep)]
    assert told == [("q1:0:0", 0, "doing"), ("q1:0:0", 0, "done")]
    view = QueryView("q1")
    [response], [envelope] = study.door.of(ResponseGeneration), study.door.envelopes(ResponseGeneration)
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
