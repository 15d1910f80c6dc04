"""The two kinds of wire that a bus runs on, and a journal's surroundings on one of them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import zmq

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.proxy import Proxy
from local.bus.receiving import RejectLog
from local.bus.zeromq import MemoryHub, Transport, ZeroMQTransport
from local.core.bus_address import BusAddress
from local.journal.client import JournalClient
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore
from local.runtime.participant import Participant
from local.runtime.runner import ParticipantRunner

SECONDS = 90.0  # a test that waits so long has failed


class Wire(Protocol):
    """A transport under test, and what a test does to it from outside."""

    def transport(self) -> Transport: ...
    def down(self) -> None: ...
    def up(self) -> None: ...
    def close(self) -> None: ...
    async def inject(self, frames: list[bytes]) -> None: ...


class MemoryWire:
    """The in-process hub."""

    def __init__(self, run_dir: Path) -> None:
        self._hub = MemoryHub()
        self.transport, self.down, self.up = self._hub.transport, self._hub.down, self._hub.up

    async def inject(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._hub.forward(frame)

    def close(self) -> None: ...


class ZeroMQWire:
    """ZeroMQ over a private socket file, with a proxy that can go away."""

    def __init__(self, run_dir: Path) -> None:
        self.address = BusAddress(f"ipc://{run_dir}/pub", f"ipc://{run_dir}/sub")
        self._proxy: Proxy | None = None
        self.up()

    def transport(self) -> ZeroMQTransport:
        return ZeroMQTransport(self.address)

    def up(self) -> None:
        self._proxy = Proxy(self.address)

    def down(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None

    close = down

    async def inject(self, frames: list[bytes]) -> None:
        await asyncio.to_thread(self._inject, frames)

    def _inject(self, frames: list[bytes]) -> None:
        with zmq.Context() as context, context.socket(zmq.XPUB) as socket:
            socket.setsockopt(zmq.XPUB_NODROP, 1)
            socket.connect(self.address.publish_to)
            assert socket.recv() == b"\1"  # the proxy listens
            for frame in frames:
                socket.send(frame)


class Leaky(Transport):
    """A transport whose frames may get lost on their way out, and that can be cut, as by a kill -9 of its owner."""

    def __init__(self, inner: Transport, loses: Callable[[bytes], bool]) -> None:
        self._inner, self._loses, self._is_cut = inner, loses, False
        self.subscribe, self.unsubscribe, self.writable = inner.subscribe, inner.unsubscribe, inner.writable

    @property
    def address(self) -> str:
        return self._inner.address

    def open(self, on_frame: Callable[[bytes], None], on_link: Callable[[bool], None]) -> None:
        self._inner.open(lambda frame: None if self._is_cut else on_frame(frame), on_link)

    def send(self, frame: bytes) -> bool:
        return self._is_cut or self._loses(frame) or self._inner.send(frame)

    def cut(self) -> None:
        self._is_cut = True

    async def close(self) -> None:
        await self._inner.close()


class Served:
    """A participant that runs on a scene's wire."""

    def __init__(self, participant: Participant, bus: Bus, end: Leaky) -> None:
        self.participant, self.bus, self._end = participant, bus, end
        self._stop, self._ready = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(ParticipantRunner(participant, bus).run(self._stop, self._ready.set))

    async def ready(self) -> None:
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({ready, self.task}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        assert self._ready.is_set(), self.task

    async def stop(self) -> None:
        """SIGTERM."""
        self._stop.set()
        await asyncio.wait_for(self.task, SECONDS)

    async def kill(self) -> None:
        """As by kill -9: it sends and receives nothing from now on."""
        self._end.cut()
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=SECONDS)


class Scene:
    """A journal's surroundings: buses and participants on one wire, its file, and losses on the way."""

    def __init__(self, wire: Wire, directory: Path) -> None:
        self.wire, self.directory, self.file = wire, directory, directory / "journal.db"
        self.store: JournalStore
        self.open_store: Callable[[Path], JournalStore] = JournalStore
        self._blobs, self._rejects = BlobStore(directory / "blobs"), RejectLog(directory / "rejects")
        self._to_lose: list[tuple[bytes, asyncio.Event]] = []
        self._lost_subjects: list[bytes] = []
        self._stack = AsyncExitStack()

    def _transport(self) -> Leaky:
        return Leaky(self.wire.transport(), self._loses)

    async def bus(self, name: str = "talker", *, journaled: bool = True) -> Bus:
        """Ready to publish."""
        bus = Bus(
            name,
            self._transport(),
            rejects=self._rejects,
            blobs=self._blobs,
            durability=JournalClient() if journaled else None,
        )
        await self._stack.enter_async_context(bus)
        await bus.ready()
        return bus

    async def hears(self, *subjects: str, repeats: bool = True) -> asyncio.Queue[Envelope]:
        """Everything on these subjects that goes over the wire from now on."""
        bus = Bus("witness", self._transport())
        await self._stack.enter_async_context(bus)
        heard: asyncio.Queue[Envelope] = asyncio.Queue()
        for subject in subjects:
            bus.subscribe(subject, heard.put_nowait, repeats=repeats)
        await bus.ready()
        return heard

    async def serve(self, participant: Participant) -> Served:
        end = self._transport()
        bus = Bus(
            participant.name,
            end,
            rejects=self._rejects,
            blobs=self._blobs,
            durability=JournalClient() if participant.journaled else None,
        )
        served = Served(participant, bus, end)
        self._stack.push_async_callback(_end, served)
        await served.ready()
        return served

    async def journal(self, **settings: Any) -> Served:
        """Start a journal on the scene's one file."""
        self.store = self.open_store(self.file)
        return await self.serve(Journal(JournalConfig(**settings), self.store))

    async def disk_is_full(self) -> None:
        """Let the journal's file grow no further."""
        await self._limit_pages("(SELECT page_count FROM pragma_page_count)")

    async def disk_has_room(self) -> None:
        await self._limit_pages("1000000")

    async def _limit_pages(self, sql: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            (pages,) = db.execute(f"SELECT {sql}").fetchone()
            db.execute(f"PRAGMA max_page_count={pages}").fetchall()

        await self.store._database.run(work)

    def rows(self, sql: str = "SELECT number, subject, envelope_id FROM entries ORDER BY number") -> list[Any]:
        """What is on the disk at this moment."""
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as db:
            return db.execute(sql).fetchall()

    def ids(self) -> list[str]:
        """The envelopes on record, in order."""
        return [envelope_id for _, _, envelope_id in self.rows()]

    def lose_next(self, subject: str) -> asyncio.Event:
        """The next frame of a subject or family gets lost; tells when it has."""
        lost = asyncio.Event()
        self._to_lose.append((subject.encode(), lost))
        return lost

    @contextmanager
    def losing(self, subject: str) -> Iterator[None]:
        """Every frame of a subject or family gets lost meanwhile."""
        self._lost_subjects.append(subject.encode())
        try:
            yield
        finally:
            self._lost_subjects.remove(subject.encode())

    def _loses(self, frame: bytes) -> bool:
        if frame.startswith(tuple(self._lost_subjects)):
            return True
        for rule in self._to_lose:
            if frame.startswith(rule[0]):
                self._to_lose.remove(rule)
                rule[1].set()
                return True
        return False

    async def close(self) -> None:
        await self._stack.aclose()


async def _end(served: Served) -> None:
    if not served.task.done():
        await served.stop()
