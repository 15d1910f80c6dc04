"""A tap's way onto the bus, and the signals that end it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from local.apps.run_directory import RunDirectory
from local.apps.tap.losses import Losses
from local.apps.tap.printer import Printer
from local.apps.tap.selection import Selection
from local.bus.address import BusAddress
from local.bus.bus import Bus
from local.bus.proxy import load_or_make_keys
from local.bus.zeromq import ZeroMQTransport
from local.errors import ConfigError
from local.protocol.envelope import Envelope

READY_SECONDS = 5.0
TICK_SECONDS = 1.0


def find_bus(data_dir: Path, addresses: str | None) -> BusAddress:
    """The bus at "PUB,SUB", or else of the system that runs on `data_dir`. Raises `ConfigError` or `NotRunning`.

    A tcp bus that is named is spoken to with the keys in the data directory, if there are any.
    """
    if addresses is None:
        return RunDirectory(data_dir).running_bus()
    publish_to, comma, subscribe_to = (part.strip() for part in addresses.partition(","))
    if not comma or not all(part.startswith(("tcp://", "ipc://")) for part in (publish_to, subscribe_to)):
        raise ConfigError(f"--bus {addresses}: expected PUB,SUB such as tcp://127.0.0.1:5555,tcp://127.0.0.1:5556")
    keys = data_dir / "keys"
    encrypted = publish_to.startswith("tcp://") and (keys / "bus.keys").exists()
    return BusAddress(publish_to, subscribe_to, load_or_make_keys(keys) if encrypted else None)


def connect(address: BusAddress) -> Bus:
    """A bus that only listens: it keeps no samples of refused frames, participants do that."""
    return Bus("tap", ZeroMQTransport(address))


@asynccontextmanager
async def listening(
    bus: Bus, selection: Selection, receive: Callable[[Envelope], object], printer: Printer[Any]
) -> AsyncIterator[Losses]:
    """Inside, `receive` gets every selected envelope. Gives the losses to report, and reports the last itself.

    Raises `BusNotReady`.
    """
    losses = Losses(bus, selection)

    def sift(envelope: Envelope) -> None:
        if selection.wants(envelope):
            receive(envelope)

    async with bus:
        for subject in selection.subscriptions():
            bus.subscribe(subject, sift)
        await bus.ready(READY_SECONDS)
        printer.note("listening; Ctrl-C ends it")
        try:
            yield losses
        finally:
            printer.lost(losses.take())


@contextmanager
def ended_by_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def ticks(stop: asyncio.Event, seconds: float | None = None) -> AsyncIterator[None]:
    """Once a second until `stop` is set or `seconds` have passed, and once at the end."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while not stop.is_set() and (end is None or loop.time() < end):
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), TICK_SECONDS if end is None else min(TICK_SECONDS, end - loop.time()))
        yield
