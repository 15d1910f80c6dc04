"""A chat and the other requests with a scripted OpenAI-compatible server: what is asked, and what comes back."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from local.core.errors import ModelBusy, ModelError
from local.models.chat import (
    CannotThink,
    ChatModel,
    ContentDelta,
    Degraded,
    Delta,
    Done,
    Json,
    ModelInfo,
    TokenScore,
    TokenScores,
    Usage,
)
from local.models.openai import OpenAIModel

USER = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
KEY = "sk-very-secret-0123456789"
CHAT = "/v1/chat/completions"


def said(reason: str | None = None, **delta: Any) -> Json:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


STOP = (said("stop"), "[DONE]")


async def chat(model: ChatModel, **how: Any) -> list[Delta]:
    return [delta async for delta in model.chat("m", USER, **how)]


async def failure(server: Any, **limits: float) -> ModelError:
    async with server.client(**limits) as model:
        with pytest.raises(ModelError) as caught:
            await chat(model)
    return caught.value


async def test_the_request_is_openais_and_carries_the_key(server: Any) -> None:
    server.says(*STOP)
    async with server.client() as model:
        await chat(model, tools=[TOOL], think=True, options={"num_ctx": 9, "temperature": 0})
    assert server.bodies(CHAT) == [
        {
            "model": "m",
            "messages": USER,
            "stream": True,
            "stream_options": {"include_usage": True},
            "chat_template_kwargs": {"enable_thinking": True},
            "tools": [TOOL],
            "temperature": 0,
        }
    ]
    assert all(f"Authorization: Bearer {KEY}" in head for head in server.heads)


async def test_without_a_key_none_is_sent(server: Any) -> None:
    server.says(*STOP)
    async with server.client(api_key="") as model:
        await chat(model)
    assert not any("authorization" in head.lower() for head in server.heads)


async def test_the_key_is_in_no_log_line(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.says(said(content="Hällo"), *STOP)
    async with server.client() as model:
        await chat(model)
        server.answers(CHAT, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, status=401)
        with pytest.raises(ModelError, match=r"check the API key") as caught:
            await chat(model)
    assert KEY not in str(caught.value)
    assert '"content": "Hi"' in caplog.text
    assert KEY not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("local"))
    assert "Bearer" not in caplog.text


async def test_what_cannot_be_left_out_silently_is_told(server: Any) -> None:
    server.says(*STOP)
    server.lists({"id": "m", "supported_parameters": []})
    async with server.client() as model:
        deltas = await chat(model, think=True, tools=[TOOL])
    assert [type(delta) for delta in deltas] == [CannotThink, Degraded, Done]


async def test_a_model_that_is_not_listed_is_asked_all_the_same(server: Any) -> None:
    server.says(said(content="Hi"), *STOP)
    for listing in ({"data": []}, {"data": [{"id": "x"}]}):
        server.answers("/v1/models", listing)
        async with server.client() as model:
            assert (await chat(model))[0] == ContentDelta("Hi")
    server.answers("/v1/models", {"detail": "Not Found"}, status=404)
    async with server.client() as model:
        assert (await chat(model))[0] == ContentDelta("Hi")
    assert "chat_template_kwargs" not in server.bodies(CHAT)[-1]


async def test_the_list_of_models_is_asked_once_and_again_after_a_failure(server: Any) -> None:
    server.says(*STOP)
    async with server.client() as model:
        await chat(model)
        await chat(model)
        assert len(server.bodies("/v1/models")) == 1
        server.answers(CHAT, {"error": {"message": "boom"}}, status=500)
        with pytest.raises(ModelError):
            await chat(model)
        server.says(*STOP)
        await chat(model)
    assert len(server.bodies("/v1/models")) == 2


async def test_calls_one_after_the_other_share_a_connection(server: Any) -> None:
    server.says(said(content="Hi"), *STOP)
    async with server.client() as model:
        for _ in range(3):
            await chat(model)
    assert server.connections == 1


async def test_the_usage_is_waited_for_after_the_last_word(server: Any) -> None:
    server.says(said("stop", content="Hi"), {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    async with server.client() as model:
        assert (await chat(model))[-1] == Done(Usage(3, 4), "stop", "m")


@pytest.mark.parametrize("breaks", [True, False])
async def test_an_answer_is_complete_even_if_the_server_never_says_that_it_ends(
    server: Any, breaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.models.client._TRAILER_SECONDS", 0.05)

    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.events(said("stop", content="Hi"))
        if breaks:
            exchange.abort()
        else:
            await exchange.disconnected()

    server.scripts[CHAT] = script
    async with server.client() as model, asyncio.timeout(30):
        deltas = await chat(model)
    assert deltas[0] == ContentDelta("Hi")
    assert isinstance(deltas[1], Done)


async def test_comments_do_not_keep_a_silent_model_alive(server: Any) -> None:
    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.events(said(content="Hi"))
        while True:
            await exchange.send(b": ping\n\n")
            await asyncio.sleep(0.01)  # the server's pace, no wait for anything

    server.scripts[CHAT] = script
    async with asyncio.timeout(30):
        error = await failure(server, between=0.15)
    assert (error.kind, "0.15 s" in str(error)) == ("timeout", True)


async def test_an_empty_first_chunk_is_not_yet_the_first_token(server: Any) -> None:
    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.events(said(role="assistant", content=""))
        await exchange.disconnected()

    server.scripts[CHAT] = script
    error = await failure(server, first=0.07, between=0.01)
    assert (error.kind, "0.07 s" in str(error)) == ("timeout", True)


def reading(done: int) -> Json:
    return {"choices": [{"index": 0, "delta": {}}], "prompt_progress": {"total": 9000, "processed": done, "cache": 0}}


async def test_only_llama_server_is_asked_for_its_progress(server: Any) -> None:
    server.says(*STOP)
    for owner in ("llamacpp", "vllm", "openai"):
        server.lists({"id": "m", "owned_by": owner})
        server.answers("/props", {})
        async with server.client() as model:
            await chat(model)
    assert [body.get("return_progress") for body in server.bodies(CHAT)] == [True, None, None]


async def test_a_gateway_that_refuses_the_wish_for_progress_is_asked_without(server: Any) -> None:
    server.lists({"id": "m", "owned_by": "llamacpp"})
    server.answers("/props", {})

    async def script(exchange: Any) -> None:
        if "return_progress" not in server.bodies(CHAT)[-1]:
            await exchange.head()
            await exchange.events(*STOP, end=True)
        else:
            await exchange.head(400, "application/json")
            await exchange.send(b'{"error": {"message": "unknown field: return_progress"}}', end=True)

    server.scripts[CHAT] = script
    async with server.client() as model:
        first, second = await chat(model), await chat(model)
    assert [isinstance(delta, Degraded) for delta in (first[0], second[0])] == [True, False]
    assert ["return_progress" in body for body in server.bodies(CHAT)] == [True, False, False]


async def test_a_model_that_tells_its_progress_is_not_silent(server: Any) -> None:
    async def script(exchange: Any) -> None:
        await exchange.head()
        for done in range(20):
            await exchange.events(reading(done))
            await asyncio.sleep(0.1)  # the model's pace: two seconds in all
        await exchange.events(said(content="Hi"), *STOP, end=True)

    server.scripts[CHAT] = script
    async with server.client(first=1.0, between=1.0) as model, asyncio.timeout(30):
        deltas = await chat(model)
    assert ContentDelta("Hi") in deltas


async def test_a_model_that_works_for_another_question_is_not_silent(server: Any) -> None:
    second_asked = asyncio.Event()

    async def script(exchange: Any) -> None:
        await exchange.head()
        if len(server.bodies(CHAT)) == 2:  # waits in line for the first
            second_asked.set()
            await asyncio.sleep(2.0)
        else:
            await second_asked.wait()
            for _ in range(20):
                await exchange.events(said(content="Hi"))
                await asyncio.sleep(0.1)  # the model's pace
        await exchange.events(*STOP, end=True)

    server.scripts[CHAT] = script
    async with server.client(first=1.0, between=1.0) as model, asyncio.timeout(30):
        answers = await asyncio.gather(chat(model), chat(model))
    assert all(isinstance(answer[-1], Done) for answer in answers)


async def test_a_silent_model_is_told_with_the_setting_that_limits_it(server: Any) -> None:
    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.events(reading(0))
        await exchange.disconnected()

    server.scripts[CHAT] = script
    limits = {"first_token_seconds": 10.0, "between_tokens_seconds": 0.05, "timeout_seconds": 10.0}
    model = OpenAIModel(f"{server.url}/v1", limit="timeout_seconds in generator.yaml", **limits)
    with pytest.raises(ModelError, match=r"no sign of life .* for 0.05 s .*; raise timeout_seconds in generator.yaml"):
        await chat(model)
    await model.close()


async def test_after_a_limit_that_was_too_short_the_next_call_has_longer(server: Any) -> None:
    async def script(exchange: Any) -> None:
        await exchange.disconnected()

    server.scripts[CHAT] = script
    async with server.client(first=0.05) as model:
        for seconds in ("0.05 s", "0.1 s", "0.2 s"):
            with pytest.raises(ModelError, match=f"for {seconds}"):
                await chat(model)


async def test_a_server_that_is_busy_says_when_to_come_back(server: Any) -> None:
    server.answers(CHAT, {"error": {"message": "Rate limit reached"}}, status=429, retry_after="7")
    error = await failure(server)
    assert isinstance(error, ModelBusy)
    assert (error.kind, error.retry_after, error.status) == ("rate_limit", 7.0, 429)


async def test_a_server_that_has_moved_is_not_followed(server: Any) -> None:
    server.answers(CHAT, {}, status=307, location="http://127.0.0.1:1/")
    error = await failure(server)
    assert (error.kind, error.status) == ("unreachable", 307)


async def test_no_server_says_what_to_do(server: Any) -> None:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    listener.close()
    await listener.wait_closed()
    error = await failure(server)
    assert str(error).startswith(f"no model server answers at {server.url}/v1: start it or check the address")
    assert error.kind == "unreachable"


async def test_llama_server_tells_its_context_and_its_capabilities(server: Any) -> None:
    server.lists({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}})
    caps = {"supports_tools": True, "supports_tool_calls": True}
    settings = {"default_generation_settings": {"n_ctx": 8192}, "chat_template": "<think>", "chat_template_caps": caps}
    server.answers("/props", settings)
    async with server.client() as model:
        assert await model.show("m") == ModelInfo("m", frozenset({"completion", "tools", "thinking"}), 8192)
        server.answers("/props", {"error": {"message": "This feature is disabled"}}, status=501)
        assert await model.show("m") == ModelInfo("m", frozenset(), None)


async def test_a_model_that_is_missing_is_told_with_those_that_are_there(server: Any) -> None:
    async with server.client() as model:
        assert await model.models() == ["m"]
        with pytest.raises(ModelError, match=r"has no model x \(model x not found among m\)") as caught:
            await model.show("x")
    assert caught.value.kind == "model_missing"


async def test_each_text_gets_its_vector_in_whatever_order_they_come(server: Any) -> None:
    vectors = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0.5]}]
    server.answers("/v1/embeddings", {"object": "list", "data": vectors})
    async with server.client() as model:
        assert await model.embed("e", ["a", "b"]) == [[1.0, 0.5], [0.0, 1.0]]
        assert await model.embed("e", []) == []
        with pytest.raises(ModelError, match="2 vectors for 1 texts") as caught:
            await model.embed("e", ["a"])
    assert caught.value.kind == "bad_stream"
    assert server.bodies("/v1/embeddings")[0] == {"model": "e", "input": ["a", "b"], "encoding_format": "float"}


async def test_an_answer_that_no_such_server_would_give_is_a_bad_stream(server: Any) -> None:
    server.answers("/v1/models", ["x"])
    async with server.client() as model:
        with pytest.raises(ModelError) as caught:
            await model.models()
    assert caught.value.kind == "bad_stream"


async def test_a_form_and_probabilities_are_asked_for_in_openais_words(server: Any) -> None:
    top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]
    scored = said(content="4")
    scored["choices"][0]["logprobs"] = {"content": [{"token": "4", "logprob": -0.1, "top_logprobs": top}]}
    server.says(scored, *STOP)
    async with server.client() as model:
        deltas = await chat(model, format={"type": "object"}, logprobs=True)
    assert deltas[:2] == [ContentDelta("4"), TokenScores((TokenScore("4", {"4": -0.1, "5": -2.5}),))]
    (body,) = server.bodies(CHAT)
    described = {"name": "reply", "strict": False, "schema": {"type": "object"}}
    assert body["response_format"] == {"type": "json_schema", "json_schema": described}
    assert (body["logprobs"], body["top_logprobs"]) == (True, 10)
