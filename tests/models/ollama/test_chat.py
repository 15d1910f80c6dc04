"""A chat with a scripted server: what is asked, and what comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.core.errors import ModelError
from local.models.chat import (
    CannotThink,
    ChatModel,
    ContentDelta,
    Degraded,
    Delta,
    Done,
    Json,
    ThinkingDelta,
    TokenScore,
    TokenScores,
    ToolCall,
)

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
USER = [{"role": "user", "content": "Hi"}]
DONE = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}


def said(content: str) -> Json:
    return {"model": "m", "message": {"role": "assistant", "content": content}, "done": False}


async def chat(model: ChatModel, **how: Any) -> list[Delta]:
    return [delta async for delta in model.chat("m", USER, **how)]


async def test_an_answer_is_streamed_as_deltas_in_order(server: Any) -> None:
    calls = [{"id": "call_1", "function": {"name": "f", "arguments": {"a": 1}}}]
    thinking = {"message": {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": calls}}
    server.answers("/api/chat", thinking, said("Hi"), DONE)
    async with server.client() as model:
        deltas = await chat(model)
    assert deltas[:-1] == [ThinkingDelta("hm"), ToolCall("f", {"a": 1}, "call_1"), ContentDelta("Hi")]
    assert isinstance(deltas[-1], Done)


async def test_a_delta_is_given_on_before_the_next_is_sent(server: Any) -> None:
    heard = asyncio.Event()

    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.send(said("Hi"))
        await heard.wait()
        await exchange.send(DONE, end=True)

    server.scripts["/api/chat"] = script
    async with server.client() as model:
        async for delta in model.chat("m", USER):
            if delta == ContentDelta("Hi"):
                heard.set()
    assert heard.is_set()


async def test_the_request_forbids_silent_cuts_and_always_says_whether_to_think(server: Any) -> None:
    server.answers("/api/chat", DONE)
    async with server.client() as model:
        await chat(model, think=True, tools=[TOOL], options={"num_ctx": 32000})
        await chat(model)
    common = {"model": "m", "messages": USER, "stream": True, "truncate": False, "shift": False, "keep_alive": "10m"}
    first = {**common, "think": True, "tools": [TOOL], "options": {"num_ctx": 32000}}
    assert server.bodies("/api/chat") == [first, {**common, "think": False}]


async def test_what_the_model_cannot_do_is_left_out_and_told(server: Any) -> None:
    server.answers("/api/show", {"capabilities": ["completion"], "model_info": {}})
    server.answers("/api/chat", DONE)
    async with server.client() as model:
        deltas = await chat(model, think=True, tools=[TOOL])
    assert [type(delta) for delta in deltas] == [CannotThink, Degraded, Done]
    assert not {"think", "tools"} & server.bodies("/api/chat")[0].keys()


async def test_that_a_model_cannot_think_is_said_once(server: Any) -> None:
    server.answers("/api/show", {"capabilities": ["completion"], "model_info": {}})
    server.answers("/api/chat", DONE)
    async with server.client() as model:
        first, second = [await chat(model, think=True, tools=[TOOL]) for _ in range(2)]
    assert [type(delta) for delta in first] == [CannotThink, Degraded, Done]
    assert [type(delta) for delta in second] == [Degraded, Done]


async def test_a_message_may_hold_a_lone_surrogate(server: Any) -> None:
    server.answers("/api/chat", DONE)
    messages = [{"role": "user", "content": "\ud83d"}]
    async with server.client() as model:
        assert [delta async for delta in model.chat("m", messages)]
    assert server.bodies("/api/chat")[0]["messages"] == messages


async def test_calls_one_after_the_other_share_a_connection(server: Any) -> None:
    server.answers("/api/chat", said("Hi"), DONE)
    async with server.client() as model:
        for _ in range(3):
            await chat(model)
    assert server.connections == 2  # the package, which has looked at the model, has its own


async def test_an_answer_whose_body_does_not_end_is_complete_all_the_same(server: Any) -> None:
    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.send(DONE)
        await exchange.disconnected()

    server.scripts["/api/chat"] = script
    async with server.client() as model:
        assert isinstance((await chat(model))[-1], Done)


async def test_more_conversations_than_the_usual_pool_run_side_by_side(server: Any) -> None:
    everyone = asyncio.Barrier(120)

    async def script(exchange: Any) -> None:
        await everyone.wait()
        await exchange.answer(DONE)

    server.scripts["/api/chat"] = script
    async with server.client() as model:
        await model.show("m")
        outcomes = await asyncio.gather(*(chat(model) for _ in range(everyone.parties)))
    assert all(isinstance(deltas[-1], Done) for deltas in outcomes)


async def test_capabilities_are_asked_once_and_again_after_a_failure(server: Any) -> None:
    server.answers("/api/chat", DONE)
    async with server.client() as model:
        await chat(model)
        await chat(model)
        assert len(server.bodies("/api/show")) == 1
        server.answers("/api/chat", {"error": '"m" does not support thinking'}, status=400)
        with pytest.raises(ModelError, match="does not support thinking") as caught:
            await chat(model)
        server.answers("/api/chat", DONE)
        await chat(model)
    assert (caught.value.kind, caught.value.status) == ("unsupported", 400)
    assert len(server.bodies("/api/show")) == 2


async def test_every_request_and_answer_is_logged_when_debugging(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "local.models")
    server.answers("/api/chat", said("Hällo"), DONE)
    async with server.client() as model:
        await chat(model)
    assert '"content": "Hi"' in caplog.text
    assert "has answered" in caplog.text


async def test_probabilities_are_asked_for_and_given_on(server: Any) -> None:
    scores = [{"token": "4", "logprob": -0.1, "top_logprobs": [{"token": "5", "logprob": -2.5}]}]
    server.answers("/api/chat", {**said("4"), "logprobs": scores}, DONE)
    async with server.client() as model:
        deltas = await chat(model, logprobs=True)
    assert deltas[:2] == [ContentDelta("4"), TokenScores((TokenScore("4", {"4": -0.1, "5": -2.5}),))]
    (body,) = server.bodies("/api/chat")
    assert (body["logprobs"], body["top_logprobs"]) == (True, 10)
