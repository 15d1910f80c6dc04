"""A generator that goes away in the middle, and the next one on the same file."""

import asyncio
from typing import Any

import pytest

from local.bus.messages import (
    GenerationToken,
    QueryAccepted,
    QueryFailed,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)
from local.generator import respondent as respondent_module
from local.generator.history import ConversationService
from local.models.chat import ThinkingDelta, ToolCall


async def test_a_turn_goes_on_in_the_next_process_at_its_next_attempt_and_no_model_call_is_repeated(
    stage: Any, dice: Any
) -> None:
    first = await stage.generator()
    await stage.tool(dice)
    stage.model.will_say(ThinkingDelta("I roll."), ToolCall("dice", {}))
    stage.model.will_say("The", asyncio.Event())
    await stage.frontend.ask("Roll!", "q1")
    await stage.frontend.hears(GenerationToken)
    await first.kill()
    asked_before = stage.model.asked[1]
    stage.model.will_say("The five.")
    second = await stage.generator()
    response = await stage.end_of("q1")
    assert (response.answer, response.thinking) == ("The five.", "I roll.")
    assert [record.result for record in response.tool_calls] == ["a 5 of 6"]
    assert stage.model.asked[2] == asked_before
    assert dice.rolls == [6]
    assert [(token.attempt, token.text) for token in stage.frontend.of(GenerationToken)] == [
        (1, "The"),
        (2, "The five."),
    ]
    assert [accepted.attempt for accepted in stage.frontend.of(QueryAccepted)] == [1, 2]
    await second.stop()
    await stage.generator()
    stage.model.will_say("No.")
    await stage.frontend.ask("And now?", "q2")
    await stage.end_of("q2")
    assert len(stage.frontend.of(ResponseGeneration, query_id="q1")) == 1  # what has left is not published again


async def test_a_call_under_way_is_made_again_under_the_same_id_once_its_tool_is_back(
    stage: Any, dice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respondent_module, "YOUNG_SECONDS", 0.05)
    first = await stage.generator()
    served = await stage.tool(dice)
    dice.may_fall.clear()
    stage.model.will_say(ToolCall("dice", {}))
    await stage.frontend.ask("Roll!", "q1")
    await asyncio.wait_for(dice.started.wait(), 90)
    await first.stop()
    dice.may_fall.set()
    await served.stop()
    stage.model.will_say("A five.", to="Roll!")
    stage.model.will_say("Yes.", to="Meanwhile?")
    await stage.generator()
    await stage.frontend.ask("Meanwhile?", "q2", session="other")
    await stage.frontend.hears(ResponseGeneration, query_id="q2")  # by now the turn would have gone on without its tool
    await stage.tool(type(dice)())
    response = await stage.frontend.hears(ResponseGeneration, query_id="q1")
    assert response.answer == "A five."
    assert [record.result for record in response.tool_calls] == ["a 5 of 6"]
    assert {request.call_id for request in stage.frontend.of(ToolRequest)} == {"q1:0:0"}
    assert [(asked.query, asked.tools) for asked in stage.model.asked[1:]] == [("Meanwhile?", []), ("Roll!", ["dice"])]
    assert stage.frontend.of(ToolResult)[-1].call_id == "q1:0:0"


async def test_waiting_queries_keep_their_order_and_are_no_attempts(stage: Any) -> None:
    first = await stage.generator()
    stage.model.will_say(asyncio.Event())
    for number in (1, 2, 3):
        await stage.frontend.ask(f"Question {number}", f"q{number}")
        await stage.frontend.hears(QueryAccepted, query_id=f"q{number}")
    await first.kill()
    for number in (1, 2, 3):
        stage.model.will_say(f"Answer {number}", to=f"Question {number}")
    await stage.generator()
    await stage.frontend.hears(ResponseGeneration, 3)
    assert [response.query_id for response in stage.frontend.of(ResponseGeneration)] == ["q1", "q2", "q3"]


async def test_a_cancelled_turn_does_not_wait_for_tools_that_are_gone(stage: Any, dice: Any) -> None:
    first = await stage.generator()
    served = await stage.tool(dice)
    stage.model.will_say("The", asyncio.Event())
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    await first.kill()
    await served.stop()
    await stage.generator()
    await stage.frontend.cancel("q1")
    assert (await stage.frontend.hears(ResponseGeneration)).status == "cancelled"
    assert len(stage.model.asked) == 1


async def test_an_interrupted_turn_goes_on_without_a_tool_that_stays_away(
    stage: Any, dice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respondent_module, "SILENT_SECONDS", 0.01)
    first = await stage.generator()
    served = await stage.tool(dice)
    stage.model.will_say("The", asyncio.Event())
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    await first.kill()
    await served.stop()
    stage.model.will_say("Alone.")
    await stage.generator()
    assert (await stage.frontend.hears(ResponseGeneration)).answer == "Alone."
    assert stage.model.asked[1].tools == []


@pytest.mark.parametrize(
    "loses_live_queries",
    [False, pytest.param(True, marks=pytest.mark.thorough)],
    ids=["ahead", "from the record"],
)
async def test_the_first_turn_of_a_process_has_the_tools_that_there_were_before_it(
    stage: Any, dice: Any, loses_live_queries: bool
) -> None:
    stage.loses_live_queries = loses_live_queries
    first = await stage.generator()
    served = await stage.tool(dice)
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(ResponseGeneration, query_id="q1")
    await first.kill()
    await served.kill()
    await stage.generator()
    stage.model.will_say("With.")
    await stage.frontend.ask("And now?", "q2")
    await stage.frontend.hears(QueryAccepted, query_id="q2")
    await stage.tool(type(dice)())
    await stage.frontend.hears(ResponseGeneration, query_id="q2")
    assert [asked.tools for asked in stage.model.asked] == [["dice"], ["dice"]]


@pytest.mark.thorough
async def test_the_first_turn_of_a_process_goes_on_without_a_tool_that_stays_away(
    stage: Any, dice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respondent_module, "YOUNG_SECONDS", 0.01)
    first = await stage.generator()
    served = await stage.tool(dice)
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(ResponseGeneration, query_id="q1")
    await first.kill()
    await served.kill()
    await stage.generator()
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("Without.")
    await stage.frontend.ask("And now?", "q2")
    response = await stage.frontend.hears(ResponseGeneration, query_id="q2")
    assert (response.answer, [call.error.kind for call in response.tool_calls]) == ("Without.", ["unavailable"])
    assert [asked.tools for asked in stage.model.asked] == [["dice"]] * 3  # the conversation's list stays as it is


async def test_a_record_that_cannot_be_read_fails_its_turn_and_no_other(stage: Any) -> None:
    first = await stage.generator()
    stage.model.will_say("The", asyncio.Event())
    await stage.frontend.ask("bad", "q1", session="red")
    await stage.frontend.hears(GenerationToken)
    await first.kill()
    async with ConversationService(stage.database) as conversation:
        await conversation.add_steps("q1", 0, ['{"kind": "from the future"}'])
    await stage.generator()
    failed = await stage.frontend.hears(QueryFailed)
    assert (failed.query_id, failed.error.kind) == ("q1", "store_damaged")
    assert failed.error.message.startswith("a stored step cannot be read: ")
    stage.model.will_say("Yes.")
    await stage.frontend.ask("good", "q2", session="green")
    assert (await stage.frontend.hears(ResponseGeneration)).answer == "Yes."
