"""A worker on an in-process bus, and a witness that hears everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import AnswerDialog, ParticipantStatus, QueryAccepted, ToolRequest, ToolResult
from local.bus.zeromq import MemoryHub
from local.core.errors import NotOnRecord, StoreFailed
from local.runtime.participant import Inbox, Kind, Participant, Settingless, on
from local.runtime.runner import ParticipantRunner

SECONDS = 90.0  # a test that waits so long has failed


class Worker(Participant):
    """Counts what it does, and does what a query's text says."""

    name = "worker"
    kind = Kind.OBSERVER

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.done: list[str] = []
        self.life: list[str] = []
        self.gate = asyncio.Event()
        self.at_work = asyncio.Semaphore(0)
        self.announces = asyncio.Semaphore(0)
        self.most_at_once = self._now = 0

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.life.append("enter")
        yield
        self.life.append("leave")

    async def announce(self) -> None:
        self.life.append("announce")
        self.announces.release()

    def metrics(self) -> dict[str, int]:
        return {"pages": 7}

    def details(self) -> dict[str, str]:
        return {"model": "gemma"}

    @on(AnswerDialog)
    async def take(self, message: AnswerDialog, envelope: Envelope) -> Any:
        match message.query:
            case "fail":
                raise StoreFailed("notes.db: disk is full")
            case "fail without words":
                raise ZeroDivisionError
            case "wait":
                self.at_work.release()
                await self.gate.wait()
            case "say nonsense":
                return "this is no message"
            case "say too much":
                return QueryAccepted(query_id="x" * 2_000_000)
        self.done.append(message.answer)
        return QueryAccepted(query_id=message.query_id) if message.query == "reply" else None

    @on(ToolRequest, concurrency=2)
    async def serve(self, request: ToolRequest, envelope: Envelope) -> ToolResult:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        self.at_work.release()
        await self.gate.wait()
        self._now -= 1
        self.done.append(request.call_id)
        if request.tool == "broken":
            raise ZeroDivisionError("oops")
        if request.tool == "unknown":
            raise NotOnRecord("there is no page 7")
        return ToolResult(query_id=request.query_id, call_id=request.call_id, tool=request.tool, result="done")

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        if not isinstance(message, ToolRequest):
            return None
        info = ErrorInfo(kind="internal", message=str(error))
        return ToolResult(query_id=message.query_id, call_id=message.call_id, tool=message.tool, error=info)


class Witness:
    """A bus that hears everything."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.inbox = Inbox()
        self.heard: list[Envelope] = []
        bus.subscribe("", self.inbox.offer)

    async def hears(self, subject: str, times: int = 1) -> Envelope:
        """The envelope heard as number `times` on a subject, as soon as it is there."""
        async with asyncio.timeout(SECONDS):
            while len(found := [envelope for envelope in self.heard if envelope.subject == subject]) < times:
                self.heard.append(await self.inbox.take())
        return found[times - 1]

    async def call(self, call_id: str, tool: str = "good", ttl_ms: int | None = None) -> Envelope:
        return await self.bus.publish(ToolRequest(query_id="q", call_id=call_id, tool=tool, args={}), ttl_ms=ttl_ms)

    async def say(self, query: str, answer: str = "", ttl_ms: int | None = None) -> Envelope:
        return await self.bus.publish(AnswerDialog(query_id="q", query=query, answer=answer), ttl_ms=ttl_ms)

    async def status(self, state: str, times: int = 1) -> ParticipantStatus:
        """The status beat heard as number `times` in a state."""
        number = 0
        while times:
            number += 1
            status = ParticipantStatus.decode((await self.hears("participant.status", number)).payload)
            times -= status.state == state
        return status

    async def goodbye(self) -> ParticipantStatus:
        """The last words: a participant says that it is stopping at the beginning of that and at its end."""
        return await self.status("stopping", 2)


class Life:
    """A worker that is being served; `replaced` are methods of it that do something else."""

    seconds = SECONDS

    def __init__(self, hub: MemoryHub, **replaced: Any) -> None:
        self.worker = Worker()
        vars(self.worker).update(replaced)
        self.bus = Bus("worker", hub.transport())
        self.stop = asyncio.Event()
        self.ready = asyncio.Event()
        self.host = ParticipantRunner(self.worker, self.bus)
        self.task = asyncio.create_task(self.host.run(self.stop, self.ready.set))

    async def is_at_work(self) -> None:
        """Wait until one more handler waits at the gate."""
        async with asyncio.timeout(SECONDS):
            await self.worker.at_work.acquire()

    async def end(self) -> None:
        self.worker.gate.set()
        self.stop.set()
        async with asyncio.timeout(SECONDS):
            await self.task


@pytest.fixture
def hub() -> MemoryHub:
    return MemoryHub()


@pytest.fixture
async def witness(hub: MemoryHub) -> AsyncIterator[Witness]:
    async with Bus("witness", hub.transport()) as bus:
        made = Witness(bus)
        await bus.ready()
        yield made


@pytest.fixture
async def begin(hub: MemoryHub, witness: Witness) -> AsyncIterator[Callable[..., Awaitable[Life]]]:
    """Serves a worker; for tests that first change how that is done."""
    lives: list[Life] = []

    async def begin(**replaced: Any) -> Life:
        lives.append(Life(hub, **replaced))
        await asyncio.wait_for(lives[-1].ready.wait(), SECONDS)
        return lives[-1]

    yield begin
    for life in lives:
        if not life.task.done():
            await life.end()


@pytest.fixture
async def life(begin: Callable[..., Awaitable[Life]]) -> Life:
    return await begin()
