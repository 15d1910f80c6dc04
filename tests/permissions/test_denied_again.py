"""Calls after a denial in the same turn, and calls with bad arguments: whether a person is asked."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.messages import AnswerOptions, ResponseGeneration, ToolCallRecord, ToolRequest
from local.generator.steps import PlannedCall
from local.generator.turn import SAY_DENIED, denial_key, refused, why_not_asked
from local.models.chat import ToolCall
from local.permissions.messages import ApprovalDecision, ApprovalRequest, GrantRequest
from tests.agents.test_gatekeeper import MILK, decide, study

__all__ = ["study"]

AGAIN = "pen was not run: denied by the user in this turn; do not ask again; answer in words"


def call(tool: str = "pen", **args: Any) -> PlannedCall:
    return PlannedCall(call_id="q:0:0", tool=tool, args=args)


def denied(by: str = "page", tool: str = "pen", **args: Any) -> ToolCallRecord:
    return refused(call(tool, **args), "denied", "no").model_copy(update={"denied_by": by})


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ({"path": "a.txt", "content": "1"}, {"path": "./a.txt ", "content": "2"}, True),
        ({"path": "a.txt"}, {"path": "b.txt"}, False),
        ({"command": "rm 'a b'"}, {"command": ["rm", "a b"], "folder": "x"}, True),
        ({"url": "http://a/"}, {"url": "http://b/"}, False),
        ({"text": "1"}, {"text": "2"}, True),
    ],
)
def test_a_denial_holds_for_the_same_target(first: dict[str, Any], second: dict[str, Any], is_same: bool) -> None:
    assert (denial_key(call(**first)) == denial_key(call(**second))) is is_same
    assert bool(why_not_asked(call(**second), [denied(**first)])) is is_same


def test_after_three_denials_of_a_tool_nobody_is_asked_about_it_any_more() -> None:
    records = [denied(path=path) for path in "abc"]
    assert why_not_asked(call(path="d"), records[:2]) == ""
    assert why_not_asked(call(path="d"), records)
    assert why_not_asked(call("brush", path="d"), records) == ""


def test_what_no_person_has_decided_is_no_denial() -> None:
    assert why_not_asked(call(path="a"), [denied(by="", path="a")]) == ""


def test_silence_is_told_as_silence() -> None:
    assert "nobody answered" in why_not_asked(call(path="a"), [denied(by="silence", path="a")])


def test_a_question_of_the_model_and_a_plan_may_be_asked_again() -> None:
    for tool in ("request_clarification", "propose_plan"):
        assert why_not_asked(call(tool), [denied(tool=tool)] * 4) == ""


async def asked_and_denied(study: Any, call_id: str) -> None:
    await study.door.until(lambda: any(each.call_id == call_id for each in study.door.of(ApprovalRequest)))
    await decide(study, call_id, "deny")


async def records_of(study: Any) -> list[tuple[str, str]]:
    response = await study.door.hears(ResponseGeneration, query_id="q1")
    return [
        (call.error.kind, call.error.message) if call.error else ("", call.result or "") for call in response.tool_calls
    ]


async def begin(study: Any, *messages: Any) -> None:
    for message in messages:
        study.model.will_say(*message) if isinstance(message, list) else study.model.will_say(message)
    study.model.will_say("Done.")
    await study.door.ask("Write!", "q1", session="s", options=AnswerOptions(mode="default"))


async def test_a_call_with_bad_arguments_is_answered_at_once_and_nobody_is_asked(study: Any) -> None:
    await study.gatekeeper()
    await begin(study, ToolCall("pen", {**MILK, "error": "denied"}))
    [(kind, text)] = await records_of(study)
    assert kind == "bad_arguments"
    assert text == "pen: bad arguments: error: there is no such argument. Expected: path, content."
    assert study.door.of(GrantRequest) == study.door.of(ApprovalRequest) == study.door.of(ToolRequest) == []


async def test_a_person_is_asked_once_about_a_target_in_a_turn(study: Any) -> None:
    await study.gatekeeper()
    await begin(study, ToolCall("pen", MILK), ToolCall("pen", {**MILK, "content": "tea"}))
    await asked_and_denied(study, "q1:0:0")
    assert (await records_of(study))[1] == ("denied", AGAIN)
    assert len(study.door.of(ApprovalRequest)) == 1 and study.pen.written == []


async def test_a_denied_call_with_an_argument_too_many_is_denied_and_in_the_end_answered_in_words(study: Any) -> None:
    await study.gatekeeper()
    more = [{**MILK, "error": "denied"}, {**MILK, "content": "tea"}, {**MILK, "content": "rum"}]
    await begin(study, ToolCall("pen", MILK), *(ToolCall("pen", args) for args in more))
    await asked_and_denied(study, "q1:0:0")
    records = await records_of(study)
    assert records == [("denied", "pen was not run: the user said no"), ("denied", AGAIN), ("denied", AGAIN)]
    assert study.model.asked[-1].messages[-1]["content"] == SAY_DENIED
    assert len(study.door.of(ApprovalRequest)) == 1


async def test_of_calls_in_one_message_the_second_waits_for_what_is_decided_about_the_first(study: Any) -> None:
    await study.gatekeeper()
    await begin(study, [ToolCall("pen", MILK), ToolCall("pen", {**MILK, "content": "tea"})])
    await asked_and_denied(study, "q1:0:0")
    assert (await records_of(study))[1] == ("denied", AGAIN)
    assert len(study.door.of(ApprovalRequest)) == 1


async def test_another_target_is_asked_about_until_three_are_denied(study: Any) -> None:
    await study.gatekeeper()
    await begin(study, *(ToolCall("pen", {**MILK, "path": path}) for path in "abcd"))
    for step in (0, 2, 4):
        await asked_and_denied(study, f"q1:{step}:0")
    assert [text for _, text in await records_of(study)][3] == AGAIN
    assert len(study.door.of(ApprovalRequest)) == 3


async def test_what_is_allowed_for_the_conversation_meanwhile_counts(study: Any) -> None:
    await study.gatekeeper()
    calls = [ToolCall("pen", {**MILK, "path": path}) for path in "dabc"]
    await begin(study, *calls, ToolCall("pen", {"path": "d", "content": "tea"}))
    await study.door.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow_session")
    for step in (2, 4, 6):
        await asked_and_denied(study, f"q1:{step}:0")
    assert (await records_of(study))[4] == ("", "Written.")
    assert len(study.door.of(ApprovalDecision)) == 4
    assert study.pen.written == ["milk", "tea"]
