"""A scripted Ollama server on a real socket, and the client for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from local.models.ollama import OllamaModel


class Exchange:
    """One request, and the means to answer it piece by piece."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def head(self, status: int = 200, content_type: str = "application/x-ndjson") -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        await self._write(head.encode())

    async def send(self, *objects: Any, end: bool = False) -> None:
        data = b"".join(json.dumps(item).encode() + b"\n" for item in objects)
        chunk = b"%x\r\n%s\r\n" % (len(data), data) if data else b""
        await self._write(chunk + (b"0\r\n\r\n" if end else b""))

    async def answer(self, *objects: Any, status: int = 200, content_type: str = "application/x-ndjson") -> None:
        await self.head(status, content_type)
        await self.send(*objects, end=True)

    async def disconnected(self) -> None:
        assert await self._reader.read(1) == b""

    def abort(self) -> None:
        self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Script = Callable[[Exchange], Awaitable[None]]


class ScriptedServer:
    """Answers each path as scripted; remembers the requests and how many connections they took."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.answers("/api/show", {"capabilities": ["completion", "tools", "thinking"], "model_info": {}})
        self.requests: list[tuple[str, Any]] = []
        self.connections = 0
        self.url = ""

    def answers(self, path: str, *objects: Any, **how: Any) -> None:
        """Answer `path` with these objects, one in a line, from now on."""
        self.scripts[path] = lambda exchange: exchange.answer(*objects, **how)

    @contextlib.asynccontextmanager
    async def client(self, *, first: float = 10, between: float = 10, other: float = 10) -> AsyncIterator[OllamaModel]:
        model = OllamaModel(
            self.url,
            first_token_seconds=first,
            between_tokens_seconds=between,
            timeout_seconds=other,
            keep_alive="10m",
        )
        yield model
        await model.close()

    def bodies(self, path: str) -> list[Any]:
        return [body for requested, body in self.requests if requested == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await self._exchange(reader, writer)
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        path = head.split(" ")[1]
        length = head.partition("content-length: ")[2].partition("\r\n")[0]
        body = json.loads(await reader.readexactly(int(length))) if length else None
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
