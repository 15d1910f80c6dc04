"""The clients of both kinds of model servers over real sockets: what is asked, what comes back, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from local.core.errors import ModelBusy, ModelError
from local.models.chat import (
    ChatModel,
    ContentDelta,
    Degraded,
    Delta,
    Done,
    Incapable,
    Json,
    ModelInfo,
    TokenScore,
    TokenScores,
    Usage,
)
from tests.models.wires import KEY, OLLAMA, OPENAI, Exchange, ScriptedServer, Wire

USER = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FORM = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
both = pytest.mark.parametrize("wire", [OLLAMA, OPENAI], ids=["ollama", "openai"])


async def chat(model: ChatModel, **how: Any) -> list[Delta]:
    return [delta async for delta in model.chat("m", USER, **how)]


async def asked(server: ScriptedServer, wire: Wire, **limits: float) -> list[Delta]:
    """One chat with the server. Raises `ModelError`."""
    model = wire.client(server.url, **limits)
    try:
        async with asyncio.timeout(90):
            return await chat(model)
    finally:
        await model.close()


async def failure(server: ScriptedServer, wire: Wire, **limits: float) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await asked(server, wire, **limits)
    return caught.value


def begins(wire: Wire, then: Callable[[Exchange], Any], *pieces: bytes) -> Callable[[Exchange], Any]:
    """A script: the head, these pieces, and then something else."""

    async def script(exchange: Exchange) -> None:
        await exchange.head(wire.content_type)
        await exchange.send(b"".join(pieces))
        await then(exchange)

    return script


async def silence(exchange: Exchange) -> None:
    await exchange.disconnected()


async def death(exchange: Exchange) -> None:
    exchange.abort()


async def nonsense(exchange: Exchange) -> None:
    await exchange.raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    exchange.abort()


async def half_an_error(exchange: Exchange) -> None:
    await exchange.head("application/json", 500)
    await exchange.disconnected()


@both
async def test_an_answer_is_complete_at_its_last_word_whatever_the_server_does_then(
    server: ScriptedServer, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.models.client._TRAILER_SECONDS", 0.05)
    last = OLLAMA.stop(content="Hi") if wire is OLLAMA else OPENAI.chunk(reason="stop", content="Hi")
    for then in (silence, death):
        server.scripts[wire.chat] = begins(wire, then, last)
        deltas = await asked(server, wire)
        assert deltas[0] == ContentDelta("Hi") and isinstance(deltas[-1], Done)


@both
async def test_a_server_that_dies_or_is_silent_is_a_typed_error(server: ScriptedServer, wire: Wire) -> None:
    said = wire.chunk(content="Hi")
    patient: dict[str, float] = {}
    first, between = {"first": 0.08}, {"between": 0.08}
    for script, kind, limits in (
        (begins(wire, death, said), "stream_cut", patient),
        (begins(wire, death), "stream_cut", patient),
        (death, "stream_cut", patient),
        (nonsense, "stream_cut", patient),
        (silence, "timeout", first),
        (begins(wire, silence), "timeout", first),
        (begins(wire, silence, said), "timeout", between),
        (begins(wire, silence, said + said[:20]), "timeout", between),
        (half_an_error, "timeout", first),
    ):
        server.scripts[wire.chat] = script
        error = await failure(server, wire, **limits)
        assert error.kind == kind and server.url in str(error)
        assert kind != "timeout" or "0.08 s" in str(error)


@both
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, "<html>Log in</html>", "bad_stream"),
        (404, {"error": "model 'm' not found"}, "model_missing"),
        (400, {"error": "request (9 tokens) exceeds the available context size (8 tokens)"}, "context_overflow"),
        (500, "<html>oops", "server_error"),
        (503, {"error": "server busy"}, "overloaded"),
    ],
)
async def test_a_refusal_has_its_kind_and_the_next_question_is_answered(
    server: ScriptedServer, wire: Wire, status: int, body: Any, kind: str
) -> None:
    model = wire.client(server.url)
    server.answers(wire.chat, body, status=status, kind="text/html", retry_after="7")
    with pytest.raises(ModelError) as caught:
        await chat(model)
    assert caught.value.kind == kind and caught.value.status == (None if status == 200 else status)
    if isinstance(caught.value, ModelBusy):
        assert caught.value.retry_after == 7.0
    server.says(wire, wire.stop(content="Hi"))
    assert ContentDelta("Hi") in await chat(model)
    await model.close()


@both
async def test_no_server_says_what_to_do(server: ScriptedServer, wire: Wire) -> None:
    server.url = "http://127.0.0.1:1"
    error = await failure(server, wire)
    assert error.kind == "unreachable" and "http://127.0.0.1:1" in str(error) and "start it" in str(error)


@both
async def test_a_connection_that_was_closed_just_then_is_made_again_once(server: ScriptedServer, wire: Wire) -> None:
    asked_of: list[int] = []
    closes = 1

    async def script(exchange: Exchange) -> None:
        asked_of.append(1)
        if len(asked_of) <= closes:
            exchange._writer.close()
        else:
            await exchange.head(wire.content_type)
            await exchange.send(wire.stop(content="Hi"), end=True)

    server.scripts[wire.chat] = script
    assert ContentDelta("Hi") in await asked(server, wire)
    assert len(asked_of) == 2
    closes = 9
    error = await failure(server, wire)
    assert error.kind == "stream_cut" and len(asked_of) == 4


@both
async def test_a_delta_is_given_on_before_the_next_is_sent(server: ScriptedServer, wire: Wire) -> None:
    heard = asyncio.Event()

    async def then(exchange: Exchange) -> None:
        await heard.wait()
        await exchange.send(wire.stop(), end=True)

    server.scripts[wire.chat] = begins(wire, then, wire.chunk(content="Hi"))
    model = wire.client(server.url)
    async for delta in model.chat("m", USER):
        if delta == ContentDelta("Hi"):
            heard.set()
    assert heard.is_set()
    await model.close()


@both
async def test_who_leaves_an_answer_or_is_cancelled_closes_the_connection(server: ScriptedServer, wire: Wire) -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def until_gone(exchange: Exchange) -> None:
        begun.set()
        await exchange.disconnected()
        gone.set()

    model = wire.client(server.url)
    server.scripts[wire.chat] = begins(wire, until_gone, wire.chunk(content="Hi"))
    async with asyncio.timeout(90):
        async with aclosing(model.chat("m", USER)) as deltas:
            assert await anext(deltas) == ContentDelta("Hi")
        await gone.wait()
        for script in (until_gone, begins(wire, until_gone), begins(wire, until_gone, wire.think("hm"))):
            begun.clear()
            gone.clear()
            server.scripts[wire.chat] = script
            task = asyncio.create_task(chat(model))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone.wait()
    await model.close()


@both
async def test_a_consumer_that_takes_its_time_is_no_timeout(server: ScriptedServer, wire: Wire) -> None:
    resumed = asyncio.Event()

    async def then(exchange: Exchange) -> None:
        await resumed.wait()
        await exchange.send(wire.stop(), end=True)

    server.scripts[wire.chat] = begins(wire, then, wire.chunk(content="Hi"))
    model = wire.client(server.url, between=0.3)
    deltas = []
    async for delta in model.chat("m", USER):
        deltas.append(delta)
        if delta == ContentDelta("Hi"):
            await asyncio.sleep(0.35)  # longer than the limit: the consumer's time is not the server's
            resumed.set()
    assert isinstance(deltas[-1], Done)
    await model.close()


async def test_calls_one_after_the_other_share_a_connection(server: ScriptedServer) -> None:
    server.says(OPENAI, OPENAI.stop(content="Hi"))
    model = OPENAI.client(server.url)
    for _ in range(3):
        await chat(model)
    assert server.connections == 1
    await model.close()


@both
async def test_what_a_model_can_do_is_asked_once_and_again_after_a_failure(server: ScriptedServer, wire: Wire) -> None:
    model = wire.client(server.url)
    for _ in range(2):
        server.says(wire, wire.stop())
        await chat(model)
        await chat(model)
        server.answers(wire.chat, {"error": "no"}, status=500)
        with pytest.raises(ModelError):
            await chat(model)
    assert len(server.bodies(wire.about)) == 2
    await model.close()


@both
async def test_what_a_model_cannot_do_is_left_out_and_said_once(server: ScriptedServer, wire: Wire) -> None:
    server.answers("/api/show", {"capabilities": ["completion"], "model_info": {}})
    server.answers("/v1/models", {"data": [{"id": "m", "supported_parameters": []}]})
    server.says(wire, wire.stop())
    model = wire.client(server.url)
    first, second = [await chat(model, think=True, tools=[TOOL]) for _ in range(2)]
    assert [type(delta) for delta in first] == [Incapable, Incapable, Done]
    assert [type(delta) for delta in second] == [Done]
    assert not {"think", "tools", "reasoning"} & server.bodies(wire.chat)[0].keys()
    await model.close()


@both
@pytest.mark.parametrize(
    ("text", "word", "left"),
    [("logprobs is not supported", "probabilities", "form"), ("response_format is unknown", "form", "logprobs")],
)
async def test_what_a_server_refuses_is_asked_without_told_and_remembered(
    server: ScriptedServer, wire: Wire, text: str, word: str, left: str
) -> None:
    fields = {"logprobs": "logprobs", "form": "format" if wire is OLLAMA else "response_format"}

    async def script(exchange: Exchange) -> None:
        body = server.bodies(wire.chat)[-1]
        if any(field in body for name, field in fields.items() if name != left):
            await exchange.head("application/json", 400)
            await exchange.send(b'{"error": "%s"}' % text.encode(), end=True)
        else:
            await exchange.head(wire.content_type)
            await exchange.send(wire.stop(), end=True)

    server.scripts[wire.chat] = script
    model = wire.client(server.url)
    for _ in range(2):
        notes = [delta.note for delta in await chat(model, format=FORM, logprobs=True) if isinstance(delta, Degraded)]
        assert len(notes) == 1 and word in notes[0]
    bodies = server.bodies(wire.chat)
    assert len(bodies) == 3 and [fields[left] in body for body in bodies] == [True] * 3
    with pytest.raises(ModelError):  # nothing is left out of a call that wished for nothing
        server.answers(wire.chat, {"error": text}, status=400)
        await chat(model)
    await model.close()


# Ollama's API


async def test_ollama_may_cut_nothing_silently_and_is_always_told_whether_to_think(server: ScriptedServer) -> None:
    server.says(OLLAMA, OLLAMA.stop())
    model = OLLAMA.client(server.url)
    odd = [{"role": "user", "content": "\ud83d"}]
    assert [delta async for delta in model.chat("m", odd, think=True, tools=[TOOL], options={"num_ctx": 32000})]
    await chat(model, logprobs=True)
    common = {"model": "m", "stream": True, "truncate": False, "shift": False, "keep_alive": "10m"}
    assert server.bodies("/api/chat") == [
        {**common, "messages": odd, "think": True, "tools": [TOOL], "options": {"num_ctx": 32000}},
        {**common, "messages": USER, "think": False, "logprobs": True, "top_logprobs": 10},
    ]
    await model.close()


async def test_ollama_tells_what_it_has_and_a_wrong_answer_is_a_bad_stream(server: ScriptedServer) -> None:
    model = OLLAMA.client(server.url, other=0.3)
    about = {"general.architecture": "gemma4", "gemma4.context_length": 131072, "general.parameter_count": 12 * 10**9}
    server.answers("/api/show", {"capabilities": ["tools"], "model_info": about})
    assert await model.show("m") == ModelInfo("m", frozenset({"tools"}), 131072, 12.0)
    server.answers("/api/version", {"version": "0.12.6"})
    server.answers("/api/tags", {"models": [{"model": "gemma4:12b", "size": 1}]})
    assert (await model.version(), await model.models()) == ("0.12.6", ["gemma4:12b"])
    server.answers("/api/embed", {"embeddings": [[1, 0.5], [0, 1]]})
    assert await model.embed("e", ["a", "b"]) == [[1.0, 0.5], [0.0, 1.0]] and await model.embed("e", []) == []
    server.answers("/api/version", {"version": {}})
    server.answers("/api/tags", ["x"])
    for wrong in (model.version(), model.models(), model.embed("e", ["a"])):
        with pytest.raises(ModelError) as caught:
            await wrong
        assert caught.value.kind == "bad_stream"
    server.scripts["/api/show"] = silence
    with pytest.raises(ModelError, match=r"0\.3 s \(/api/show\)"):
        await model.show("m")
    await model.close()


async def test_a_pull_of_ollama_tells_its_progress_and_its_failure(server: ScriptedServer) -> None:
    progress = {"status": "pulling", "total": 10, "completed": 5}
    model = OLLAMA.client(server.url)
    server.answers("/api/pull", progress, {"status": "success"})
    assert [step async for step in model.pull("m")] == [progress, {"status": "success"}]
    for last, kind in (({"error": "file does not exist"}, "server_error"), (progress, "stream_cut")):
        server.answers("/api/pull", progress, last)
        with pytest.raises(ModelError) as caught:
            [step async for step in model.pull("m")]
        assert caught.value.kind == kind
    await model.close()


# OpenAI's API


async def test_the_key_goes_to_the_server_and_into_no_log_or_error(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.says(OPENAI, OPENAI.stop(content="Hi"))
    model, keyless = OPENAI.client(server.url), OPENAI.client(server.url, api_key="")
    await chat(model, tools=[TOOL], think=True, options={"num_ctx": 9, "temperature": 0})
    assert server.bodies(OPENAI.chat) == [{
        "model": "m", "messages": USER, "stream": True, "stream_options": {"include_usage": True},
        "chat_template_kwargs": {"enable_thinking": True}, "tools": [TOOL], "temperature": 0,
    }]  # fmt: skip
    assert all(f"Authorization: Bearer {KEY}" in head for head in server.heads)
    await chat(keyless)
    assert "authorization" not in server.heads[-1].lower()
    server.answers(OPENAI.chat, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, status=401)
    with pytest.raises(ModelError, match=r"check the API key") as caught:
        await chat(model)
    assert KEY not in str(caught.value) and "Bearer" not in caplog.text and '"content": "Hi"' in caplog.text
    assert KEY not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("local"))
    await model.close()
    await keyless.close()


async def test_a_model_that_is_not_listed_is_asked_all_the_same(server: ScriptedServer) -> None:
    server.says(OPENAI, OPENAI.stop(content="Hi"))
    for listing, status in (({"data": []}, 200), ({"data": [{"id": "x"}]}, 200), ({"detail": "Not Found"}, 404)):
        server.answers("/v1/models", listing, status=status)
        assert ContentDelta("Hi") in await asked(server, OPENAI)
    assert "chat_template_kwargs" not in server.bodies(OPENAI.chat)[-1]


async def test_the_usage_is_waited_for_after_the_last_word(server: ScriptedServer) -> None:
    usage = OPENAI.line({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    server.says(OPENAI, OPENAI.chunk(reason="stop", content="Hi") + usage)
    assert (await asked(server, OPENAI))[-1] == Done(Usage(3, 4), "stop", "m")


async def test_comments_and_empty_chunks_are_silence(server: ScriptedServer) -> None:
    async def pings(exchange: Exchange) -> None:
        while True:
            await exchange.send(b": ping\n\n")
            await asyncio.sleep(0.01)  # the server's pace, no wait for anything

    server.scripts[OPENAI.chat] = begins(OPENAI, pings, OPENAI.chunk(content="Hi"))
    assert "0.15 s" in str(await failure(server, OPENAI, between=0.15))
    server.scripts[OPENAI.chat] = begins(OPENAI, silence, OPENAI.chunk(role="assistant", content=""))
    assert "0.07 s" in str(await failure(server, OPENAI, first=0.07, between=0.01))


def reading(done: int) -> bytes:
    progress = {"total": 9000, "processed": done, "cache": 0}
    return OPENAI.line({"choices": [{"index": 0, "delta": {}}], "prompt_progress": progress})


async def test_a_model_that_tells_its_progress_or_works_for_another_question_is_not_silent(
    server: ScriptedServer,
) -> None:
    second_asked = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.head(OPENAI.content_type)
        if len(server.bodies(OPENAI.chat)) == 2:  # waits in line for the first
            second_asked.set()
            await asyncio.sleep(0.9)
        else:
            await second_asked.wait()
            for done in range(9):
                await exchange.send(reading(done))
                await asyncio.sleep(0.1)  # the model's pace: longer in all than the limit
        await exchange.send(OPENAI.stop(content="Hi"), end=True)

    server.scripts[OPENAI.chat] = script
    model = OPENAI.client(server.url, first=0.6, between=0.6)
    async with asyncio.timeout(90):
        answers = await asyncio.gather(chat(model), chat(model))
    assert all(ContentDelta("Hi") in answer for answer in answers)
    await model.close()


@pytest.mark.parametrize(("field", "how"), [("return_progress", {}), ("grammar", {"in_words": True})])
async def test_only_llama_server_gets_a_field_of_its_own_until_it_refuses(
    server: ScriptedServer, field: str, how: dict[str, Any]
) -> None:
    server.answers("/props", {})

    async def script(exchange: Exchange) -> None:
        refuses = field in server.bodies(OPENAI.chat)[-1]
        await exchange.head("application/json" if refuses else OPENAI.content_type, 400 if refuses else 200)
        refusal = json.dumps({"error": {"message": f"unknown field: {field}"}}).encode()
        await exchange.send(refusal if refuses else OPENAI.stop(), end=True)

    server.scripts[OPENAI.chat] = script
    for owner in ("vllm", "llamacpp"):
        server.answers("/v1/models", {"data": [{"id": "m", "owned_by": owner}]})
        model = OPENAI.client(server.url)
        first, second = await chat(model, **how), await chat(model, **how)
        assert [isinstance(each[0], Degraded) for each in (first, second)] == [owner == "llamacpp", False]
        await model.close()
    assert [field in body for body in server.bodies(OPENAI.chat)] == [False, False, True, False, False]


async def test_a_grammar_against_calls_yields_to_a_form_and_to_thinking(server: ScriptedServer) -> None:
    server.answers("/props", {})
    server.answers("/v1/models", {"data": [{"id": "m", "owned_by": "llamacpp"}]})
    server.says(OPENAI, OPENAI.stop())
    model = OPENAI.client(server.url)
    for how in ({}, {"think": True}, {"format": {"type": "object"}}):
        await chat(model, in_words=True, **how)
    await model.close()
    assert ["grammar" in body for body in server.bodies(OPENAI.chat)] == [True, False, False]


async def test_a_limit_that_was_too_short_names_its_setting_and_is_longer_for_the_next_call(
    server: ScriptedServer,
) -> None:
    server.scripts[OPENAI.chat] = silence
    model = OPENAI.client(server.url, first=0.05, limit="timeout_seconds in generator.yaml")
    for seconds in ("0.05 s", "0.1 s"):
        with pytest.raises(ModelError, match=f"for {seconds} .*; raise timeout_seconds in generator.yaml"):
            await chat(model)
    await model.close()


async def test_a_server_that_has_moved_is_not_followed(server: ScriptedServer) -> None:
    server.answers(OPENAI.chat, {}, status=307, location="http://127.0.0.1:1/")
    error = await failure(server, OPENAI)
    assert (error.kind, error.status) == ("unreachable", 307)


async def test_an_openai_server_tells_what_it_has(server: ScriptedServer) -> None:
    model = OPENAI.client(server.url)
    with pytest.raises(ModelError, match=r"has no model x \(model x not found among m\)") as caught:
        await model.show("x")
    assert caught.value.kind == "model_missing" and await model.models() == ["m"]
    server.answers("/v1/models", {"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}]})
    settings: Json = {"default_generation_settings": {"n_ctx": 8192}, "chat_template": "<think>"}
    server.answers("/props", {**settings, "chat_template_caps": {"supports_tools": True}})
    assert await model.show("m") == ModelInfo("m", frozenset({"completion", "tools", "thinking"}), 8192)
    server.answers("/props", {"error": {"message": "This feature is disabled"}}, status=501)
    assert await model.show("m") == ModelInfo("m", frozenset(), None)
    vectors = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0.5]}]
    server.answers("/v1/embeddings", {"data": vectors})
    assert await model.embed("e", ["a", "b"]) == [[1.0, 0.5], [0.0, 1.0]] and await model.embed("e", []) == []
    server.answers("/v1/models", ["x"])
    for wrong in (model.embed("e", ["a"]), model.models()):
        with pytest.raises(ModelError) as caught:
            await wrong
        assert caught.value.kind == "bad_stream"
    await model.close()


async def test_a_form_and_probabilities_are_asked_for_in_openais_words(server: ScriptedServer) -> None:
    top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]
    choice = {
        "delta": {"content": "4"},
        "logprobs": {"content": [{"token": "4", "logprob": -0.1, "top_logprobs": top}]},
    }
    server.says(OPENAI, OPENAI.line({"choices": [choice]}) + OPENAI.stop())
    model = OPENAI.client(server.url)
    deltas = await chat(model, format={"type": "object"}, logprobs=True)
    assert deltas[:2] == [ContentDelta("4"), TokenScores((TokenScore("4", {"4": -0.1, "5": -2.5}),))]
    (body,) = server.bodies(OPENAI.chat)
    described = {"name": "reply", "strict": False, "schema": {"type": "object"}}
    assert body["response_format"] == {"type": "json_schema", "json_schema": described}
    assert (body["logprobs"], body["top_logprobs"]) == (True, 10)
    await model.close()
