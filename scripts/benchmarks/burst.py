"""Loss is counted: a burst to a consumer that keeps up, to one whose handler stands still, and to one that is stopped
altogether. For each of them, what it has received and what it has reported as missed make up what was sent."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.peer import Peer, Pipe
from benchmarks.talk import TRACE, forward, note
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import AnswerDialog, BusGap
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress
from local.runtime.participant import Participant, Settingless, on
from local.runtime.runner import ParticipantRunner

SENT = 200_000
SETTLE_SECONDS = 20.0  # for a backlog to be worked off, the next status beat to arrive, gaps to be reported


class _Source(Participant):
    name = "bench_source"

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(Settingless())
        self._pipe = pipe

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        burst = asyncio.create_task(self._burst(), name="burst")
        yield
        burst.cancel()

    async def _burst(self) -> None:
        self._pipe.send("ready")
        await asyncio.to_thread(self._pipe.recv)
        for _ in range(SENT):
            await self.bus.publish(note(), TRACE)
        self._pipe.send("sent")


class _Sink(Participant):
    name = "bench_sink"

    def __init__(self, pipe: Pipe, stands_still: bool) -> None:
        super().__init__(Settingless())
        self._pipe = pipe
        self._received = self._missed = 0
        self._all_told = asyncio.Event()
        self._may_go_on = asyncio.Event()
        if not stands_still:
            self._may_go_on.set()

    @on(AnswerDialog)
    async def take(self, message: AnswerDialog, envelope: Envelope) -> None:
        self._count(received=1)
        await self._may_go_on.wait()

    @on(BusGap)
    async def note_gap(self, gap: BusGap, envelope: Envelope) -> None:
        if envelope.instance == self.bus.instance and gap.missed_subject == AnswerDialog.subject:
            self._count(missed=gap.missed)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        telling = asyncio.create_task(self._tell(), name="tell")
        yield
        telling.cancel()

    async def _tell(self) -> None:
        await asyncio.to_thread(self._pipe.recv)
        self._may_go_on.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_told.wait(), SETTLE_SECONDS)
        self._pipe.send((self._received, self._missed))

    def _count(self, *, received: int = 0, missed: int = 0) -> None:
        self._received += received
        self._missed += missed
        if self._received + self._missed >= SENT:
            self._all_told.set()


def source(pipe: Pipe, address: BusAddress) -> None:
    """The publisher's process."""
    asyncio.run(_host(_Source(pipe), address, pipe, announce=False))


def sink(pipe: Pipe, address: BusAddress, stands_still: bool) -> None:
    """A consumer's process."""
    asyncio.run(_sink(pipe, address, stands_still))


async def _sink(pipe: Pipe, address: BusAddress, stands_still: bool) -> None:
    await _host(_Sink(pipe, stands_still), address, pipe, announce=True)


async def _host(participant: Participant, address: BusAddress, pipe: Pipe, *, announce: bool) -> None:
    host = ParticipantRunner(participant, Bus(participant.name, ZeroMQTransport(address)))
    await host.run(asyncio.Event(), (lambda: pipe.send("ready")) if announce else (lambda: None))


async def run() -> list[Figure]:
    """One burst to all three at once."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        address = BusAddress(f"ipc://{folder / 'pub'}", f"ipc://{folder / 'sub'}")
        await stack.enter_async_context(Peer(forward, address))
        kinds = {"that keeps up": False, "whose handler stands still": True, "that is stopped": False}
        sinks = [await stack.enter_async_context(Peer(sink, address, still)) for still in kinds.values()]
        publisher = await stack.enter_async_context(Peer(source, address))
        with _stopped(sinks[-1].pid):
            publisher.tell("go")
            await publisher.hear()
        for each in sinks:
            each.tell("count")
        return [figure for name, each in zip(kinds, sinks, strict=True) for figure in _figures(name, await each.hear())]


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _figures(name: str, counted: tuple[int, int]) -> list[Figure]:
    received, missed = counted
    return [
        Figure(f"burst: of {SENT:,} received by one {name}", received, "msg"),
        Figure("burst:   and reported as missed", missed, "msg"),
        Figure("burst:   lost without a trace", abs(SENT - received - missed), "msg", limit=0),
    ]
