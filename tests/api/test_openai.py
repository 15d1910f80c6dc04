"""The real `openai` client uses LoCAL2 as a model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest

from local.api.openai import missing_text
from local.bus.messages import AnswerOptions, ParticipantStatus
from local.bus.vocabulary import MEMORY_TOOLS

System = Any  # of conftest.py
MODEL = "local2"


@pytest.fixture
async def ai(client: httpx.AsyncClient, system: System) -> AsyncIterator[openai.AsyncOpenAI]:
    transport = httpx.AsyncClient(trust_env=False, verify=False)
    async with openai.AsyncOpenAI(
        base_url=f"{system.url}/v1", api_key="any", http_client=transport, max_retries=0
    ) as ai:
        yield ai


def said(*texts: str) -> list[Any]:
    roles = ("user", "assistant")
    return [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]


WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
HI: list[Any] = said("call me")


def called(call_id: str, arguments: str) -> Any:
    call = {"id": call_id, "type": "function", "function": {"name": "weather", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def result(call_id: str, text: str = "Snow.") -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


async def test_a_call_of_the_clients_function_is_handed_out_whole_and_streamed(ai: openai.AsyncOpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": HI, "tools": [WEATHER]}
    whole = await ai.chat.completions.create(**asked)
    [call] = whole.choices[0].message.tool_calls or []
    assert (whole.choices[0].finish_reason, call.function.name) == ("tool_calls", "weather")
    assert call.function.arguments == '{"city": "Oslo"}'
    async with ai.chat.completions.stream(**asked) as stream:
        final = await stream.get_final_completion()
    assert [each.function.name for each in final.choices[0].message.tool_calls or []] == ["weather"]
    assert final.choices[0].finish_reason == "tool_calls"


async def test_results_of_the_client_come_after_the_question_that_they_are_for(
    ai: openai.AsyncOpenAI, system: System
) -> None:
    messages = [*said("hi", "Hi there."), *HI, called("c1", '{"city": "Oslo"}'), result("c1")]
    await ai.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
    [asked] = system.generator.turns.values()
    assert (asked.query, len(asked.history)) == ("call me", 2)
    assert asked.continued == (
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}],
        },
        {"role": "tool", "content": "Snow.", "tool_name": "weather", "tool_call_id": "c1"},
    )
    assert asked.options.function_names == {"weather"} and asked.options.allow == ()


async def test_arguments_that_a_strict_function_refuses_are_an_error(ai: openai.AsyncOpenAI) -> None:
    function = {"name": "weather", "strict": True, "parameters": {"type": "object", "required": ["country"]}}
    strict: Any = [{"type": "function", "function": function}]
    with pytest.raises(openai.InternalServerError, match="weather, which is strict"):
        await ai.chat.completions.create(model=MODEL, messages=HI, tools=strict)
    stream = await ai.chat.completions.create(model=MODEL, messages=HI, tools=strict, stream=True)
    with pytest.raises(openai.APIError, match="weather, which is strict"):
        async for _ in stream:
            pass


async def test_what_is_wanted_of_the_answer_goes_with_the_query(ai: openai.AsyncOpenAI, system: System) -> None:
    schema = {"name": "x", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    await ai.chat.completions.create(
        model="local2:remember", messages=said("endless"), temperature=0.5, top_p=0.9, seed=3, stop="END",
        max_completion_tokens=9, presence_penalty=1, frequency_penalty=-1, reasoning_effort="none",
        response_format={"type": "json_schema", "json_schema": schema},
    )  # fmt: skip
    [asked] = system.generator.turns.values()
    assert asked.options == AnswerOptions(
        temperature=0.5, top_p=0.9, seed=3, stop=("END",), max_tokens=9, presence_penalty=1, frequency_penalty=-1,
        think=False, format=schema["schema"], remember=True, mode="dontAsk",
    )  # fmt: skip


async def test_a_plain_request_wants_nothing_but_that_nobody_is_asked(ai: openai.AsyncOpenAI, system: System) -> None:
    await ai.chat.completions.create(model=MODEL, messages=said("hello"), user="u", metadata={"a": "b"}, store=False)
    [asked] = system.generator.turns.values()
    assert asked.options == AnswerOptions(mode="dontAsk", deny=MEMORY_TOOLS) and asked.continued == ()


async def test_text_that_may_be_a_call_is_held_back_until_that_is_known(ai: openai.AsyncOpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": HI, "tools": [WEATHER], "tool_choice": "required", "stream": True}
    stream = await ai.chat.completions.create(**asked)
    chunks = [choice async for chunk in stream for choice in chunk.choices]
    calls = [index for index, choice in enumerate(chunks) if choice.delta.tool_calls]
    assert [choice.delta.content for choice in chunks[: calls[0] - 1] if choice.delta.content] == []


async def test_a_name_of_ours_that_is_none_is_not_found(ai: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="there is no model local2:rember"):
        await ai.chat.completions.create(model="local2:rember", messages=said("hello"))


async def test_a_whole_completion_has_answer_reasoning_and_usage(ai: openai.AsyncOpenAI) -> None:
    answer = await ai.chat.completions.create(model=MODEL, messages=said("hello"), temperature=0.1, n=1)
    [choice] = answer.choices
    assert (choice.message.content, choice.finish_reason, answer.model) == ("Hi there.", "stop", "gemma4:12b")
    assert choice.message.model_dump()["reasoning"] == "Let me see."
    assert answer.usage and (answer.usage.prompt_tokens, answer.usage.total_tokens) == (7, 10)


async def test_a_streamed_completion_says_the_same_and_ends_with_usage_if_asked(ai: openai.AsyncOpenAI) -> None:
    stream = await ai.chat.completions.create(
        model=MODEL, messages=said("hello"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    deltas = [choice.delta.model_dump() for chunk in chunks for choice in chunk.choices]
    assert "".join(delta["content"] or "" for delta in deltas) == "Hi there."
    assert "".join(delta.get("reasoning") or "" for delta in deltas) == "Let me see."
    assert deltas[0]["role"] == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage and chunks[-1].usage.total_tokens == 10
    assert len({chunk.id for chunk in chunks}) == 1


async def test_an_answer_that_was_cut_off_ends_by_its_length(ai: openai.AsyncOpenAI) -> None:
    whole = await ai.chat.completions.create(model=MODEL, messages=said("endless"))
    stream = await ai.chat.completions.create(model=MODEL, messages=said("endless"), stream=True)
    reasons = [choice.finish_reason async for chunk in stream for choice in chunk.choices]
    assert (whole.choices[0].finish_reason, reasons[-1]) == ("length", "length")


async def test_without_asking_there_is_no_usage_in_a_stream(ai: openai.AsyncOpenAI) -> None:
    stream = await ai.chat.completions.create(model=MODEL, messages=said("hello"), stream=True)
    assert [chunk.usage async for chunk in stream if chunk.usage] == []


async def test_the_messages_sent_are_the_history(ai: openai.AsyncOpenAI, system: System) -> None:
    first: list[Any] = [{"role": "developer", "content": "Be brief."}]
    last: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "hello "}, {"type": "text", "text": "again"}]}
    ]
    await ai.chat.completions.create(model=MODEL, messages=first + said("hi", "Hi there.") + last)
    [asked] = system.generator.turns.values()
    assert asked.query == "hello again"
    assert asked.history == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hi there."},
    )


def taking(parameters: Any) -> Any:
    return {"type": "function", "function": {"name": "other", "parameters": parameters}}


def each(schema: Any) -> Any:
    return {"type": "object", "properties": {"a": schema}}


def formed(schema: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


async def test_a_schema_that_says_little_or_much_is_taken(ai: openai.AsyncOpenAI) -> None:
    rich = {
        "type": "object", "required": ["a"], "additionalProperties": False,
        "$defs": {"B": {"type": ["string", "null"]}},
        "properties": {"a": {"anyOf": [{"$ref": "#/$defs/B"}, True]}, "b": {"items": {}, "minItems": 1}},
    }  # fmt: skip
    older: dict[str, Any] = {"properties": {"a": {"items": [{}, {"type": "string", "pattern": r"^\p{L}+$"}]}}}
    for schema in ({}, {"type": "object"}, {"properties": {"type": {"enum": [1, None]}}}, rich, older):
        answer = await ai.chat.completions.create(model=MODEL, messages=HI, tools=[taking(schema)])
        assert answer.choices[0].message.content


async def test_what_cannot_be_done_is_400_in_the_shape_of_openai(ai: openai.AsyncOpenAI) -> None:
    for change, param in [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"logit_bias": {"50256": -100}}, "logit_bias"),
        ({"extra_body": {"top_k": 5}}, "top_k"),
        ({"temperature": 3}, "temperature"),
        ({"tools": [WEATHER, WEATHER]}, "tools"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": formed({"type": "text"})}, "response_format.json_schema.schema.type"),
        ({"tools": [taking({"type": "string"})]}, "tools.0.function.parameters.type"),
        ({"tools": [WEATHER, taking({"properties": ["a"]})]}, "tools.1.function.parameters.properties"),
        ({"tools": [taking(each(5))]}, "tools.0.function.parameters.properties.a"),
        ({"tools": [taking(each({"type": "strng"}))]}, "tools.0.function.parameters.properties.a.type"),
        ({"tools": [taking(each({"type": ["string", 5]}))]}, "tools.0.function.parameters.properties.a.type"),
        ({"tools": [taking(each({"enum": "b"}))]}, "tools.0.function.parameters.properties.a.enum"),
        ({"tools": [taking(each({"anyOf": []}))]}, "tools.0.function.parameters.properties.a.anyOf"),
        (
            {"tools": [taking(each({"items": {"minimum": "1"}}))]},
            "tools.0.function.parameters.properties.a.items.minimum",
        ),
        ({"tools": [taking({"required": "a"})]}, "tools.0.function.parameters.required"),
        (
            {"tools": [taking({"$defs": {"B": {"oneOf": [{"type": 1}]}}})]},
            "tools.0.function.parameters.$defs.B.oneOf.0.type",
        ),
        ({"response_format": formed({"required": ["x" * 9000] * 2})}, "response_format.json_schema.schema.required"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "messages"),
        ({"messages": [*HI, {"role": "tool", "content": "x", "tool_call_id": "1"}]}, "messages.1.tool_call_id"),
        ({"messages": [*HI, called("c1", "{"), result("c1")]}, "messages.1.tool_calls"),
        ({"messages": [*HI, called("c1", "[]"), result("c1")]}, "messages.1.tool_calls"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
            "messages.0.content",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}, "messages.0.content"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"max_tokens": 2**31}, "max_tokens"),
        ({"seed": 2**63}, "seed"),
        ({"model": ""}, "model"),
    ]:
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.chat.completions.create(**{"model": MODEL, "messages": said("hello"), **change})
        body: Any = refused.value.body
        assert (body["type"], body["param"]) == ("invalid_request_error", param)
        assert body["message"]
        assert len(body["message"]) < 400


async def test_a_failed_turn_is_an_error_whole_and_streamed(ai: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.InternalServerError, match="went away") as failed:
        await ai.chat.completions.create(model=MODEL, messages=said("fail"))
    assert failed.value.status_code == 502
    stream = await ai.chat.completions.create(model=MODEL, messages=said("fail"), stream=True)
    with pytest.raises(openai.APIError, match="went away"):
        async for _ in stream:
            pass


@pytest.mark.parametrize("stream", [True, False])
async def test_a_busy_system_is_a_rate_limit(ai: openai.AsyncOpenAI, stream: bool) -> None:
    with pytest.raises(openai.RateLimitError):
        await ai.chat.completions.create(model=MODEL, messages=said("busy"), stream=stream)


async def test_a_wrong_token_is_an_authentication_error(system: System) -> None:
    url = f"{system.url}/v1"
    async with (
        system.frontend(api_token="secret") as client,
        openai.AsyncOpenAI(base_url=url, api_key="wrong", http_client=client, max_retries=0) as ai,
    ):
        with pytest.raises(openai.AuthenticationError):
            await ai.models.list()


async def test_the_model_is_listed_once_the_generator_has_named_it(ai: openai.AsyncOpenAI, system: System) -> None:
    async with system.bus("generator") as bus:
        await bus.ready()
        details = {"model": "gemma4:12b"}
        beat = ParticipantStatus(name="generator", kind="agent", pid=1, instance="i", state="ready", details=details)
        assert bus.post(beat)
        assert [model.id for model in (await ai.models.list()).data][:3] == ["gemma4:12b", "local2", "local2:remember"]
        assert (await ai.models.retrieve("local2:remember")).owned_by == "local2"
        with pytest.raises(openai.NotFoundError, match="there is no model nobody"):
            await ai.models.retrieve("nobody")


@pytest.mark.parametrize(
    ("partial_answer", "answer", "missing"),
    [
        ("Hi there.", "Hi there.", ""),
        ("Let me look. It is 4.", "It is 4.", ""),
        ("Hi ", "Hi there.", "there."),
        ("", "Hi there.", "Hi there."),
        ("Hello wor", "It is 4.", "\n\nIt is 4."),
        ("Hi", "", ""),
    ],
)
def test_a_stream_ends_with_whatever_the_client_has_not_been_sent(
    partial_answer: str, answer: str, missing: str
) -> None:
    assert missing_text(partial_answer, answer) == missing


async def test_a_required_call_that_was_not_made_is_an_error_whole_and_streamed(ai: openai.AsyncOpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": said("hello"), "tools": [WEATHER], "tool_choice": "required"}
    with pytest.raises(openai.APIError, match="tool_choice requires a call"):
        await ai.chat.completions.create(**asked)
    with pytest.raises(openai.APIError, match="tool_choice requires a call"):
        async for _ in await ai.chat.completions.create(**asked, stream=True):
            pass


@pytest.mark.parametrize("form", ["json_object", "json_schema"])
async def test_an_answer_in_another_form_than_required_is_an_error(ai: openai.AsyncOpenAI, form: str) -> None:
    schema = {"name": "x", "schema": {"type": "object", "required": ["a"]}}
    asked: Any = {"model": MODEL, "response_format": {"type": form, "json_schema": schema}}
    with pytest.raises(openai.APIError, match="does not follow response_format"):
        await ai.chat.completions.create(messages=said("hello"), **asked)
    with pytest.raises(openai.APIError, match="does not follow response_format"):
        async for _ in await ai.chat.completions.create(messages=said("hello"), **asked, stream=True):
            pass
    cut_off = await ai.chat.completions.create(messages=said("endless"), **asked)
    assert cut_off.choices[0].finish_reason == "length"
