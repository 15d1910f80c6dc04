"""From the configuration to a model that answers."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from local.core.errors import ConfigError, ModelError
from local.models.chat import ContentDelta, Degraded, Delta, Json
from local.models.router import connect
from local.models.settings import Endpoint, ModelsConfig, Routing
from tests.stand_in.server import StandInSettings, serve

PARIS: list[Json] = [{"role": "user", "content": "What is the capital of France?"}]
NOBODY = Endpoint(kind="ollama", url="http://127.0.0.1:1")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """The stand-in's address."""
    listener, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
    task = asyncio.create_task(serve(StandInSettings(), listener, stop))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    stop.set()
    await task


def config(**settings: Any) -> ModelsConfig:
    providers = {"ollama": {"kind": "ollama"}, "box": {"kind": "openai"}}
    return ModelsConfig.model_validate({"providers": providers, "max_retries": 0, **settings})


async def ask(routing: Routing, name: str) -> list[Delta]:
    router = connect(routing, timeout_seconds=20)
    try:
        return [delta async for delta in router.chat(name, PARIS)]
    finally:
        await router.close()


def said(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))


def routing(box: Endpoint, *chat: str) -> Routing:
    """Nobody answers at the default server."""
    return Routing(config=config(roles={"chat": chat}), endpoints={"ollama": NOBODY, "box": box}, default="ollama")


@pytest.mark.parametrize(("kind", "path"), [("ollama", ""), ("openai", "/v1")])
async def test_every_kind_of_server_answers_under_its_name(url: str, kind: Any, path: str) -> None:
    deltas = await ask(routing(Endpoint(kind=kind, url=url + path)), "box/gemma4:12b")
    assert "Paris" in said(deltas)


async def test_a_chain_goes_on_where_its_first_model_does_not_answer(url: str) -> None:
    box = Endpoint(kind="openai", url=f"{url}/v1")
    deltas = await ask(routing(box, "ollama/gemma4:12b", "box/gemma4:12b"), "gemma4:12b")
    assert "Paris" in said(deltas)
    [note] = [delta.note for delta in deltas if isinstance(delta, Degraded)]
    assert note.startswith("ollama/gemma4:12b could not answer (no Ollama server answers at http://127.0.0.1:1")
    assert note.endswith("so box/gemma4:12b was asked")


async def test_a_model_outside_the_chains_is_asked_alone(url: str) -> None:
    box = Endpoint(kind="openai", url=f"{url}/v1")
    with pytest.raises(ModelError, match="no Ollama server answers"):
        await ask(routing(box, "ollama/gemma4:12b", "box/gemma4:12b"), "gemma4:31b")


def test_a_chain_whose_key_is_missing_is_refused_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(os.environ, "BOX_KEY", raising=False)
    box = Endpoint(kind="openai", url="http://box/v1", api_key_variable="BOX_KEY")
    with pytest.raises(ConfigError, match="BOX_KEY is not set"):
        connect(routing(box, "box/x"), timeout_seconds=1)
