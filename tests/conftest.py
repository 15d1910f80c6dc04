"""The wires that conformance suites run over: in-process, and ZeroMQ with its proxy. And a journal's surroundings."""

from __future__ import annotations

import asyncio
import fnmatch
import gc
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
import zmq
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "chaos"))  # for the package `chaos_harness`
sys.path.insert(0, str(Path(__file__).parent / "agents"))  # for the package `agent_stage`

from chaos_harness.small_disk import MayNotMount, SmallDisk

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.proxy import Proxy
from local.bus.receiving import RejectLog
from local.bus.zeromq import MemoryHub, Transport, ZeroMQTransport
from local.core.bus_address import BusAddress
from local.core.errors import SandboxMissing
from local.journal.client import JournalClient
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore
from local.runtime.participant import Participant
from local.runtime.runner import ParticipantRunner
from local.sandbox.sandbox import Sandbox, sandbox_of_this_machine
from tests.worker_shares import shared_out
from tests.workers.worker_template import WorkerTemplate

SECONDS = 30.0  # a test that waits so long has failed
NOBODY = 65534
EXAMPLES, EXAMPLES_THOROUGH = 25, 200  # that a property is tried with


def pytest_configure(config: pytest.Config) -> None:
    """Property tests neither depend on how busy the machine is nor leave a database behind."""
    is_thorough = "not thorough" not in config.getoption("markexpr")
    examples = EXAMPLES_THOROUGH if is_thorough else EXAMPLES
    settings.register_profile("local", deadline=None, database=None, max_examples=examples)
    settings.load_profile("local")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Each worker makes thousands of tests, all of which stay: nothing of that is looked through for garbage, neither
    now nor in any later collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Once everybody's markers are set."""
    items[:] = shared_out(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Workers are forks of a process that has collected the tests, where files go with an order to fork: on Linux."""
    if sys.platform == "linux":
        template = WorkerTemplate(config.args)
        config.add_cleanup(template.close)
        specs[:] = [type(spec)(f"{spec}//python={template.python}") for spec in specs]


class Wire(Protocol):
    """A transport under test and what a test does to it from outside."""

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
    """A participant that is being served."""

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
        """From one moment to the next nothing is heard of it any more."""
        self._end.cut()
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=SECONDS)


class Scene:
    """A journal's surroundings: buses and participants on one wire, its file, and losses on the way."""

    def __init__(self, wire: Wire, directory: Path) -> None:
        self.wire, self.directory, self.file = wire, directory, directory / "journal.db"
        self.store: JournalStore
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
        """What goes over the wire from now on."""
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
        """A process of the journal on the scene's one file."""
        self.store = JournalStore(self.file)
        return await self.serve(Journal(JournalConfig(**settings), self.store))

    async def disk_is_full(self) -> None:
        """For the journal, that is."""
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


@pytest.fixture(params=[MemoryWire, ZeroMQWire], ids=["memory", "zeromq"])
def make_wire(request: pytest.FixtureRequest) -> Callable[[Path], Wire]:
    """Every kind of wire in turn."""
    kind: Callable[[Path], Wire] = request.param
    return kind


@pytest.fixture
def in_process_wire() -> Callable[[Path], Wire]:
    """For folders that put it in the place of `make_wire`: one kind of wire is enough for them."""
    return MemoryWire


@pytest.fixture
async def wire(make_wire: Callable[[Path], Wire]) -> AsyncIterator[Wire]:
    """A wire; afterwards no task is left."""
    run_dir = Path(tempfile.mkdtemp(prefix="bus-"))  # short enough for a socket's path
    wire = make_wire(run_dir)
    yield wire
    wire.close()
    shutil.rmtree(run_dir)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture
async def scene(wire: Wire, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(wire, tmp_path)
    yield scene
    await scene.close()


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Lets the loop run until something has happened; for counters and files, which set no event."""

    async def until(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():  # noqa: ASYNC110 see above
                await asyncio.sleep(0.005)

    return until


@pytest.fixture(scope="session")
def machine_sandbox() -> Sandbox:
    """What contains a command here. Skips the test where there is none; in CI there is one."""
    try:
        return sandbox_of_this_machine()
    except SandboxMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Skips the test where one may not mount."""
    try:
        with SmallDisk(tmp_path / "disk") as disk:
            yield disk
    except MayNotMount as error:
        pytest.skip(str(error))


@pytest.fixture
def files_with() -> Callable[..., list[str]]:
    """The files under a folder that a text is in, in whatever case; others may write and delete there meanwhile."""

    def files_with(folder: Path, *texts: str | bytes, name: str = "*") -> list[str]:
        needles = [(text.encode() if isinstance(text, str) else text).lower() for text in texts]
        found: list[str] = []
        for parent, _, names in os.walk(folder):  # unlike `Path.rglob`, it passes over folders that have just gone
            for file in map(Path(parent).joinpath, fnmatch.filter(names, name)):
                with suppress(FileNotFoundError):
                    content = file.read_bytes().lower()
                    found += [str(file.relative_to(folder))] * any(needle in content for needle in needles)
        return found

    return files_with


@pytest.fixture(autouse=True, scope="session")
def _heard_signals() -> None:
    """Programs that tests start hear what is to end them, also where `nohup` or a shell's `&` has this process ignore
    it: they inherit that, but no handler."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """A command that a test runs within its own process makes private files, and so would the tests after it."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture
def stranger() -> Callable[[Path], list[str]]:
    """Makes a folder one that may be read and not written to; gives what a command has to begin with for that to
    count. Of whoever is root, who may always write, that takes away; and the folder is somebody else's."""

    def made(folder: Path) -> list[str]:
        found = [folder, *folder.rglob("*")]
        if os.geteuid() != 0:
            for path in found:
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o555)
            return []
        for path in found:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        command = shutil.which("setpriv")
        assert command, "of util-linux, which every Linux has"
        return [command, "--bounding-set=-dac_override,-dac_read_search"]

    return made
