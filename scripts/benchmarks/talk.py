"""What both ends of a bus benchmark do, whichever way the messages go."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from benchmarks.peer import Pipe
from local.bus.envelope import Trace
from local.bus.messages import AnswerDialog, ToolRequest, ToolResult
from local.bus.proxy import Proxy
from local.core.bus_address import BusAddress

BURST = 20_000
TRACE = Trace("8f0e" * 8, "61c2" * 8, "session-1", "user-1")
TEXT = ("Weather in Berlin, today: light rain until noon, then sunny spells, wind from the west. " * 11)[:900]


class Talker(Protocol):
    """The publishing and asking end."""

    async def say(self) -> None:
        """Publish one typed message of 1 kB."""
        ...

    async def ask(self) -> None:
        """Send one request and wait for its answer of 1 kB."""
        ...


class Meter:
    """The listening end's counter: tells the rate, in messages a second, of each burst."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._count, self._first = 0, 0.0

    def hit(self) -> None:
        """One message has reached its handler."""
        self._count += 1
        if self._count == 1:
            self._first = time.monotonic()
        elif self._count == BURST:
            self._pipe.send((BURST - 1) / (time.monotonic() - self._first))
            self._count = 0


async def obey(pipe: Pipe, talker: Talker) -> None:
    """Carry out commands: None publishes one burst; a number asks so often and tells the seconds each answer took."""
    pipe.send("ready")
    while True:
        asks: int | None = await asyncio.to_thread(pipe.recv)
        if asks is None:
            for _ in range(BURST):
                await talker.say()
        else:
            pipe.send([await _time(talker) for _ in range(asks)])


async def until_answered(talker: Talker) -> None:
    """Ask until an answer comes: nothing else tells these ends that they are heard and hear."""
    while True:
        try:
            return await asyncio.wait_for(talker.ask(), 0.1)
        except TimeoutError:
            continue


async def _time(talker: Talker) -> float:
    started = time.perf_counter()
    await talker.ask()
    return time.perf_counter() - started


def forward(pipe: Pipe, address: BusAddress) -> None:
    """The proxy's process."""
    proxy = Proxy(address)
    pipe.send("ready")
    try:
        pipe.recv()
    except EOFError:
        proxy.close()


def note() -> AnswerDialog:
    """A fresh typed message with a payload of 1 kB."""
    return AnswerDialog(query_id=TRACE.correlation_id, query="What is the weather like in Berlin?", answer=TEXT)


def request() -> ToolRequest:
    """A fresh typed request with a payload of 1 kB."""
    return ToolRequest(query_id=TRACE.correlation_id, call_id="8f0e8f0e:1:0", tool="bench", args={"text": TEXT})


def result() -> ToolResult:
    """A fresh typed answer with a payload of 1 kB."""
    return ToolResult(query_id=TRACE.correlation_id, call_id="8f0e8f0e:1:0", tool="bench", result=TEXT)
