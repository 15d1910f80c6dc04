"""A tap's way onto the bus: it listens until Ctrl-C or SIGTERM, and reports what the bus has lost."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from local.apps.run_directory import KEYS, RunDirectory
from local.apps.tap.printer import Printer
from local.apps.tap.selection import Selection
from local.apps.tap.system_watch import SystemWatch
from local.apps.tap.view import PlainView, View
from local.bus.address import BusAddress
from local.bus.bus import Bus
from local.bus.keyring import with_keys
from local.bus.sender_guard import Declaration, Declarations, SenderGuard
from local.bus.transport import open_transport
from local.environment import data_dir as find_data_dir
from local.errors import ConfigError
from local.protocol.envelope import Envelope

TAP = "tap"
READY_SECONDS = 5.0
TICK_SECONDS = 1.0

_REFUSED = {  # by what the bus counts, in words
    "malformed": "that were no messages of this protocol",
    "refused": "in the name of somebody who has not declared them",
}

T = TypeVar("T")


def find_bus(data_dir: Path, addresses: str | None) -> BusAddress:
    """The bus at "PUB,SUB", or else of the system that runs on `data_dir`. Raises `ConfigError` or `NotRunning`.

    A tcp bus that is named is spoken to with the keys in the data directory, if there are any.
    """
    if addresses is None:
        return RunDirectory(data_dir).running_bus()
    publish_to, comma, subscribe_to = (part.strip() for part in addresses.partition(","))
    if not comma or not all(part.startswith(("tcp://", "ipc://")) for part in (publish_to, subscribe_to)):
        raise ConfigError(f"--bus {addresses}: expected PUB,SUB such as tcp://127.0.0.1:5555,tcp://127.0.0.1:5556")
    has_keys = any((data_dir / KEYS / f"{name}.keys").exists() for name in ("bus", TAP))
    curve = publish_to.startswith("tcp://") and has_keys
    return RunDirectory(data_dir).named_bus(publish_to, subscribe_to, curve=curve)


def print_until_stopped(
    view: View[T],
    work: Callable[[Bus, Printer[T], asyncio.Event], Awaitable[None]],
    *,
    data_dir: Path | None,
    addresses: str | None,
    count: int | None = None,
    sender: str = TAP,
    declaration: Declaration | None = None,
) -> None:
    """Run `work` with the bus that `find_bus` finds, a printer, and an event that Ctrl-C, SIGTERM and the end of the
    output set.

    A system that was found by its data directory may stop and come back: that is said, and the work goes on. The bus
    keeps no samples of refused frames, participants do that. What `declaration` names it may say while it runs. Raises
    `LocalError`: no such system or bus, an output that fails.
    """
    folder = find_data_dir(data_dir)
    address = find_bus(folder, addresses)
    watch = SystemWatch(RunDirectory(folder), address) if addresses is None else None

    async def run() -> None:
        with _ended_by_signals() as stop:
            async with Printer(view, on_end=stop.set, count=count) as printer:
                with _telling(watch, printer):
                    await work(client_bus(address, sender, declaration), printer, stop)

    asyncio.run(run())


@contextmanager
def _telling(watch: SystemWatch | None, printer: Printer[T]) -> Iterator[None]:
    telling = None if watch is None else asyncio.create_task(watch.tell(printer.note), name="system watch")
    try:
        yield
    finally:
        if telling is not None:
            telling.cancel()


async def listen(
    bus: Bus,
    selection: Selection,
    receive: Callable[[Envelope], object],
    printer: Printer[Any],
    stop: asyncio.Event,
    *,
    seconds: float | None = None,
    each_second: Callable[[], object] = lambda: None,
) -> float:
    """Give `receive` every selected envelope until `stop` is set or `seconds` have passed, and report losses.

    `each_second` is called once a second and at the end. Returns for how many seconds it has listened. Raises
    `BusNotReady`.
    """
    losses, clock = LossReport(bus, selection), asyncio.get_running_loop().time

    def sift(envelope: Envelope) -> None:
        if selection.wants(envelope):
            receive(envelope)

    async with bus:
        for subject in selection.subscriptions():
            bus.subscribe(subject, sift)
        await bus.ready(READY_SECONDS)
        printer.note("listening; Ctrl-C ends it")
        began = clock()
        end = float("inf") if seconds is None else began + seconds
        while not stop.is_set() and (left := end - clock()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(TICK_SECONDS, left))
            printer.lost(losses.take())
            each_second()
        return clock() - began


def report_until_stopped(
    subject: str, receive: Callable[[Envelope], object], report: Callable[[], str],
    *, seconds: float | None, data_dir: Path | None, addresses: str | None,
) -> None:  # fmt: skip
    """Have a figure take what is said on a subject, and print its `report` once a second, until `seconds` have passed
    or `print_until_stopped` ends."""
    selection = Selection((subject,))
    print_until_stopped(
        PlainView(),
        lambda bus, printer, stop: report_each_second(bus, selection, receive, report, printer, stop, seconds=seconds),
        data_dir=data_dir,
        addresses=addresses,
    )


async def report_each_second(
    bus: Bus, selection: Selection, receive: Callable[[Envelope], object], report: Callable[[], str],
    printer: Printer[str], stop: asyncio.Event, *, seconds: float | None = None,
) -> None:  # fmt: skip
    """Have a figure take every selected envelope, and print its `report` once a second and at the end."""

    def print_report() -> None:
        line = report()
        printer.offer(line, len(line))

    await listen(bus, selection, receive, printer, stop, seconds=seconds, each_second=print_report)


class LossReport:
    """What a bus has missed of a selection, in words."""

    def __init__(self, bus: Bus, selection: Selection) -> None:
        self._bus, self._selection = bus, selection
        self._seen: Counter[str] = Counter()

    def take(self) -> Counter[str]:
        """The losses since the last call: "of <subject> from <sender>", and how many."""
        losses: Counter[str] = Counter()
        for gap in self._bus.take_gaps():
            if self._selection.wants_subject(gap.missed_subject):
                losses[f"of {gap.missed_subject} from {gap.sender}"] += gap.missed
        for name, what in _REFUSED.items():
            if refused := self._bus.counters[name] - self._seen[name]:
                losses[what] = refused
                self._seen[name] += refused
        return losses


def client_bus(address: BusAddress, sender: str, declaration: Declaration | None = None) -> Bus:
    """A bus, not yet open, for a command that is no participant; it checks who says what, and may itself say what is
    declared. That stays so while the system runs: who is busy looks for it when the command has ended."""
    declarations = None if address.senders is None else Declarations(address.senders)
    if declarations is not None and declaration is not None:
        before = declarations.read(sender) or Declaration(frozenset())
        declarations.write(sender, replace(declaration, says=declaration.says | before.says))
    guard = None if declarations is None else SenderGuard(declarations.read)
    return Bus(sender, open_transport(with_keys(address, sender)), guard=guard)


@contextmanager
def _ended_by_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
