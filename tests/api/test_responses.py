"""The real `openai` client asks by OpenAI's responses, as Codex and Zed do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest

from local.bus.messages import AnswerOptions
from local.bus.vocabulary import MEMORY_TOOLS

System = Any  # of conftest.py
MODEL = "local2"
PARAMETERS: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}


@pytest.fixture
async def ai(client: httpx.AsyncClient, system: System) -> AsyncIterator[openai.AsyncOpenAI]:
    transport = httpx.AsyncClient(trust_env=False, verify=False)
    async with openai.AsyncOpenAI(
        base_url=f"{system.url}/v1", api_key="any", http_client=transport, max_retries=0
    ) as ai:
        yield ai


async def streamed(ai: openai.AsyncOpenAI, **asked: Any) -> list[Any]:
    return [event async for event in await ai.responses.create(model=MODEL, stream=True, **asked)]


async def test_a_whole_response_has_thinking_answer_and_usage(ai: openai.AsyncOpenAI) -> None:
    response = await ai.responses.create(model=MODEL, input="hello")
    assert (response.status, response.output_text, response.model) == ("completed", "Hi there.", "gemma4:12b")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.usage and (response.usage.input_tokens, response.usage.total_tokens) == (7, 10)


async def test_a_stream_says_the_same_piece_by_piece(ai: openai.AsyncOpenAI) -> None:
    events = await streamed(ai, input="hello")
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hi there."
    assert "".join(event.delta for event in events if event.type == "response.reasoning_text.delta") == "Let me see."
    last = events[-1].response
    assert (last.output_text, last.usage.output_tokens) == ("Hi there.", 3)
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.model_dump() for item in done] == [item.model_dump() for item in last.output]


async def test_a_call_is_handed_out_and_its_output_follows_the_question(ai: openai.AsyncOpenAI, system: System) -> None:
    whole = await ai.responses.create(model=MODEL, input="call me", tools=[WEATHER])
    *_, call = whole.output
    assert call.type == "function_call" and (call.name, call.arguments) == ("weather", '{"city": "Oslo"}')
    events = await streamed(ai, input="call me", tools=[WEATHER])
    *_, last = events[-1].response.output
    assert last.type == "function_call" and (last.name, last.arguments) == (call.name, call.arguments)
    items: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        *[item.model_dump(exclude_none=True) for item in whole.output],
        {"type": "function_call_output", "call_id": call.call_id, "output": "Snow."},
    ]
    await ai.responses.create(model=MODEL, instructions="Be brief.", input=items, tools=[WEATHER])
    asked = list(system.generator.turns.values())[-1]
    assert (asked.query, asked.history) == ("hello", ({"role": "system", "content": "Be brief."},))
    assert [each["role"] for each in asked.continued] == ["assistant", "assistant", "tool"]
    assert asked.continued[-1]["content"] == "Snow." and asked.continued[-1]["tool_name"] == "weather"


async def test_what_is_wanted_of_the_answer_goes_with_the_query(ai: openai.AsyncOpenAI, system: System) -> None:
    with pytest.raises(openai.APIError, match="does not follow response_format"):
        await ai.responses.create(
            model=MODEL, input="hello", temperature=0.5, max_output_tokens=9, store=False, include=[],
            reasoning={"effort": "none"}, text={"format": {"type": "json_schema", "name": "x", "schema": PARAMETERS}},
            tools=[{"type": "web_search"}], prompt_cache_key="x",
        )  # fmt: skip
    [asked] = system.generator.turns.values()
    expected = AnswerOptions(
        temperature=0.5, max_tokens=9, think=False, format=PARAMETERS, deny=MEMORY_TOOLS, mode="dontAsk"
    )
    assert asked.options == expected


async def test_an_answer_that_was_cut_off_is_incomplete(ai: openai.AsyncOpenAI) -> None:
    whole = await ai.responses.create(model=MODEL, input="endless")
    events = await streamed(ai, input="endless")
    for response in (whole, events[-1].response):
        assert response.status == "incomplete" and response.incomplete_details.reason == "max_output_tokens"


async def test_a_failed_turn_is_an_error_whole_and_streamed(ai: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.InternalServerError, match="went away"):
        await ai.responses.create(model=MODEL, input="fail")
    *_, last = await streamed(ai, input="fail")
    assert last.type == "response.failed" and "went away" in last.response.error.message


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id: no response is kept here"),
        ({"input": []}, "input: the last item must be"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input.0"),
        ({"tools": [{"type": "custom", "name": "x"}]}, "tools.0"),
        ({"tool_choice": "required"}, "tool_choice: there are no tools"),
        ({"background": True}, "background"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]}]}, "image_url"),
        ({"max_tool_calls": 1}, "max_tool_calls: not supported"),
    ],
)
async def test_what_cannot_be_done_is_400(ai: openai.AsyncOpenAI, asked: Any, told: str) -> None:
    with pytest.raises(openai.BadRequestError, match=told) as refused:
        await ai.responses.create(**{"model": MODEL, "input": "hello", **asked})
    assert "pydantic" not in str(refused.value)
