"""`local2 tap hz`: how often something is said."""

from __future__ import annotations

import asyncio
from pathlib import Path

from local.apps.tap.connection import connect, ended_by_signals, find_bus, listening, ticks
from local.apps.tap.intervals import Intervals
from local.apps.tap.printer import Printer
from local.apps.tap.selection import Selection
from local.apps.tap.view import PlainView
from local.bus.bus import Bus
from local.config import data_dir as find_data_dir

WINDOW = 1_000


def hz(
    *,
    subject: str,
    data_dir: Path | None = None,
    bus: str | None = None,
    window: int = WINDOW,
    seconds: float | None = None,
) -> None:
    """Print each second the rate of a subject, over the last `window` intervals, for `seconds` or until Ctrl-C.

    Raises `LocalError` as `echo`.
    """
    selection = Selection((subject,))
    address = find_bus(find_data_dir(data_dir), bus)

    async def run() -> None:
        with ended_by_signals() as stop:
            async with Printer(PlainView(), on_end=stop.set) as printer:
                await measure(connect(address), selection, printer, stop, window=window, seconds=seconds)

    asyncio.run(run())


async def measure(
    bus: Bus,
    selection: Selection,
    printer: Printer[str],
    stop: asyncio.Event,
    *,
    window: int = WINDOW,
    seconds: float | None = None,
) -> None:
    """Report once a second, and at the end. Intervals are between arrivals here, not between the senders' clocks."""
    intervals, clock = Intervals(window), asyncio.get_running_loop().time
    async with listening(bus, selection, lambda _: intervals.add(clock()), printer) as losses:
        async for _ in ticks(stop, seconds):
            printer.lost(losses.take())
            line = intervals.report()
            printer.offer(line, len(line))
