"""The two dialects in which model servers are spoken to, and a server on a real socket that answers as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar

from local.models.chat import ollama_errors, openai_errors
from local.models.http import AnswerStream
from local.models.ollama import OllamaModel, OllamaStream
from local.models.openai import OpenAIModel, OpenAIStream

KEY = "sk-very-secret-0123456789"


class Ollama:
    """NDJSON, every chunk with the whole call in it."""

    chat, about, content_type = "/api/chat", "/api/show", "application/x-ndjson"
    everything: ClassVar = {"capabilities": ["completion", "tools", "thinking"], "model_info": {}}

    def client(self, url: str, first: float = 10, between: float = 10, other: float = 10) -> OllamaModel:
        limits = {"first_token_seconds": first, "between_tokens_seconds": between, "timeout_seconds": other}
        return OllamaModel(url, keep_alive="10m", **limits)

    def decoder(self) -> AnswerStream:
        return OllamaStream("m", ollama_errors("http://host:1"))

    def line(self, value: Any) -> bytes:
        return json.dumps(value).encode() + b"\n"

    def chunk(self, *, reason: str = "", **message: Any) -> bytes:
        ending = {"done": True, "done_reason": reason, "eval_count": 7} if reason else {"done": False}
        return self.line({"model": "m", "message": {"role": "assistant", "content": "", **message}, **ending})

    def think(self, text: str) -> bytes:
        return self.chunk(thinking=text)

    def call(self, arguments: Any, name: Any = "f", call_id: str | None = "c") -> dict[str, Any]:
        return {"id": call_id, "function": {"name": name, "arguments": arguments}}

    def stop(self, reason: str = "stop", **message: Any) -> bytes:
        return self.chunk(reason=reason, **message)

    def error(self, message: str) -> bytes:
        return self.line({"error": message})


class OpenAI:
    """Server-sent events, arguments as text."""

    chat, about, content_type = "/v1/chat/completions", "/v1/models", "text/event-stream"
    everything: ClassVar = {"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}

    def client(self, url: str, first: float = 10, between: float = 10, other: float = 10, **more: Any) -> OpenAIModel:
        limits = {"first_token_seconds": first, "between_tokens_seconds": between, "timeout_seconds": other}
        return OpenAIModel(f"{url}/v1", **{"api_key": KEY, **limits, **more})

    def decoder(self, content_type: str = "text/event-stream") -> AnswerStream:
        return OpenAIStream("m", openai_errors("http://host:1/v1"), content_type)

    def line(self, value: Any) -> bytes:
        return b"data: " + json.dumps(value).encode() + b"\n\n"

    def chunk(self, *, reason: str | None = None, **delta: Any) -> bytes:
        return self.line({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    def think(self, text: str) -> bytes:
        return self.chunk(reasoning_content=text)

    def call(self, arguments: Any, name: Any = "f", call_id: str | None = "c") -> dict[str, Any]:
        worded = arguments if arguments is None or isinstance(arguments, str) else json.dumps(arguments)
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": worded}}

    def stop(self, reason: str = "stop", **delta: Any) -> bytes:
        usage = self.line({"choices": [], "usage": {"completion_tokens": 7}})
        return self.chunk(reason=reason, **delta) + usage + b"data: [DONE]\n\n"

    def error(self, message: str) -> bytes:
        return self.line({"error": {"message": message, "type": "server_error"}})


Wire = Ollama | OpenAI
OLLAMA, OPENAI = Ollama(), OpenAI()


class Exchange:
    """One request, and the means to answer it piece by piece."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def head(self, content_type: str, status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", "Transfer-Encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes, *, end: bool = False) -> None:
        chunk = b"%x\r\n%s\r\n" % (len(data), data) if data else b""
        await self.raw(chunk + (b"0\r\n\r\n" if end else b""))

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def disconnected(self) -> None:
        await self._reader.read(1)

    def abort(self) -> None:
        self._writer.transport.abort()


Script = Callable[[Exchange], Awaitable[None]]


class ScriptedServer:
    """Answers each path as scripted; keeps the requests, their heads and how many connections they took."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.requests: list[tuple[str, Any]] = []
        self.heads: list[str] = []
        self.connections = 0
        self.url = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        for wire in (OLLAMA, OPENAI):
            self.answers(wire.about, wire.everything)

    def answers(self, path: str, *objects: Any, status: int = 200, kind: str = "application/json", **head: str) -> None:
        """Answer `path` with these objects, one a line, from now on."""

        async def script(exchange: Exchange) -> None:
            await exchange.head(kind, status, **head)
            await exchange.send(b"".join(json.dumps(each).encode() + b"\n" for each in objects), end=True)

        self.scripts[path] = script

    def says(self, wire: Wire, *pieces: bytes) -> None:
        """Answer each chat with these pieces from now on."""

        async def script(exchange: Exchange) -> None:
            await exchange.head(wire.content_type)
            await exchange.send(b"".join(pieces), end=True)

        self.scripts[wire.chat] = script

    def bodies(self, path: str) -> list[Any]:
        return [body for requested, body in self.requests if requested == path]

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[ScriptedServer]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        yield self
        listener.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    await self._exchange(reader, writer)
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1].partition("?")[0]
        length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
        body = json.loads(await reader.readexactly(int(length))) if length else None
        self.heads.append(head)
        self.requests.append((path, body))
        await self.scripts[path](Exchange(reader, writer))
