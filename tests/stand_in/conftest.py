"""A stand-in served on a free port of 127.0.0.1 by a thread of its own, and others with settings of their own."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.stand_in.server import StandInSettings, serve

SCRIPTS = Path(__file__).parents[2] / "stories" / "scripts"

Serving = Callable[[StandInSettings], AbstractAsyncContextManager[str]]


def _address(sock: socket.socket) -> str:
    return f"http://127.0.0.1:{sock.getsockname()[1]}"


@pytest.fixture(scope="session")
def _shared() -> Iterator[str]:
    sock = socket.create_server(("127.0.0.1", 0))
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(StandInSettings(), sock, stop)))
    url = _address(sock)
    thread.start()
    yield url
    loop.call_soon_threadsafe(stop.set)
    thread.join(timeout=10)
    loop.close()


@pytest.fixture
def url(_shared: str) -> str:
    """The address of a stand-in with an empty log, no scripts and no faults."""
    for what in ("script", "fault", "log"):
        urllib.request.urlopen(urllib.request.Request(f"{_shared}/stand_in/{what}", method="DELETE")).close()
    return _shared


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client of that stand-in."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=90) as client:
        yield client


@pytest.fixture
def serving() -> Serving:
    """`async with serving(settings) as url` runs another stand-in."""

    @asynccontextmanager
    async def run(settings: StandInSettings) -> AsyncIterator[str]:
        sock, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
        url = _address(sock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve(settings, sock, stop))
            try:
                yield url
            finally:
                stop.set()

    return run


@pytest.fixture
def tool() -> Callable[..., dict[str, Any]]:
    """Makes an offered tool: its name, description and the JSON Schema of each argument (all required)."""

    def make(name: str, description: str = "", **properties: dict[str, Any]) -> dict[str, Any]:
        given = properties or {"query": {"type": "string"}}
        parameters = {"type": "object", "properties": given, "required": list(given)}
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    return make


@pytest.fixture
def story() -> Callable[[str], str]:
    """The text of a script in stories/scripts."""
    return lambda name: (SCRIPTS / f"{name}.yaml").read_text(encoding="utf-8")
