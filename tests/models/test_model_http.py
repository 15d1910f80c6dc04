"""The HTTP to one model server, where that closes a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from local.core.errors import ModelError
from local.models.chat import ollama_errors
from local.models.http import ModelHttp, Wait

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s"
DONE = b'{"message": {"role": "assistant", "content": "Hi."}, "done": true, "done_reason": "stop"}\n'


@asynccontextmanager
async def closing(times: int) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that closes the first connections instead of an answer; and how many questions there were."""
    asked: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length"))
        await reader.readexactly(length)
        asked.append(length)
        if len(asked) > times:
            writer.write(ANSWER % (len(DONE), DONE))
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", asked


async def answer(url: str) -> bytes:
    http = ModelHttp(ollama_errors(url), headers={})
    try:
        wait = Wait(http.errors, "/api/chat", 20.0)
        async with http.stream("/api/chat", b"{}", model="gemma", wait=wait) as answer:
            return await answer.read()
    finally:
        await http.close()


async def test_a_connection_that_was_closed_just_then_is_made_anew() -> None:
    async with closing(1) as (url, asked):
        assert await answer(url) == DONE
    assert len(asked) == 2


async def test_a_server_that_closes_every_connection_is_a_failure() -> None:
    async with closing(9) as (url, asked):
        with pytest.raises(ModelError, match="broke"):
            await answer(url)
    assert len(asked) == 2
