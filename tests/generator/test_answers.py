"""A query from the door to its answer."""

import asyncio
from typing import Any

from local.bus.messages import (
    AgentTransition,
    AnswerDialog,
    GenerationThinking,
    GenerationToken,
    QueryAccepted,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)
from local.generator.steps import CUT_OFF
from local.models.chat import Done, ThinkingDelta, ToolCall, Usage


async def test_a_plain_question_is_answered_and_everything_is_on_the_bus_in_order(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say(ThinkingDelta("Easy."), "Forty-", "two")
    asked = await stage.door.ask("What is it?", "q1")
    response = await stage.door.hears(ResponseGeneration)
    await stage.door.hears(AgentTransition, to_state="IDLE")
    assert (response.status, response.answer, response.thinking) == ("answered", "Forty-two", "Easy.")
    told = stage.door.subjects("q1")
    told.remove("query.accepted")  # beside the turn, which does not wait for it
    assert told == [
        "query.received",
        "-> RECEIVING",
        "-> GENERATING",
        "generation.thinking",
        "generation.token",
        "-> PUBLISHING",
        "response.generation",
        "answer.dialog",
        "-> IDLE",
    ]
    [answer] = stage.door.envelopes(ResponseGeneration)
    assert (answer.cause_id, answer.session_id, answer.user_id, answer.in_reply_to) == (asked.id, "s", "user", None)
    assert stage.door.of(AnswerDialog)[0].answer == "Forty-two"


async def test_the_model_is_asked_as_configured(stage: Any) -> None:
    await stage.generator(num_ctx=2048, temperature=0.5, think=False)
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    await stage.door.hears(ResponseGeneration)
    [asked] = stage.model.asked
    assert asked.options.items() >= {"num_ctx": 2048, "temperature": 0.5}.items()
    assert not asked.think
    assert asked.messages[0] == {"role": "system", "content": "Be brief."}
    assert asked.background[1].startswith("Today is ")


async def test_fragments_leave_as_they_are_said(stage: Any) -> None:
    await stage.generator()
    more = asyncio.Event()
    stage.model.will_say(ThinkingDelta("Hm"), "One", more, " two")
    await stage.door.ask("Count!", "q1")
    assert (await stage.door.hears(GenerationThinking)).text == "Hm"
    assert (await stage.door.hears(GenerationToken)).text == "One"
    assert stage.door.of(ResponseGeneration) == []
    more.set()
    assert (await stage.door.hears(ResponseGeneration)).answer == "One two"
    assert [(token.text, token.index) for token in stage.door.of(GenerationToken)] == [("One", 1), (" two", 2)]


async def test_a_tool_is_called_over_the_bus_and_its_result_goes_back(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    stage.model.will_say(ThinkingDelta("I roll."), ToolCall("dice", {"sides": 20}))
    stage.model.will_say("A 19.")
    await stage.door.ask("Roll!", "q1")
    response = await stage.door.hears(ResponseGeneration)
    await stage.door.hears(AgentTransition, to_state="IDLE")
    assert response.answer == "A 19."
    [record] = response.tool_calls
    assert (record.call_id, record.tool, record.args, record.result) == ("q1:0:0", "dice", {"sides": 20}, "a 19 of 20")
    assert stage.model.asked[0].tools == ["dice"]
    assert stage.model.asked[1].messages[2:] == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "I roll.",
            "tool_calls": [{"id": "q1:0:0", "function": {"name": "dice", "arguments": {"sides": 20}}}],
        },
        {"role": "tool", "tool_name": "dice", "tool_call_id": "q1:0:0", "content": "a 19 of 20"},
    ]
    [request] = stage.door.envelopes(ToolRequest)
    [result] = stage.door.envelopes(ToolResult)
    assert result.in_reply_to == request.id


async def test_a_tool_call_is_on_the_bus_in_order(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    for number in (1, 2):
        stage.model.will_say(ToolCall("dice", {}))
        stage.model.will_say("A 5.")
        await stage.door.ask("Roll!", f"q{number}", session=None)
        await stage.door.hears(AgentTransition, number, to_state="IDLE")
    told = [
        [subject for subject in stage.door.subjects(query_id) if not subject.startswith(("query", "generation"))]
        for query_id in ("q1", "q2")
    ]
    assert told[0] == told[1]  # the first request to a tool, for which the bus has to subscribe, is no different
    assert told[1] == [
        "-> RECEIVING",
        "-> GENERATING",
        "tool.request.dice",
        "-> DISPATCHING_TOOL",  # told with the next one, which follows at once
        "-> WAITING_FOR_TOOL",
        "tool.result.dice",
        "-> GENERATING",
        "-> PUBLISHING",
        "response.generation",
        "answer.dialog",
        "-> IDLE",
    ]


async def test_calls_of_one_message_run_side_by_side_and_come_back_in_order(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    dice.may_fall.clear()
    stage.model.will_say(ToolCall("dice", {"sides": 4}), ToolCall("dice", {"sides": 6}))
    stage.model.will_say("Both.")
    await stage.door.ask("Roll!", "q1")
    await stage.door.hears(ToolRequest, 2)
    await stage.door.hears(AgentTransition, to_state="WAITING_FOR_TOOL")
    dice.may_fall.set()
    response = await stage.door.hears(ResponseGeneration)
    assert [record.result for record in response.tool_calls] == ["a 3 of 4", "a 5 of 6"]
    assert len(stage.door.of(AgentTransition, action="TOOL_RESULT")) == 1


async def test_a_call_that_came_as_text_is_made(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    stage.model.will_say('{"name": "dice", "arguments": {"sides": 6}}')
    stage.model.will_say("A 5.")
    await stage.door.ask("Roll!", "q1")
    response = await stage.door.hears(ResponseGeneration)
    assert dice.rolls == [6]
    assert response.degraded == ("the call of dice came as text",)


async def test_the_next_turn_of_a_session_has_what_was_sent_and_said_before(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    stage.model.will_say(ThinkingDelta("I roll."), ToolCall("dice", {}))
    stage.model.will_say(ThinkingDelta("I say."), "A 5.")
    stage.model.will_say("Again a 5.")
    await stage.door.ask("Roll!", "q1")
    await stage.door.hears(ResponseGeneration)
    await stage.door.ask("Which?", "q2")
    await stage.door.hears(ResponseGeneration, 2)
    assert stage.model.asked[-1].messages[1:] == [
        *stage.model.asked[1].messages[1:],
        {"role": "assistant", "content": "A 5."},
        {"role": "user", "content": "Which?"},
    ]
    assert [message["role"] for message in stage.model.asked[1].messages] == ["system", "user", "assistant", "tool"]


async def test_a_query_that_brings_its_history_uses_and_leaves_no_other(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("One.")
    await stage.door.ask("First", "q1")
    await stage.door.hears(ResponseGeneration)
    stage.model.will_say("Two.")
    await stage.door.ask("Second", "q2", history=({"role": "user", "content": "Elsewhere"},))
    await stage.door.hears(ResponseGeneration, 2)
    stage.model.will_say("Three.")
    await stage.door.ask("Third", "q3")
    await stage.door.hears(ResponseGeneration, 3)
    assert [message["content"] for message in stage.model.asked[1].messages[1:]] == ["Elsewhere", "Second"]
    assert [message["content"] for message in stage.model.asked[2].messages[1:]] == ["First", "One.", "Third"]


async def test_sessions_are_answered_side_by_side_and_one_session_in_order(stage: Any) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "one", to="first of red")
    stage.model.will_say("two", to="second of red")
    stage.model.will_say("three", to="first of green")
    await stage.door.ask("first of red", "r1", session="red")
    await stage.door.ask("second of red", "r2", session="red")
    await stage.door.ask("first of green", "g1", session="green")
    assert (await stage.door.hears(ResponseGeneration)).answer == "three"
    await stage.door.hears(QueryAccepted, query_id="r2")
    assert [asked.query for asked in stage.model.asked] == ["first of red", "first of green"]
    slow.set()
    await stage.door.hears(ResponseGeneration, 3)
    assert [response.query_id for response in stage.door.of(ResponseGeneration)] == ["g1", "r1", "r2"]


async def test_a_query_without_a_session_is_a_session_of_its_own(stage: Any) -> None:
    await stage.generator()
    for number in (1, 2):
        stage.model.will_say(f"{number}.")
        await stage.door.ask(f"Question {number}", f"q{number}", session=None)
        await stage.door.hears(ResponseGeneration, number)
    assert len(stage.model.asked[1].messages) == 2


async def test_an_answer_that_reached_its_limit_is_cut_off_and_says_so(stage: Any) -> None:
    await stage.generator(max_answer_tokens=300)
    stage.model.will_say("And so on and", Done(Usage(2, 300), reason="length"))
    await stage.door.ask("Count!", "q1")
    response = await stage.door.hears(ResponseGeneration)
    assert (response.answer, response.cut_off, response.degraded) == ("And so on and", True, (CUT_OFF,))
    assert stage.model.asked[0].options["num_predict"] == 300


async def test_an_answer_has_a_limit_where_none_is_set_and_never_more_than_the_window_leaves(stage: Any) -> None:
    await stage.generator(num_ctx=2048)
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    assert (await stage.door.hears(ResponseGeneration)).cut_off is False
    assert 1000 < stage.model.asked[0].options["num_predict"] < 2048
