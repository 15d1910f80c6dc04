"""Models are loaded before the first query and kept after the last, by every kind of client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from local.core.errors import ModelError
from local.models.router import connect
from local.models.settings import Endpoint, ModelsConfig, Routing

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "


@asynccontextmanager
async def server(answer: dict[str, Any]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Says the same to every request, and keeps what it is sent."""
    requests: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("content-length"))
        requests.append({"path": head.split()[1], **json.loads(await reader.readexactly(length))})
        body = json.dumps(answer).encode()
        writer.write(HEAD + str(len(body)).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", requests


async def load(routing: Routing, name: str) -> None:
    router = connect(routing, timeout_seconds=20)
    try:
        await router.load(name, {"num_ctx": 2048})
    finally:
        await router.close()


@pytest.mark.parametrize("keep_alive", ["30m", "2h", -1])
async def test_ollama_loads_a_model_with_the_window_it_will_have_and_keeps_it_as_configured(keep_alive: Any) -> None:
    async with server({"done": True, "done_reason": "load"}) as (url, requests):
        endpoints = {"ollama": Endpoint(kind="ollama", url=url)}
        config = ModelsConfig.model_validate({"keep_alive": keep_alive})
        await load(Routing(config=config, endpoints=endpoints, default="ollama"), "gemma4:12b")
    assert requests == [
        {
            "path": "/api/chat",
            "model": "gemma4:12b",
            "messages": [],
            "options": {"num_ctx": 2048},
            "stream": False,
            "keep_alive": keep_alive,
        }
    ]


async def test_a_server_that_has_its_models_in_memory_is_not_asked() -> None:
    async with server({}) as (url, requests):
        await load(Routing.to_one("box", Endpoint(kind="openai", url=f"{url}/v1")), "tiny")
    assert requests == []


async def test_when_the_first_model_of_a_chain_cannot_be_loaded_the_next_one_is() -> None:
    async with server({"done": True}) as (url, requests):
        endpoints = {
            "ollama": Endpoint(kind="ollama", url="http://127.0.0.1:1"),
            "box": Endpoint(kind="ollama", url=url),
        }
        providers = {"ollama": {"kind": "ollama"}, "box": {"kind": "ollama", "url": url}}
        roles = {"chat": ["ollama/gemma", "box/small"]}
        config = ModelsConfig.model_validate({"providers": providers, "roles": roles})
        await load(Routing(config=config, endpoints=endpoints, default="ollama"), "gemma")
        assert [request["model"] for request in requests] == ["small"]


async def test_a_model_that_cannot_be_loaded_is_told_with_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:1"):
        await load(Routing.to_one("ollama", Endpoint(kind="ollama", url="http://127.0.0.1:1")), "gemma")
