"""Calls after a denial in the same turn, and calls with bad arguments: whether a person is asked."""

from __future__ import annotations

from typing import Any

from agent_stage.pen import MILK, decide

from local.bus.messages import AnswerOptions, ResponseGeneration, ToolRequest
from local.generator.turn import SAY_DENIED
from local.models.chat import ToolCall
from local.permissions.messages import ApprovalDecision, ApprovalRequest, GrantRequest
from tests.permissions.test_gatekeeper import study

__all__ = ["study"]

AGAIN = "pen was not run: denied by the user in this turn; do not ask again; answer in words"


async def asked_and_denied(study: Any, call_id: str) -> None:
    await decide(study, call_id, "deny")


async def records_of(study: Any) -> list[tuple[str, str]]:
    response = await study.frontend.hears(ResponseGeneration, query_id="q1")
    return [
        (call.error.kind, call.error.message) if call.error else ("", call.result or "") for call in response.tool_calls
    ]


async def begin(study: Any, *messages: Any) -> None:
    for message in messages:
        study.model.will_say(*message) if isinstance(message, list) else study.model.will_say(message)
    study.model.will_say("Done.")
    await study.frontend.ask("Write!", "q1", session="s", options=AnswerOptions(mode="default"))


async def test_a_call_with_bad_arguments_is_answered_at_once_and_nobody_is_asked(study: Any) -> None:
    await study.gatekeeper()
    await begin(study, ToolCall("pen", {**MILK, "error": "denied"}))
    [(kind, text)] = await records_of(study)
    assert kind == "bad_arguments"
    assert text == "pen: bad arguments: error: there is no such argument. Expected: path, content."
    assert study.frontend.of(GrantRequest) == study.frontend.of(ApprovalRequest) == study.frontend.of(ToolRequest) == []


async def test_a_person_is_asked_once_about_a_target_in_a_turn(study: Any) -> None:
    await study.gatekeeper()
    await begin(study, ToolCall("pen", MILK), ToolCall("pen", {**MILK, "content": "tea"}))
    await asked_and_denied(study, "q1:0:0")
    assert (await records_of(study))[1] == ("denied", AGAIN)
    assert len(study.frontend.of(ApprovalRequest)) == 1 and study.pen.written == []


async def test_a_denied_call_with_an_argument_too_many_is_denied_and_in_the_end_answered_in_words(study: Any) -> None:
    await study.gatekeeper()
    more = [{**MILK, "error": "denied"}, {**MILK, "content": "tea"}, {**MILK, "content": "rum"}]
    await begin(study, ToolCall("pen", MILK), *(ToolCall("pen", args) for args in more))
    await asked_and_denied(study, "q1:0:0")
    records = await records_of(study)
    assert records == [("denied", "pen was not run: the user said no"), ("denied", AGAIN), ("denied", AGAIN)]
    assert study.model.asked[-1].messages[-1]["content"] == SAY_DENIED
    assert len(study.frontend.of(ApprovalRequest)) == 1


async def test_of_calls_in_one_message_the_second_waits_for_what_is_decided_about_the_first(study: Any) -> None:
    await study.gatekeeper()
    await begin(study, [ToolCall("pen", MILK), ToolCall("pen", {**MILK, "content": "tea"})])
    await asked_and_denied(study, "q1:0:0")
    assert (await records_of(study))[1] == ("denied", AGAIN)
    assert len(study.frontend.of(ApprovalRequest)) == 1


async def test_what_is_allowed_for_the_conversation_meanwhile_counts(study: Any) -> None:
    await study.gatekeeper()
    calls = [ToolCall("pen", {**MILK, "path": path}) for path in "dabc"]
    await begin(study, *calls, ToolCall("pen", {"path": "d", "content": "tea"}))
    await study.frontend.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow_session")
    for step in (2, 4, 6):
        await asked_and_denied(study, f"q1:{step}:0")
    assert (await records_of(study))[4] == ("", "Written.")
    assert len(study.frontend.of(ApprovalDecision)) == 4
    assert study.pen.written == ["milk", "tea"]
