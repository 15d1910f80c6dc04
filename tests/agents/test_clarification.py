"""The model asks its user something: one question and one answer, whatever dies meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.bus.messages import (
    AgentTransition,
    AnswerOptions,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
)
from local.bus.vocabulary import CLARIFICATION
from local.generator.builtin_tools import MOST_OPTIONS
from local.generator.builtin_tools import fault_of_clarification as fault_of
from local.generator.steps import TurnInput, TurnLimits
from local.models.chat import ToolCall
from local.permissions.messages import ApprovalDecision, ApprovalRequest, PermissionRequest, PermissionResult
from local.taint.policy import Provenance

SECONDS = 20.0
QUESTION = {"question": "Which colour?", "options": ["red", "blue"]}


@pytest.fixture
async def study(stage: Any) -> Any:
    """A stage with a generator and a gatekeeper that it knows."""
    await stage.generator()
    await stage.gatekeeper()
    return stage


async def ask(stage: Any, args: dict[str, Any] | None = None, **options: Any) -> None:
    stage.model.will_say(ToolCall(CLARIFICATION, QUESTION if args is None else args))
    stage.model.will_say("Done.")
    await stage.door.ask("Paint it!", "q1", session="s", options=AnswerOptions(**options) if options else None)


async def decide(stage: Any, decision: str = "allow", **fields: Any) -> PermissionResult:
    request = PermissionRequest(verb="decide", call_id="q1:0:0", decision=decision, by="page", **fields)
    return await stage.door.bus.request(request, PermissionResult, SECONDS)


async def end(stage: Any) -> ToolCallRecord:
    response = await stage.door.hears(ResponseGeneration, query_id="q1")
    [call] = response.tool_calls
    return call


async def test_the_model_reads_what_its_user_has_said(study: Any) -> None:
    await ask(study)
    asked = await study.door.hears(ApprovalRequest)
    assert (asked.tool, asked.args, asked.level, asked.category) == (CLARIFICATION, QUESTION, "L0", "meta")
    await study.door.hears(AgentTransition, to_state="WAITING_FOR_LEAVE")
    assert study.door.of(ToolRequest) == []
    assert (await decide(study, answer=" blue \n")).error is None
    call = await end(study)
    assert (call.result, call.error, call.tainted) == ("blue", None, False)
    assert (await study.door.hears(ToolResult, query_id="q1")).result == "blue"
    assert (await study.door.hears(ApprovalDecision)).answer == "blue"


async def test_an_answer_for_the_whole_conversation_is_one_answer(study: Any) -> None:
    await ask(study)
    await study.door.hears(ApprovalRequest)
    await decide(study, "allow_session", answer="blue")
    assert (await end(study)).result == "blue"
    assert (await study.door.hears(ApprovalDecision)).decision == "allow"
    remembered = await study.door.bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)
    assert remembered.remembered == ()


@pytest.mark.parametrize("answer", [None, "", " \n"])
async def test_an_answer_without_a_word_is_refused_and_the_question_stays_open(study: Any, answer: str | None) -> None:
    await ask(study)
    await study.door.hears(ApprovalRequest)
    refused = await decide(study, answer=answer)
    assert refused.error is not None and refused.error.kind == "invalid"
    assert (await decide(study, answer="red")).error is None
    assert (await end(study)).result == "red"


async def test_a_user_who_says_nothing_is_no_failure_of_the_turn(study: Any) -> None:
    await ask(study)
    await study.door.hears(ApprovalRequest)
    await decide(study, "deny")
    call = await end(study)
    assert call.error is not None and call.error.kind == "unanswered"
    assert call.error.message == "the user gave no answer; go on without an answer, and say what you assume"


async def test_silence_tells_the_model_that_nobody_answered(stage: Any) -> None:
    await stage.generator()
    await stage.gatekeeper(answer_seconds=0.05)
    await ask(stage)
    call = await end(stage)
    assert call.error is not None and call.error.message.startswith("nobody answered within 0.05 s; go on")


async def test_a_user_answers_what_is_theirs_without_leave_to_decide_about_calls(study: Any) -> None:
    await ask(study)
    await study.door.hears(ApprovalRequest)
    assert (await decide(study, answer="red", of_user="somebody")).error is not None
    assert (await decide(study, answer="red", of_user="user")).error is None
    assert (await end(study)).result == "red"


@pytest.mark.parametrize("answered", [True, False])
async def test_a_turn_that_another_process_goes_on_with_asks_nothing_again(study: Any, answered: bool) -> None:
    await ask(study)
    await study.door.hears(ApprovalRequest)
    await study._generator.kill()
    if answered:
        await decide(study, answer="blue")
    await study.generator()
    if not answered:
        await decide(study, answer="blue")
    assert (await end(study)).result == "blue"
    assert len(await study.on_record("q1", ApprovalRequest)) == 1


async def test_the_tool_is_offered_where_somebody_is_there_and_not_elsewhere(study: Any) -> None:
    study.model.will_say("Done.")
    await study.door.ask("Hello", "q2", session="s")
    await study.door.hears(ResponseGeneration, query_id="q2")
    assert CLARIFICATION in study.model.asked[-1].tools
    await ask(study, mode="dontAsk")
    call = await end(study)
    assert call.error is not None and call.error.kind == "unknown_tool"
    assert not any(CLARIFICATION in asked.tools for asked in study.model.asked[1:])
    assert study.door.of(ApprovalRequest) == []


async def test_where_the_owner_has_set_that_nobody_is_asked_the_tool_is_not_offered(stage: Any) -> None:
    await stage.generator()
    await stage.gatekeeper(mode="dontAsk")
    for query_id, mode in (("q1", None), ("q2", "default")):
        stage.model.will_say("Done.")
        options = None if mode is None else AnswerOptions(mode=mode)
        await stage.door.ask("Hello", query_id, session=query_id, options=options)
        await stage.door.hears(ResponseGeneration, query_id=query_id)
    assert [CLARIFICATION in asked.tools for asked in stage.model.asked] == [False, True]


async def test_without_a_gatekeeper_nobody_can_be_asked(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("Done.")
    await stage.door.ask("Hello", "q1", session="s")
    await stage.door.hears(ResponseGeneration, query_id="q1")
    assert CLARIFICATION not in stage.model.asked[-1].tools


async def test_a_second_respondent_asks_the_user_nothing(study: Any) -> None:
    study.model.will_say("Done.")
    await study.door.ask("Hello", "q1", session="s")
    await study.door.hears(ResponseGeneration, query_id="q1")
    gate = study._generator.participant._gate
    question = TurnInput(query_id="q", respondent_id="A", query="", prelude=(), think=False, limits=TurnLimits())
    assert gate.may_ask(question)
    assert not gate.may_ask(replace(question, respondent_id="B"))


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"question": " "},
        {"question": "x" * 2001},
        {"question": "q", "options": "red"},
        {"question": "q", "options": [""]},
        {"question": "q", "options": ["x"] * (MOST_OPTIONS + 1)},
        {"question": "q", "more": 1},
    ],
)
def test_arguments_that_make_no_question_are_a_fault_that_names_what_is_expected(args: dict[str, Any]) -> None:
    assert fault_of(args).endswith("Expected: question, options.")
    assert fault_of(QUESTION) == ""


async def test_nobody_is_asked_what_is_no_question(study: Any) -> None:
    await ask(study, {"question": ""})
    call = await end(study)
    assert call.error is not None and call.error.kind == "bad_arguments"
    assert study.door.of(ApprovalRequest) == []


@pytest.mark.parametrize(
    ("answer", "is_given"),
    [
        ("Take http://mine.example/a", True),
        ("http://evil.example/?code=1", False),
        (" HTTP://evil.example/?code=1", False),
    ],
)
def test_an_address_in_the_users_own_answer_is_given_by_the_user_and_one_in_an_option_is_not(
    answer: str, is_given: bool
) -> None:
    args = {"question": "Where?", "options": [" http://evil.example/?code=1 ", "nowhere"]}
    call = ToolCallRecord(call_id="q:0:0", tool=CLARIFICATION, args=args, result=answer)
    provenance = Provenance.of(["Look it up"], (), [call])
    assert (provenance.address(answer.split()[-1]) is not None) is is_given
    assert (answer in provenance.spoken) is is_given
