"""A chat that fails, is closed or is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.core.errors import ModelError
from local.models.chat import ChatModel, ContentDelta, Delta, Done, Json

USER = [{"role": "user", "content": "Hi"}]
DONE = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}


def said(content: str) -> Json:
    return {"model": "m", "message": {"role": "assistant", "content": content}, "done": False}


async def chat(model: ChatModel, **how: Any) -> list[Delta]:
    return [delta async for delta in model.chat("m", USER, **how)]


async def failure(server: Any, **limits: float) -> ModelError:
    async with server.client(**limits) as model:
        with pytest.raises(ModelError) as caught:
            await chat(model)
    return caught.value


async def silence(exchange: Any) -> None:
    await exchange.disconnected()


async def silence_after_a_token(exchange: Any) -> None:
    await exchange.head()
    await exchange.send(said("Hi"))
    await exchange.disconnected()


async def test_closing_the_iterator_closes_the_connection_at_once(server: Any) -> None:
    gone = asyncio.Event()

    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.send(said("Hi"))
        await exchange.disconnected()
        gone.set()

    server.scripts["/api/chat"] = script
    async with server.client() as model:
        stream = model.chat("m", USER)
        assert await anext(stream) == ContentDelta("Hi")
        await stream.aclose()
        async with asyncio.timeout(30):
            await gone.wait()


@pytest.mark.parametrize("with_head", [True, False])
async def test_cancelling_the_task_closes_the_connection(server: Any, with_head: bool) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def script(exchange: Any) -> None:
        if with_head:
            await exchange.head()
        asked.set()
        await exchange.disconnected()
        gone.set()

    server.scripts["/api/chat"] = script
    async with server.client() as model, asyncio.timeout(30):
        task = asyncio.create_task(chat(model))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone.wait()


async def test_a_body_that_ends_without_done_is_a_cut_stream(server: Any) -> None:
    server.answers("/api/chat", said("Hi"))
    error = await failure(server)
    assert error.kind == "stream_cut"


async def test_a_connection_that_breaks_is_a_cut_stream(server: Any) -> None:
    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.send(said("Hi"))
        exchange.abort()

    server.scripts["/api/chat"] = script
    error = await failure(server)
    assert error.kind == "stream_cut"
    assert server.url in str(error)


async def test_a_web_page_is_not_an_answer(server: Any) -> None:
    server.answers("/api/chat", content_type="text/html")
    error = await failure(server)
    assert error.kind == "bad_stream"
    assert "text/html" in str(error)


async def test_a_missing_model_says_how_to_get_it(server: Any) -> None:
    server.answers("/api/show", {"error": "model 'm' not found"}, status=404)
    error = await failure(server)
    assert (error.kind, str(error)) == ("model_missing", "model m is not pulled: ollama pull m")


async def test_no_server_says_how_to_start_one(server: Any) -> None:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    listener.close()
    await listener.wait_closed()
    error = await failure(server)
    assert error.kind == "unreachable"
    assert str(error).startswith(f"no Ollama server answers at {server.url}: start it with `ollama serve`")


async def test_a_first_token_that_does_not_come_is_a_timeout(server: Any) -> None:
    server.scripts["/api/chat"] = silence
    error = await failure(server, first=0.05)
    assert error.kind == "timeout"
    assert "0.05 s" in str(error)


async def test_a_next_token_that_does_not_come_is_a_timeout(server: Any) -> None:
    server.scripts["/api/chat"] = silence_after_a_token
    error = await failure(server, between=0.06)
    assert error.kind == "timeout"
    assert "0.06 s" in str(error)


async def test_the_first_token_may_take_its_time_even_after_the_head(server: Any) -> None:
    server.answers("/api/chat", DONE)
    async with server.client(between=0) as model:
        assert isinstance((await chat(model))[-1], Done)


async def test_a_consumer_that_takes_its_time_is_no_timeout(server: Any) -> None:
    resumed = asyncio.Event()

    async def script(exchange: Any) -> None:
        await exchange.head()
        await exchange.send(said("Hi"))
        await resumed.wait()
        await exchange.send(DONE, end=True)

    server.scripts["/api/chat"] = script
    async with server.client(first=0.5, between=0.5) as model:
        deltas = []
        async for delta in model.chat("m", USER):
            deltas.append(delta)
            if delta == ContentDelta("Hi"):
                # Longer than either limit: the consumer's time is not the server's.
                asyncio.get_running_loop().call_later(0.55, resumed.set)
                await resumed.wait()
    assert isinstance(deltas[-1], Done)
