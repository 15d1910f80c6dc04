"""`local2 journal play`: an export is said again on the bus of a running system."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from local.apps.journal.casting import SENDER, Casting, Recaster
from local.apps.journal.export import read_export
from local.apps.journal.pace import Pace
from local.apps.journal.record import Record
from local.apps.tap.connection import READY_SECONDS, ended_by_signals, find_bus
from local.apps.tap.echo import terminal_width
from local.apps.tap.human_view import HumanView
from local.apps.tap.printer import Printer
from local.bus.blobs import BlobStore, needs_packing
from local.bus.bus import Bus
from local.bus.zeromq import ZeroMQTransport
from local.config import data_dir as find_data_dir
from local.protocol.envelope import Envelope


def play(
    file: Path,
    casting: Casting,
    make_pace: Callable[[], Pace],
    *,
    keeps_ids: bool = False,
    data_dir: Path | None = None,
    bus: str | None = None,
) -> None:
    """Play a file and show each message, until its end or Ctrl-C; say on the error output what was left out.

    `bus` is "PUB,SUB"; without it, the system that runs on the data directory. `make_pace` is called in the event loop.
    Raises `LocalError`: a bad file, no such system, an output that fails.
    """
    records = list(casting.choose(read_export(file)))
    data = find_data_dir(data_dir)
    address = find_bus(data, bus)

    async def run() -> None:
        with ended_by_signals() as stop:
            async with Printer(HumanView(width=terminal_width), on_end=stop.set) as printer:
                for reason, number in casting.left_out.items():
                    printer.note(f"left out {number} {reason}")

                def show(envelope: Envelope) -> None:
                    printer.offer(envelope, len(envelope.payload))

                player = Player(Bus(SENDER, ZeroMQTransport(address)), BlobStore(data / "blobs"), show)
                await until(stop, player.play(records, make_pace(), keeps_ids=keeps_ids))
                printer.note(f"played {player.count} of {len(records)}")

    asyncio.run(run())


class Player:
    """Says records again on a bus; `played` gets each envelope that has left, `count` of them so far."""

    def __init__(self, bus: Bus, blobs: BlobStore, played: Callable[[Envelope], object]) -> None:
        self._bus, self._blobs, self._played = bus, blobs, played
        self.count = 0

    async def play(self, records: Sequence[Record], due: Pace, *, keeps_ids: bool) -> None:
        """Returns when the proxy has them all. Raises as `Bus.ready` and `Bus.send` do."""
        recaster = Recaster(self._bus.instance, keeps_ids=keeps_ids)
        async with self._bus as bus:
            await bus.ready(READY_SECONDS)
            for record in records:
                if not await due(max(0.0, record.committed_at - records[0].committed_at)):
                    break
                envelope = await self._packed(recaster.recast(record.envelope, time.time()))
                await bus.send(envelope)
                self.count += 1
                self._played(envelope)
            await bus.ready(READY_SECONDS)  # the probe comes back behind everything that was sent

    async def _packed(self, envelope: Envelope) -> Envelope:
        if not needs_packing(envelope.payload):
            return envelope
        return envelope._replace(payload=await self._blobs.pack_aside(envelope.payload))


async def until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do `work` until it is done or `stop` is set. Raises what it raises."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        working.cancel()
        await asyncio.wait({working, stopped})
    if not working.cancelled():
        working.result()
