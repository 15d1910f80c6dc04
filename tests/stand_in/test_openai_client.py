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


async def test_embeddings_are_the_same_as_numbers_and_as_base64(client: openai.AsyncOpenAI) -> None:
    # The client asks for base64 by itself.
    encoded = await client.embeddings.create(model="nomic-embed-text", input=["green tea", "coffee"])
    plain = await client.embeddings.create(model="nomic-embed-text", input="green tea", encoding_format="float")
    assert encoded.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    assert [entry.index for entry in encoded.data] == [0, 1]


async def test_errors_have_openais_form(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="model 'llama9' not found") as missing:
        await client.chat.completions.create(model="llama9", messages=PARIS)
    assert missing.value.type == "not_found_error"
    with pytest.raises(openai.BadRequestError, match="too short"):
        await client.chat.completions.create(model=GEMMA, messages=[])
