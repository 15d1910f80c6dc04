"""`local2 tap`: everything that is said, as it is said."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from local.apps.tap.connection import connect, ended_by_signals, find_bus, listening, ticks
from local.apps.tap.field_view import FieldView
from local.apps.tap.human_view import HumanView
from local.apps.tap.json_view import JsonView
from local.apps.tap.printer import Printer
from local.apps.tap.selection import Selection
from local.apps.tap.view import View
from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.config import data_dir as find_data_dir
from local.protocol.envelope import Envelope


def echo(
    *,
    data_dir: Path | None = None,
    bus: str | None = None,
    subjects: Sequence[str] = (),
    session_id: str | None = None,
    query_id: str | None = None,
    fields: Sequence[str] = (),
    as_json: bool = False,
    count: int | None = None,
    show_payload: bool = True,
    fold: bool = True,
) -> None:
    """Print messages, one on a line, until Ctrl-C, `count` lines, or the end of whoever reads the output.

    `bus` is "PUB,SUB"; without it, the system that runs on the data directory. See `Selection` for the filters and
    `FieldView` for `fields`. Raises `LocalError`: no such system or bus, a bad filter, an output that fails.
    """
    selection = Selection(tuple(subjects), session_id, query_id)
    data = find_data_dir(data_dir)
    address = find_bus(data, bus)
    view: View[Envelope]
    if fields:
        view = FieldView(fields, as_json=as_json, blobs=BlobStore(data / "blobs"))
    elif as_json:
        view = JsonView(blobs=BlobStore(data / "blobs"), show_payload=show_payload)
    else:
        view = HumanView(width=terminal_width, show_payload=show_payload, fold=fold)

    async def run() -> None:
        with ended_by_signals() as stop:
            async with Printer(view, on_end=stop.set, count=count) as printer:
                await watch(connect(address), selection, printer, stop)

    asyncio.run(run())


async def watch(bus: Bus, selection: Selection, printer: Printer[Envelope], stop: asyncio.Event) -> None:
    """Hand what is selected to a printer until `stop` is set."""

    def receive(envelope: Envelope) -> None:
        printer.offer(envelope, len(envelope.payload))

    async with listening(bus, selection, receive, printer) as losses:
        async for _ in ticks(stop):
            printer.lost(losses.take())


def terminal_width() -> int | None:
    """The columns of the terminal that the output goes to, None if it goes elsewhere."""
    try:
        return os.get_terminal_size(1).columns or None
    except OSError:
        return None
