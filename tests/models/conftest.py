"""Model servers that answer as they are told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from tests.agents.conftest import stage
from tests.models.wires import ScriptedServer
from tests.stand_in.server import StandInSettings, serve

__all__ = ["stage"]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer().serving() as server:
        yield server


@pytest.fixture
async def stand_in() -> AsyncIterator[str]:
    """The address of the stand-in, which has several models."""
    listener, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
    serving = asyncio.create_task(serve(StandInSettings(), listener, stop))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    stop.set()
    await serving
