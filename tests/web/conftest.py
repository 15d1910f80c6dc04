"""What the tests of the web share: a server that answers what a test says, and certificates that are loaded once."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

_create = httpx.create_ssl_context
_once = cache(_create)  # takes longer than all else of a fetch


@pytest.fixture(autouse=True)
def certificates_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a test names its own."""

    def context() -> ssl.SSLContext:
        return _create() if "SSL_CERT_FILE" in os.environ else _once()

    monkeypatch.setattr(httpx, "create_ssl_context", context)


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    payload: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        body = self.payload if isinstance(self.payload, bytes) else json.dumps(self.payload).encode()
        headers = {"Content-Length": str(len(body)), "Connection": "close", **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Said\r\n{head}\r\n".encode() + body


class LocalServer:
    """Gives `answer` to every request and remembers what it was asked; `handle` may be replaced."""

    def __init__(self) -> None:
        self.url = ""
        self.answer = Answer()
        self.requests: list[Request] = []
        self.handle: Callable[[Request], Awaitable[Answer]] = self._say_answer

    def says(self, payload: Any, status: int = 200, **headers: str) -> None:
        self.answer = Answer(payload, status, {name.replace("_", "-"): value for name, value in headers.items()})

    async def _say_answer(self, request: Request) -> Answer:
        return self.answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._read(reader)
            self.requests.append(request)
            writer.write((await self.handle(request)).encoded())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has hung up, which is what some tests are about
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return Request(method, parts.path, query, headers, body)


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    local = LocalServer()
    listener = await asyncio.start_server(local.serve, "127.0.0.1", 0)
    local.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield local
    listener.close()
    await listener.wait_closed()
