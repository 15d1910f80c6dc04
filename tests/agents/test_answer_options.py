"""What an asker wants of one answer: its own functions, a form, a manner, fewer tools, and that it is remembered."""

from typing import Any

import pytest

from local.bus.messages import AnswerOptions, ResponseGeneration, ToolCallRecord
from local.models.chat import ToolCall

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}


async def ask(stage: Any, **fields: Any) -> ResponseGeneration:
    await stage.door.ask("How is the weather in Oslo?", "q1", session=None, history=(), **fields)
    response: ResponseGeneration = await stage.door.hears(ResponseGeneration, query_id="q1")
    return response


async def test_a_call_of_the_askers_function_ends_the_answer_and_no_tool_is_asked(stage: Any, dice: Any) -> None:
    await stage.tool(dice)
    await stage.generator()
    stage.model.will_say("I look. ", ToolCall("weather", {"city": "Oslo"}), ToolCall("dice", {}))
    response = await ask(stage, options=AnswerOptions(functions=(WEATHER,)))
    [call] = response.client_calls
    assert (call.function, call.arguments, response.tool_calls) == ("weather", {"city": "Oslo"}, ())
    assert stage.model.asked[0].tools == ["dice", "weather"]
    assert "tool.request.dice" not in stage.door.subjects("q1")
    assert not response.is_memorable


async def test_what_has_followed_the_question_is_told_after_it_and_taints(stage: Any) -> None:
    await stage.generator()
    call = {"id": "c", "function": {"name": "weather", "arguments": {}}}
    continued = (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "weather", "tool_call_id": "c", "content": "Snow."},
    )
    stage.model.will_say("It snows.")
    response = await ask(stage, options=AnswerOptions(functions=(WEATHER,)), continued=continued)
    assert response.answer == "It snows." and response.tainted
    roles = [message["role"] for message in stage.model.asked[0].messages]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_a_call_that_must_be_made_is_asked_for_as_a_form_and_read_from_the_text(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say('{"name": "weather", "arguments": {"city": "Oslo"}}')
    response = await ask(stage, options=AnswerOptions(functions=(WEATHER, TIME), must_call="weather"))
    [call] = response.client_calls
    assert call.arguments == {"city": "Oslo"}
    form = stage.model.asked[0].format
    assert form["properties"]["name"]["const"] == "weather" and "anyOf" not in form
    assert len(AnswerOptions(functions=(WEATHER, TIME), must_call="any").form["anyOf"]) == 2


async def test_one_call_at_a_time_is_one(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say(ToolCall("weather", {"city": "Oslo"}), ToolCall("time", {}))
    response = await ask(stage, options=AnswerOptions(functions=(WEATHER, TIME), one_call=True))
    assert [call.function for call in response.client_calls] == ["weather"]


async def test_the_manner_of_one_answer_goes_to_the_model(stage: Any) -> None:
    await stage.generator(temperature=0.1)
    stage.model.will_say("{}")
    wanted = AnswerOptions(temperature=1.5, seed=7, stop=("END",), max_tokens=5, think=False, format={"type": "object"})
    await ask(stage, options=wanted)
    [asked] = stage.model.asked
    said = {name: asked.options[name] for name in ("temperature", "seed", "stop", "num_predict")}
    assert said == {"temperature": 1.5, "seed": 7, "stop": ["END"], "num_predict": 5}
    assert (asked.format, asked.think) == ({"type": "object"}, False)


@pytest.mark.parametrize(
    "options", [AnswerOptions(deny=("dice",)), AnswerOptions(allow=()), AnswerOptions(format={"type": "object"})]
)
async def test_a_tool_that_is_not_wanted_is_not_offered_and_not_called_if_the_model_calls_it(
    stage: Any, dice: Any, options: AnswerOptions
) -> None:
    await stage.tool(dice)
    await stage.generator()
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("Well.")
    response = await ask(stage, options=options)
    assert [asked.tools for asked in stage.model.asked] == [[], []]
    [record] = response.tool_calls
    assert record.error and record.error.kind == "unknown_tool"


async def test_a_tool_that_is_named_and_nobody_has_is_told_with_the_answer(stage: Any, dice: Any) -> None:
    await stage.tool(dice)
    await stage.generator()
    stage.model.will_say("Well.")
    response = await ask(stage, options=AnswerOptions(allow=("dice", "read_result"), deny=("dise", "todo")))
    assert response.degraded == ("no tool is called 'dise' now",)


async def test_an_exchange_is_memorable_if_the_asker_wants_it(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("Noted.")
    remembered = await ask(stage, options=AnswerOptions(remember=True))
    assert remembered.is_memorable and not remembered.in_history
    plain = remembered.model_copy(update={"remember": False})
    assert not plain.is_memorable
    assert not remembered.model_copy(update={"incognito": True}).is_memorable
    record = ToolCallRecord(call_id="c", tool="t", args={})
    assert remembered.model_copy(update={"tool_calls": (record,)}).is_memorable


async def test_a_generator_that_is_replaced_after_the_call_gives_the_same_answer(stage: Any) -> None:
    served = await stage.doomed_generator("turn.end_stored")
    stage.model.will_say(ToolCall("weather", {"city": "Oslo"}))
    await stage.door.ask("Weather?", "q1", session=None, history=(), options=AnswerOptions(functions=(WEATHER,)))
    await served.dead()
    await stage.generator()
    response = await stage.door.hears(ResponseGeneration, query_id="q1")
    assert [call.function for call in response.client_calls] == ["weather"]
    assert len(stage.model.asked) == 1
