"""The real `openai` client talks to the stand-in as to Ollama's compatible door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import openai
import pytest

GEMMA = "gemma4:12b"
PARIS: list[Any] = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    transport = httpx.AsyncClient(trust_env=False, timeout=30)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", http_client=transport, max_retries=0) as client:
        yield client


async def test_a_whole_completion_has_content_reasoning_and_usage(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model=GEMMA, messages=PARIS)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("The capital of France is Paris.", "stop")
    assert choice.message.model_dump()["reasoning"]
    assert answer.usage and answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert (answer.object, answer.model) == ("chat.completion", GEMMA)


async def test_a_streamed_completion_ends_with_a_reason_and_the_usage_asked_for(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model=GEMMA, messages=PARIS, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == "The capital of France is Paris."
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert not chunks[-1].choices
    assert chunks[-1].usage and chunks[-1].usage.completion_tokens
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_second_question_is_understood_from_the_first(client: openai.AsyncOpenAI, streamed: bool) -> None:
    messages: list[Any] = []
    for question in ("What is the Python GIL?", "Why was it introduced?"):
        messages.append({"role": "user", "content": question})
        if streamed:
            stream = await client.chat.completions.create(model=GEMMA, messages=messages, stream=True)
            answer = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        else:
            whole = await client.chat.completions.create(model=GEMMA, messages=messages)
            answer = whole.choices[0].message.content or ""
        messages.append({"role": "assistant", "content": answer})
    assert "reference counting" in messages[-1]["content"]


@pytest.mark.parametrize("effort", ["none", "low"])
async def test_reasoning_can_be_turned_off(client: openai.AsyncOpenAI, effort: Any) -> None:
    answer = await client.chat.completions.create(model=GEMMA, messages=PARIS, reasoning_effort=effort)
    assert ("reasoning" in answer.choices[0].message.model_dump(exclude_none=True)) is (effort != "none")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_round_trip_ends_in_a_quote(
    client: openai.AsyncOpenAI, tool: Callable[..., Any], streamed: bool
) -> None:
    tools = [tool("web_search")]
    messages: list[Any] = [{"role": "user", "content": "What is the latest news?"}]
    if streamed:
        stream = await client.chat.completions.create(model=GEMMA, messages=messages, tools=tools, stream=True)
        choices = [chunk.choices[0] async for chunk in stream]
        call: Any = next(choice.delta.tool_calls[0] for choice in choices if choice.delta.tool_calls)
        reason = choices[-1].finish_reason
    else:
        asked = await client.chat.completions.create(model=GEMMA, messages=messages, tools=tools)
        call, reason = (asked.choices[0].message.tool_calls or [None])[0], asked.choices[0].finish_reason
    assert reason == "tool_calls"
    assert json.loads(call.function.arguments) == {"query": "What is the latest news"}
    function = {"name": call.function.name, "arguments": call.function.arguments}
    messages.append(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
        }
    )
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "Peace was made in Utopia."})
    answer = await client.chat.completions.create(model=GEMMA, messages=messages, tools=tools)
    assert answer.choices[0].message.content == "web_search says: Peace was made in Utopia."


async def test_a_json_schema_is_kept_to(client: openai.AsyncOpenAI) -> None:
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = await client.chat.completions.create(model=GEMMA, messages=PARIS, response_format=wanted)
    assert answer.choices[0].message.content == '{"sure": false}'


async def test_text_parts_and_a_token_limit_are_understood(client: openai.AsyncOpenAI) -> None:
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": "What is the capital of France?"}]}]
    answer = await client.chat.completions.create(model=GEMMA, messages=parts, max_tokens=1, reasoning_effort="none")
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("The ", "length")


async def test_embeddings_are_the_same_as_numbers_and_as_base64(client: openai.AsyncOpenAI) -> None:
    # The client asks for base64 by itself.
    encoded = await client.embeddings.create(model="nomic-embed-text", input=["green tea", "coffee"])
    plain = await client.embeddings.create(model="nomic-embed-text", input="green tea", encoding_format="float")
    assert encoded.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    assert [entry.index for entry in encoded.data] == [0, 1]


async def test_models_are_listed_and_found(client: openai.AsyncOpenAI) -> None:
    assert GEMMA in [model.id async for model in client.models.list()]
    assert (await client.models.retrieve(GEMMA)).owned_by == "library"
    with pytest.raises(openai.NotFoundError, match="llama9"):
        await client.models.retrieve("llama9")


async def test_errors_have_openais_form(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="model 'llama9' not found") as missing:
        await client.chat.completions.create(model="llama9", messages=PARIS)
    assert missing.value.type == "not_found_error"
    with pytest.raises(openai.BadRequestError, match="too short"):
        await client.chat.completions.create(model=GEMMA, messages=[])


@pytest.mark.parametrize(
    "field",
    [
        {"messages": ["x"]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": [{"type": "noise"}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "t", "arguments": "{"}}]}]},
        {"reasoning": "much"},
        {"response_format": "json"},
        {"stream": True, "stream_options": 1},
    ],
)
async def test_a_malformed_request_is_a_400_with_a_reason(client: openai.AsyncOpenAI, field: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as error:
        await client.post("/chat/completions", body={"model": GEMMA, "messages": PARIS, **field}, cast_to=object)
    assert error.value.type == "invalid_request_error"
