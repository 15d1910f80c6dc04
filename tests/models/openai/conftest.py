"""A scripted OpenAI-compatible server on a real socket, and the client for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from local.models.openai import OpenAIModel

KEY = "sk-very-secret-0123456789"


class Exchange:
    """One request, and the means to answer it piece by piece."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def head(self, status: int = 200, content_type: str = "text/event-stream", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", "Transfer-Encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self._write("\r\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes, *, end: bool = False) -> None:
        chunk = b"%x\r\n%s\r\n" % (len(data), data) if data else b""
        await self._write(chunk + (b"0\r\n\r\n" if end else b""))

    async def events(self, *events: Any, end: bool = False) -> None:
        said = (event if isinstance(event, str) else json.dumps(event) for event in events)
        await self.send(b"".join(b"data: " + event.encode() + b"\n\n" for event in said), end=end)

    async def disconnected(self) -> None:
        assert await self._reader.read(1) == b""

    def abort(self) -> None:
        self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Script = Callable[[Exchange], Awaitable[None]]


class ScriptedServer:
    """Answers each path as scripted; remembers the requests, their headers and how many connections they took."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.lists({"id": "m", "owned_by": "vllm"})
        self.requests: list[tuple[str, Any]] = []
        self.heads: list[str] = []
        self.connections = 0
        self.url = ""
        self.tasks: set[asyncio.Task[Any]] = set()

    def lists(self, *entries: Mapping[str, Any]) -> None:
        self.answers("/v1/models", {"object": "list", "data": list(entries)})

    def answers(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        """Answer `path` with this JSON from now on."""

        async def script(exchange: Exchange) -> None:
            await exchange.head(status, "application/json", **headers)
            await exchange.send(json.dumps(body).encode(), end=True)

        self.scripts[path] = script

    def says(self, *events: Any) -> None:
        """Answer each chat with these events from now on."""

        async def script(exchange: Exchange) -> None:
            await exchange.head()
            await exchange.events(*events, end=True)

        self.scripts["/v1/chat/completions"] = script

    @contextlib.asynccontextmanager
    async def client(
        self, *, first: float = 10, between: float = 10, other: float = 10, api_key: str = KEY
    ) -> AsyncIterator[OpenAIModel]:
        limits = {"first_token_seconds": first, "between_tokens_seconds": between, "timeout_seconds": other}
        model = OpenAIModel(f"{self.url}/v1", api_key=api_key, **limits)
        yield model
        await model.close()

    def bodies(self, path: str) -> list[Any]:
        return [body for requested, body in self.requests if requested == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    await self._exchange(reader, writer)
        finally:
            writer.close()
            self.tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1].partition("?")[0]
        length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
        body = json.loads(await reader.readexactly(int(length))) if length else None
        self.heads.append(head)
        self.requests.append((path, body))
        await self.scripts[path](Exchange(reader, writer))


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer()
    listener = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    scripted.url = f"http://{host}:{port}"
    yield scripted
    listener.close()
    await asyncio.gather(*scripted.tasks, return_exceptions=True)
