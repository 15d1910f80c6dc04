"""One suite for both model clients: each speaks its own API to the same stand-in and must tell the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.core.errors import ModelError
from local.models.chat import ChatModel, ContentDelta, Delta, Done, Json, ThinkingDelta, TokenScores, ToolCall
from tests.models.wires import OLLAMA, OPENAI

GEMMA, ANSWER = "gemma4:12b", "The capital of France is Paris."
PARIS: list[Json] = [{"role": "user", "content": "What is the capital of France?"}]
NEWS: list[Json] = [{"role": "user", "content": "What is the latest news?"}]


@pytest.fixture(params=[OLLAMA, OPENAI], ids=["ollama", "openai"])
async def model(request: pytest.FixtureRequest, stand_in: str) -> AsyncIterator[ChatModel]:
    model = request.param.client(stand_in)
    yield model
    await model.close()


def tool(name: str) -> Json:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


async def chat(model: ChatModel, messages: list[Json] = PARIS, **how: Any) -> list[Delta]:
    return [delta async for delta in model.chat(GEMMA, messages, **how)]


def content(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))


def calls(deltas: list[Delta]) -> list[ToolCall]:
    return [delta for delta in deltas if isinstance(delta, ToolCall)]


async def test_it_says_an_answer_in_pieces_and_what_it_cost(model: ChatModel) -> None:
    deltas = await chat(model)
    assert content(deltas) == ANSWER and sum(isinstance(delta, ContentDelta) for delta in deltas) > 1
    done = deltas[-1]
    assert isinstance(done, Done) and (done.reason, done.model) == ("stop", GEMMA)
    assert done.usage.prompt_tokens > 0 and done.usage.completion_tokens > 0
    cut = (await chat(model, options={"num_predict": 1}))[-1]
    assert isinstance(cut, Done) and cut.reason == "length"


async def test_it_thinks_before_the_answer_if_and_only_if_asked_to(model: ChatModel) -> None:
    for think in (True, False):
        kinds = [type(delta) for delta in await chat(model, think=think)]
        assert (kinds[0] is ThinkingDelta) is (ThinkingDelta in kinds) is think


async def test_several_calls_in_one_message_and_their_results_keep_their_order(model: ChatModel, stand_in: str) -> None:
    wanted = [{"name": name, "arguments": {"query": name}} for name in ("first", "second")]
    replies = [{"tool_calls": wanted}, {"content": "{result:1}|{result:2}"}]
    async with httpx.AsyncClient(base_url=stand_in, trust_env=False, verify=False) as control:
        story = {"story": "x", "turns": [{"user": ".", "replies": replies}]}
        (await control.post("/stand_in/script", json=story)).raise_for_status()
        tools = [tool("first"), tool("second")]
        made = calls(await chat(model, NEWS, tools=tools))
        assert [{"name": call.name, "arguments": call.arguments} for call in made] == wanted
        functions = [{"function": {"name": call.name, "arguments": call.arguments}, "id": "same"} for call in made]
        asked = {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": functions}
        results = [
            {"role": "tool", "tool_name": call.name, "tool_call_id": "same", "content": call.name} for call in made
        ]
        messages = [{"role": "system", "content": "Be brief."}, *NEWS, asked, *results]
        options = {"temperature": 0.5, "num_predict": 100, "seed": 7}
        assert content(await chat(model, messages, tools=tools, options=options)) == "first|second"
        request = (await control.get("/stand_in/log")).json()["requests"][-1]
    assert [(m["role"], m["content"]) for m in request["messages"]] == [(m["role"], m["content"]) for m in messages]
    assert options.items() <= request["options"].items()


async def test_conversations_side_by_side_are_not_mixed_up(model: ChatModel) -> None:
    questions = [f"What is {n} + {n}?" for n in range(5)]
    answers = await asyncio.gather(*(chat(model, [{"role": "user", "content": q}]) for q in questions))
    assert all(str(2 * n) in content(deltas) for n, deltas in enumerate(answers))


async def test_a_reply_follows_its_schema_and_tells_probabilities_if_asked_for(model: ChatModel) -> None:
    score = {"type": "integer", "enum": [3]}
    schema = {"type": "object", "properties": {"score": score}, "required": ["score"], "additionalProperties": False}
    assert json.loads(content(await chat(model, format=schema))) == {"score": 3}
    scores = [delta for delta in await chat(model, logprobs=True) if isinstance(delta, TokenScores)]
    told = [token for each in scores for token in each.tokens]
    assert "".join(token.text for token in told) == ANSWER
    assert all(max(token.alternatives, key=token.alternatives.__getitem__) == token.text for token in told)


async def test_vectors_and_what_is_known_of_a_model(model: ChatModel) -> None:
    tea, coffee = await model.embed("nomic-embed-text", ["green tea", "coffee"])
    assert len(tea) == len(coffee) == 768 and tea != coffee
    info = await model.show(GEMMA)
    # OpenAI's API says neither; what is said is never a guess.
    assert info.capabilities in (frozenset(), frozenset({"completion", "vision", "tools", "thinking"}))
    assert info.context_length in (None, 262_144)


async def test_a_model_that_is_not_there_is_reported_as_missing(model: ChatModel) -> None:
    async def ask() -> None:
        _ = [delta async for delta in model.chat("llama9", PARIS)]

    for asked in (model.show("llama9"), ask(), model.embed("llama9", ["a"])):
        with pytest.raises(ModelError, match="llama9") as caught:
            await asked
        assert caught.value.kind == "model_missing"
