"""`local2 journal play`: an export is said again on the bus of a running system, in the player's name."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from local.apps.journal.journal_record import JournalRecord
from local.apps.run_directory import NotRunning, RunDirectory
from local.apps.tap.connection import READY_SECONDS, print_until_stopped
from local.apps.tap.human_view import HumanView
from local.apps.tap.printer import Printer
from local.apps.terminal import terminal_width
from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.sender_guard import Declaration
from local.environment import data_dir as find_data_dir
from local.errors import LocalError
from local.protocol.envelope import Envelope, needs_packing, new_id

SENDER = "player"
STANDARD_INPUT = 0

# Waits until a message is due that came so many seconds after the first. False: nothing more is to be played.
Pace = Callable[[float], Awaitable[bool]]


def play(
    records: Sequence[JournalRecord],
    left_out: Mapping[str, int],
    make_pace: Callable[[], Pace],
    *,
    keeps_ids: bool,
    data_dir: Path | None,
    addresses: str | None,
) -> None:
    """Play records and show each message, until their end or Ctrl-C; say on the error output what was left out.

    `addresses` is "PUB,SUB"; without it, the system that runs on the data directory. `make_pace` is called in the event
    loop. Raises `LocalError`: no such system, an output that fails.
    """
    blobs = BlobStore(find_data_dir(data_dir) / "blobs")

    async def work(bus: Bus, printer: Printer[Envelope], stop: asyncio.Event) -> None:
        for reason, number in left_out.items():
            printer.note(f"left out {number} {reason}")
        player = JournalPlayer(bus, blobs, lambda envelope: printer.offer(envelope, len(envelope.payload)))
        await until(stop, player.play(records, make_pace(), keeps_ids=keeps_ids))
        printer.note(f"played {player.count} of {len(records)}")

    view = HumanView(width=terminal_width)
    declaration = Declaration(frozenset(record.envelope.subject for record in records))
    print_until_stopped(view, work, data_dir=data_dir, addresses=addresses, sender=SENDER, declaration=declaration)


class PlayRefused(LocalError):
    """A play that would put on record a second time what is there."""

    kind = "conflict"


def refuse_own_system(data_dir: Path, addresses: str | None) -> None:
    """Raises `PlayRefused` where the bus is that of the system which runs on a data directory, and `NotRunning` where
    no bus is named and none runs."""
    try:
        own = RunDirectory(data_dir).facts()
    except NotRunning:
        if addresses is None:
            raise
        return
    if addresses is None or [part.strip() for part in addresses.split(",")] == [own.publish_to, own.subscribe_to]:
        raise PlayRefused(
            f"the system on {data_dir} would have all of it on record a second time; give a bus of its own (--bus"
            " PUB,SUB), keep the ids (--same-ids), or say that you want that (--twice-on-record)"
        )


class JournalPlayer:
    """Says records again on a bus; `played` gets each envelope that has left, `count` of them so far."""

    def __init__(self, bus: Bus, blobs: BlobStore, played: Callable[[Envelope], object]) -> None:
        self._bus, self._blobs, self._played = bus, blobs, played
        self.count = 0

    async def play(self, records: Sequence[JournalRecord], due: Pace, *, keeps_ids: bool) -> None:
        """Returns when the proxy has them all. Raises as `Bus.ready` and `Bus.send` do."""
        rewriter = EnvelopeRewriter(self._bus.instance, keeps_ids=keeps_ids)
        async with self._bus as bus:
            await bus.ready(READY_SECONDS)
            for record in records:
                if not await due(max(0.0, record.committed_at - records[0].committed_at)):
                    break
                envelope = await self._packed(rewriter.rewrite(record.envelope, time.time()))
                await bus.send(envelope)
                self.count += 1
                self._played(envelope)
            await bus.ready(READY_SECONDS)  # the probe comes back behind everything that was sent

    async def _packed(self, envelope: Envelope) -> Envelope:
        if not needs_packing(envelope.payload):
            return envelope
        return envelope._replace(payload=await self._blobs.pack_aside(envelope.payload))


class EnvelopeRewriter:
    """Puts the player in the sender's place. Envelope ids are fresh unless `keeps_ids`; links between them stay.

    A reply to what is not played answers nobody: a request with that id could still be waiting in a living system.
    """

    def __init__(self, instance: str, *, keeps_ids: bool) -> None:
        self._instance, self._keeps_ids = instance, keeps_ids
        self._ids: dict[str, str] = {}
        self._seqs: Counter[str] = Counter()

    def rewrite(self, envelope: Envelope, now: float) -> Envelope:
        """The envelope to send; `now` is in seconds since 1970."""
        self._seqs[envelope.subject] += 1
        self._ids[envelope.id] = envelope.id if self._keeps_ids else new_id()
        return envelope._replace(
            id=self._ids[envelope.id],
            sender=SENDER,
            instance=self._instance,
            seq=self._seqs[envelope.subject],
            cause_id=self._ids.get(envelope.cause_id or "", envelope.cause_id),
            in_reply_to=self._ids.get(envelope.in_reply_to or ""),
            sent_at=now,
        )


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


def at_once() -> Pace:
    """Each message as soon as the bus takes it."""

    async def due(seconds: float) -> bool:
        await asyncio.sleep(0)  # let Ctrl-C in
        return True

    return due


def spaced(rate: float) -> Pace:
    """With the pauses there were, `rate` times as fast; counted from the first message."""
    clock = asyncio.get_running_loop().time
    started: float | None = None

    async def due(seconds: float) -> bool:
        nonlocal started
        started = clock() if started is None else started
        await asyncio.sleep(started + seconds / rate - clock())
        return True

    return due


def stepwise(descriptor: int = STANDARD_INPUT) -> Pace:
    """One message for each line of input, until its end."""
    loop, enters = asyncio.get_running_loop(), asyncio.Queue[bool]()

    def listen() -> None:
        with suppress(RuntimeError):  # the loop has ended
            while data := os.read(descriptor, 1024):  # what blocks inside Python's own buffers blocks the exit
                for _ in range(data.count(b"\n")):
                    loop.call_soon_threadsafe(enters.put_nowait, True)
            loop.call_soon_threadsafe(enters.put_nowait, False)

    async def due(seconds: float) -> bool:
        return await enters.get()

    threading.Thread(target=listen, name="journal play input", daemon=True).start()
    return due
