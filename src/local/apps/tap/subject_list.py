"""`local2 tap list`: which subjects are in use."""

from __future__ import annotations

import asyncio
from pathlib import Path

from local.apps.tap.connection import connect, ended_by_signals, find_bus, listening, ticks
from local.apps.tap.printer import Printer
from local.apps.tap.selection import Selection
from local.apps.tap.subject_table import SubjectTable
from local.apps.tap.view import PlainView
from local.bus.bus import Bus
from local.config import data_dir as find_data_dir

EVERYTHING = Selection(("*",))


def list_subjects(
    *, data_dir: Path | None = None, bus: str | None = None, seconds: float = 5.0, as_json: bool = False
) -> None:
    """Listen for `seconds` (or until Ctrl-C) and print each subject with its figures. Raises `LocalError` as `echo`."""
    address = find_bus(find_data_dir(data_dir), bus)

    async def run() -> None:
        with ended_by_signals() as stop:
            async with Printer(PlainView(), on_end=stop.set) as printer:
                await count_subjects(connect(address), printer, stop, seconds, as_json=as_json)

    asyncio.run(run())


async def count_subjects(
    bus: Bus, printer: Printer[str], stop: asyncio.Event, seconds: float, *, as_json: bool = False
) -> None:
    """Count for `seconds` or until `stop` is set, then print the table."""
    table, clock = SubjectTable(), asyncio.get_running_loop().time
    async with listening(bus, EVERYTHING, table.add, printer) as losses:
        since = clock()
        async for _ in ticks(stop, seconds):
            printer.lost(losses.take())
        elapsed = max(clock() - since, 1e-3)
    text = table.as_json(elapsed) if as_json else "\n".join(table.as_text(elapsed))
    printer.offer(text, len(text))
