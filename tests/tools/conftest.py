"""Tools served on an in-process bus, and somebody who calls them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.messages import QueryCancel, ToolRequest, ToolResult, ToolSchema, ToolSchemaRequest
from local.bus.zeromq import MemoryHub
from local.journal import client as journal_client
from local.journal.client import JournalClient
from local.runtime.runner import ParticipantRunner
from local.tools.grants import GrantGuard
from local.tools.group import ToolGroup
from local.tools.tool import Tool

SECONDS = 90.0  # a test that waits so long has failed


class Caller:
    """Calls one tool, or those of a group, over the bus."""

    def __init__(self, bus: Bus, tool: Tool | ToolGroup) -> None:
        self.bus, self.tool = bus, tool
        self.schemas: asyncio.Queue[ToolSchema] = asyncio.Queue()
        bus.subscribe(ToolSchema.subject, lambda envelope: self.schemas.put_nowait(ToolSchema.decode(envelope.payload)))

    async def __call__(self, **args: Any) -> ToolResult:
        return await self.call(args)

    async def call(
        self, args: dict[str, Any], call_id: str = "q1:0:0", query_id: str = "q1", tool: str = ""
    ) -> ToolResult:
        request = ToolRequest(query_id=query_id, call_id=call_id, tool=tool or self.tool.name, args=args)
        return await self.bus.request(request, ToolResult, SECONDS)

    async def cancel(self, query_id: str) -> None:
        await self.bus.publish(QueryCancel(query_id=query_id))

    async def schema(self) -> ToolSchema:
        """The next schema that is published."""
        return await asyncio.wait_for(self.schemas.get(), SECONDS)

    async def ask_for_schemas(self) -> None:
        await self.bus.publish(ToolSchemaRequest())


class AllGranted(GrantGuard):
    """Leave for everything, for tests of what tools do once they have it."""

    def require(self, request: ToolRequest) -> None:
        pass


@pytest.fixture(autouse=True)
def granted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tools that were lent nothing run everything here."""
    monkeypatch.setattr(Tool, "grants", AllGranted(tmp_path))


@pytest.fixture
async def serve(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[Tool | ToolGroup], Awaitable[Caller]]]:
    """Serves a tool for the length of the test."""
    monkeypatch.setattr(journal_client, "FLUSH_SECONDS", 0.0)  # there is no journal
    hub = MemoryHub()
    stop = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    buses: list[Bus] = []

    async def serve(tool: Tool | ToolGroup, blobs: BlobStore | None = None) -> Caller:
        bus = await Bus("caller", hub.transport()).__aenter__()
        buses.append(bus)
        caller = Caller(bus, tool)
        await bus.ready()
        ready = asyncio.Event()
        host = ParticipantRunner(tool, Bus(tool.name, hub.transport(), blobs=blobs, durability=JournalClient()))
        tasks.append(asyncio.create_task(host.run(stop, ready.set)))
        await asyncio.wait_for(ready.wait(), SECONDS)
        return caller

    yield serve
    stop.set()
    await asyncio.gather(*tasks)
    for bus in buses:
        await bus.__aexit__(None, None, None)
