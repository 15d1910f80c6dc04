"""An asker against the real journal and a generator that is played by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.message import Message
from local.bus.messages import QueryAccepted, QueryCancel, QueryReceived, ResponseGeneration
from local.bus.zeromq import MemoryHub, MemoryTransport
from local.journal.client import JournalClient
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore
from local.queries.asker import Asker, AskTimeouts
from local.runtime.runner import ParticipantRunner


class Generator:
    """Queues what it hears; the test says what it answers."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.heard: asyncio.Queue[Envelope] = asyncio.Queue()
        for subject in (QueryReceived.subject, QueryCancel.subject):
            bus.subscribe(subject, self.heard.put_nowait, repeats=True)

    async def hears(self, query_id: str | None = None) -> Envelope:
        """The next query or cancel; with `query_id` of that one: a slow journal has others said again."""
        async with asyncio.timeout(90):
            while query_id not in (None, (heard := await self.heard.get()).correlation_id):
                pass
        return heard

    async def says(self, to: Envelope, *messages: Message) -> None:
        """Answer it."""
        for message in messages:
            await self._bus.publish(message, to.trace())

    async def answers(self, to: Envelope, text: str = "Yes.") -> None:
        """Accept and answer it."""
        asked = QueryReceived.decode(to.payload)
        response = ResponseGeneration(query_id=asked.query_id, status="answered", query=asked.query, answer=text)
        await self.says(to, QueryAccepted(query_id=asked.query_id), response)


class HardOfHearing(MemoryTransport):
    """Loses what comes on some subjects."""

    deaf_to: tuple[bytes, ...] = ()

    def deliver(self, frame: bytes) -> None:
        if not frame.startswith(self.deaf_to):
            super().deliver(frame)


class Stage:
    """A hub with a generator; a journal and askers are added."""

    def __init__(self, stack: AsyncExitStack, folder: Path) -> None:
        self.hub, self._stack, self._folder = MemoryHub(), stack, folder
        self.generator: Generator

    async def bus(self, name: str, deaf_to: tuple[bytes, ...] = ()) -> Bus:
        """A bus that lives as long as the stage."""
        transport = HardOfHearing(self.hub)
        transport.deaf_to = deaf_to
        return await self._stack.enter_async_context(
            Bus(name, transport, durability=JournalClient() if name == "frontend" else None)
        )

    async def journal(self) -> None:
        """A journal that lives as long as the stage."""
        journal, stop, ready = (
            Journal(JournalConfig(), JournalStore(self._folder / "j.db")),
            asyncio.Event(),
            asyncio.Event(),
        )
        serving = asyncio.create_task(
            ParticipantRunner(journal, Bus("journal", self.hub.transport())).run(stop, ready.set)
        )
        self._stack.push_async_callback(asyncio.wait_for, serving, 20)
        self._stack.callback(stop.set)
        await ready.wait()

    async def asker(
        self, timeouts: AskTimeouts | None = None, deaf_to: tuple[bytes, ...] = (), kind: type[Asker] = Asker
    ) -> Asker:
        """An asker that is ready."""
        bus = await self.bus("frontend", deaf_to)
        asker = await self._stack.enter_async_context(kind(bus, timeouts=timeouts))
        await bus.ready()
        return asker


@pytest.fixture
async def bare_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """Without a journal."""
    async with AsyncExitStack() as stack:
        stage = Stage(stack, tmp_path)
        bus = await stage.bus("generator")
        stage.generator = Generator(bus)
        await bus.ready()
        yield stage


@pytest.fixture
async def stage(bare_stage: Stage) -> Stage:
    await bare_stage.journal()
    return bare_stage


@pytest.fixture
async def asker(stage: Stage) -> Asker:
    return await stage.asker()
