"""A subscriber that stands still for ten seconds: nobody else is slower for it, and in the end it has missed nothing
that was to be kept."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

from benchmarks.figure import Figure
from benchmarks.journal import keep
from benchmarks.peer import Peer, Pipe
from benchmarks.talk import forward
from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, new_id
from local.bus.message import Message
from local.bus.messages import AnswerDialog, GenerationToken
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress
from local.critic.messages import CritiqueResult as Confirmed
from local.journal.client import JournalClient
from local.runtime.participant import Participant, Settingless, on
from local.runtime.runner import ParticipantRunner

PAIRS = 5
SECONDS = 10
RATE = 5000  # messages a second: mostly tokens
KEPT_EVERY = 20  # one in so many is recorded
CONFIRMED_EVERY = 100
SLICES_A_SECOND = 200


def publish(pipe: Pipe, address: BusAddress) -> None:
    """The publisher's process: `SECONDS` of traffic for each word it hears; tells how much of it was to be kept."""
    asyncio.run(_publish(pipe, address))


async def _publish(pipe: Pipe, address: BusAddress) -> None:
    async with (
        Bus("bench_source", ZeroMQTransport(address), durability=JournalClient()) as bus,
        asyncio.TaskGroup() as tasks,
    ):
        await bus.ready()
        pipe.send("ready")
        while True:
            session = await asyncio.to_thread(pipe.recv)
            trace, kept, number = Trace(new_id(), None, session), 0, 0
            started = time.monotonic()
            for part in range(SECONDS * SLICES_A_SECOND):
                await asyncio.sleep(max(0.0, started + part / SLICES_A_SECOND - time.monotonic()))
                for _ in range(RATE // SLICES_A_SECOND):
                    number += 1
                    message = _message(number)
                    if isinstance(message, Confirmed):
                        tasks.create_task(bus.publish(message, trace))
                    else:
                        bus.post(message, trace)
                    kept += not isinstance(message, GenerationToken)
            pipe.send(kept)


def _message(number: int) -> Message:
    if number % CONFIRMED_EVERY == 0:
        return Confirmed(query_id=str(number), score=None, status="measured")
    if number % KEPT_EVERY == 0:
        return AnswerDialog(query_id=str(number), query="", answer="")
    return GenerationToken(query_id="q", index=number, text=repr(time.monotonic()))


class _Listener:
    """Notes how long each token was on its way."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def hear(self, envelope: Envelope) -> None:
        """One token."""
        now = time.monotonic()
        self.seconds.append(now - float(GenerationToken.decode(envelope.payload).text))


def listen(pipe: Pipe, address: BusAddress) -> None:
    """The process of somebody else."""
    asyncio.run(_listen(pipe, address))


async def _listen(pipe: Pipe, address: BusAddress) -> None:
    async with Bus("bench_other", ZeroMQTransport(address)) as bus:
        listener = _Listener()
        bus.subscribe(GenerationToken.subject, listener.hear)
        await bus.ready()
        pipe.send("ready")
        while True:
            await asyncio.to_thread(pipe.recv)
            pipe.send(quantiles(listener.seconds, n=100)[98])
            listener.seconds.clear()


class _Sleeper(Participant):
    name = "bench_sleeper"

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(Settingless())
        self._pipe = pipe
        self._news = asyncio.Event()
        self._had: dict[str, set[str]] = {}

    @on(AnswerDialog, durable="bench_sleeper")
    async def note_recorded(self, message: AnswerDialog, envelope: Envelope) -> None:
        self._note(envelope)

    @on(Confirmed, durable="bench_sleeper")
    async def note_confirmed(self, message: Confirmed, envelope: Envelope) -> None:
        self._note(envelope)

    @on(GenerationToken)
    async def note_token(self, message: GenerationToken, envelope: Envelope) -> None:
        pass

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        telling = asyncio.create_task(self._tell(), name="tell")
        yield
        telling.cancel()

    def _note(self, envelope: Envelope) -> None:
        self._had.setdefault(envelope.session_id or "", set()).add(envelope.id)
        self._news.set()

    async def _tell(self) -> None:
        while True:
            session, expected = await asyncio.to_thread(self._pipe.recv)
            async with asyncio.timeout(25):
                while len(self._had.get(session, ())) < expected:
                    self._news.clear()
                    await self._news.wait()
            self._pipe.send(len(self._had.get(session, ())))


def sleep(pipe: Pipe, address: BusAddress) -> None:
    """The process that is going to be frozen."""
    asyncio.run(_sleep(pipe, address))


async def _sleep(pipe: Pipe, address: BusAddress) -> None:
    sleeper = _Sleeper(pipe)
    bus = Bus(sleeper.name, ZeroMQTransport(address), durability=JournalClient())
    await ParticipantRunner(sleeper, bus).run(asyncio.Event(), lambda: pipe.send("ready"))


async def run() -> list[Figure]:
    """Pairs of runs: with the sleeper awake, and with it frozen."""
    ratios, p99s, missed = [], [], 0
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        address = BusAddress(f"ipc://{folder / 'pub'}", f"ipc://{folder / 'sub'}")
        await stack.enter_async_context(Peer(forward, address))
        await stack.enter_async_context(Peer(keep, address, folder))
        sleeper = await stack.enter_async_context(Peer(sleep, address))
        other = await stack.enter_async_context(Peer(listen, address))
        publisher = await stack.enter_async_context(Peer(publish, address))

        async def once(session: str, *, is_frozen: bool) -> tuple[float, int]:
            if is_frozen:
                os.kill(sleeper.pid, signal.SIGSTOP)
            publisher.tell(session)
            kept = await publisher.hear()
            os.kill(sleeper.pid, signal.SIGCONT)
            other.tell("tell")
            p99 = await other.hear()
            sleeper.tell((session, kept))
            return p99, kept - await sleeper.hear()

        await once("warm", is_frozen=False)
        for number in range(PAIRS):
            awake, _ = await once(f"awake{number}", is_frozen=False)
            frozen, lost = await once(f"frozen{number}", is_frozen=True)
            ratios.append(frozen / awake)
            p99s.append(frozen)
            missed += lost
    return [
        Figure(f"frozen: p99 of the others at {RATE:,} msg/s", median(p99s) * 1e3, "ms"),
        Figure("frozen:   beside a run without (median of pairs)", median(ratios), "x", limit=1.1),
        Figure("frozen: kept messages that the sleeper missed", missed, "msg", limit=0),
    ]
