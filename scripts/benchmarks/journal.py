"""What durability costs: a confirmed publish beside one fsync of the same disk, and fifty publishers at once."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

from benchmarks.figure import Figure
from benchmarks.peer import Peer, Pipe
from benchmarks.talk import forward
from local.bus.bus import Bus
from local.bus.envelope import new_id
from local.bus.messages import QueryReceived
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress
from local.journal.client import JournalClient
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore
from local.runtime.runner import ParticipantRunner

ONE_BY_ONE = 1000
PUBLISHERS = 50
EACH = 200
ROUNDS = 5
QUERY = "What is the answer to a question of ordinary length, such as somebody may ask on any day of the week?"


def keep(pipe: Pipe, address: BusAddress, folder: Path) -> None:
    """The journal's process."""
    asyncio.run(_keep(pipe, address, folder))


async def _keep(pipe: Pipe, address: BusAddress, folder: Path) -> None:
    journal = Journal(JournalConfig(), JournalStore(folder / "journal.db"))
    await ParticipantRunner(journal, Bus("journal", ZeroMQTransport(address))).run(
        asyncio.Event(), lambda: pipe.send("ready")
    )


def publish(pipe: Pipe, address: BusAddress) -> None:
    """The publishers' process: one after the other on one bus, then fifty at once on five."""
    asyncio.run(_publish(pipe, address))


async def _publish(pipe: Pipe, address: BusAddress) -> None:
    async with AsyncExitStack() as stack:
        buses = [
            await stack.enter_async_context(Bus(f"door{number}", ZeroMQTransport(address), durability=JournalClient()))
            for number in range(5)
        ]
        for bus in buses:
            await bus.ready()
        pipe.send("ready")
        while await asyncio.to_thread(pipe.recv) == "go":
            pipe.send((await _one_by_one(buses[0]), await _at_once(buses)))


async def _one_by_one(bus: Bus) -> list[float]:
    seconds = []
    for _ in range(ONE_BY_ONE // ROUNDS):
        started = time.perf_counter()
        await bus.publish(QueryReceived(query_id=new_id(), query=QUERY))
        seconds.append(time.perf_counter() - started)
    return seconds


async def _at_once(buses: list[Bus]) -> float:
    async def publisher(bus: Bus) -> None:
        for _ in range(EACH):
            await bus.publish(QueryReceived(query_id=new_id(), query=QUERY))

    started = time.perf_counter()
    await asyncio.gather(*(publisher(buses[number % len(buses)]) for number in range(PUBLISHERS)))
    return PUBLISHERS * EACH / (time.perf_counter() - started)


def _fsyncs(folder: Path) -> list[float]:
    """Seconds that it takes to append 4 kB to a file and have them on the disk, as a commit does."""
    seconds = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(ONE_BY_ONE // ROUNDS):
            started = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - started)
    return seconds


async def run() -> list[Figure]:
    """Rounds of fsyncs and publishes, in turn."""
    syncs: list[float] = []
    confirmed: list[float] = []
    rates: list[float] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        address = BusAddress(f"ipc://{folder / 'pub'}", f"ipc://{folder / 'sub'}")
        await stack.enter_async_context(Peer(forward, address))
        await stack.enter_async_context(Peer(keep, address, folder))
        publishers = await stack.enter_async_context(Peer(publish, address))
        for _ in range(ROUNDS):
            syncs += await asyncio.to_thread(_fsyncs, folder)
            publishers.tell("go")
            one_by_one, rate = await publishers.hear()
            confirmed += one_by_one
            rates.append(rate)
    sync = median(syncs) * 1e3
    return [
        Figure("journal: confirmed publish p50", median(confirmed) * 1e3, "ms", sync, limit=2 * sync + 0.5),
        Figure(f"journal: from {PUBLISHERS} publishers", median(rates), "msg/s", limit=3000, at_least=True),
    ]
