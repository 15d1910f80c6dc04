"""The publisher's hold on the journal: who waits for a commit, and what may have to be sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from local import failpoints
from local.bus.durability import Carrier, Consumer, Delivered
from local.errors import BusClosed, JournalFull, NotConfirmed
from local.journal.client.confirmations import Confirmations, Resend
from local.journal.client.journal_consumer import JournalConsumer
from local.journal.client.recorded_buffer import RecordedBuffer
from local.protocol.envelope import Envelope
from local.protocol.journal_messages import JournalConfirmed, JournalFloors, JournalOpened

TICK_SECONDS = 0.05
FLUSH_SECONDS = 0.5


class JournalClient:
    """Durability by the journal participant. One timer serves all that waits; limits are kept to a twentieth of a
    second."""

    def __init__(self) -> None:
        self._confirmations, self._recorded = Confirmations(), RecordedBuffer()
        self._waiting: dict[str, asyncio.Future[None]] = {}  # by subject and seq: each publish has a limit of its own
        self._keys: dict[str, list[str]] = {}  # of these, by envelope id, which may be published more than once
        self._timer: asyncio.TimerHandle | None = None
        self._flushed: asyncio.Future[None] | None = None
        self._closed = False

    def open(self, carrier: Carrier) -> None:
        """As in `Durability`."""
        self._carrier = carrier
        carrier.subscribe(JournalConfirmed.subject + carrier.instance, self._hear)
        carrier.subscribe(JournalOpened.subject, lambda _: self.reconnected())

    def confirm(self, envelope: Envelope, frame: bytes, seconds: float) -> asyncio.Future[None]:
        """As in `Durability`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if self._closed:
            future.set_exception(BusClosed("the bus was closed"))
            return future
        key = f"{envelope.subject}/{envelope.seq}"
        self._waiting[key] = future
        self._keys.setdefault(envelope.id, []).append(key)
        future.add_done_callback(lambda _: self._left(envelope.id, key))
        if failpoints.is_lossy():
            future.set_result(None)
        self._confirmations.sent(key, envelope.subject, frame, loop.time(), seconds)
        self._wind(loop)
        return future

    def record(self, envelope: Envelope, frame: bytes) -> None:
        """As in `Durability`."""
        if self._closed or failpoints.is_lossy():
            return
        loop = asyncio.get_running_loop()
        self._recorded.sent(envelope.subject, envelope.seq, frame, loop.time())
        self._wind(loop)

    def consume(
        self,
        name: str,
        subjects: Sequence[str],
        receive: Callable[[Delivered], object],
        replaced: Callable[[], object],
        *,
        max_in_hand: int,
        lane_width: int,
    ) -> Consumer:
        """As in `Durability`."""
        return JournalConsumer(
            self._carrier, name, subjects, receive, replaced,
            max_in_hand=max_in_hand, lane_width=lane_width,
        )  # fmt: skip

    def _hear(self, envelope: Envelope) -> None:
        """The journal has told what is on disk."""
        confirmed = JournalConfirmed.decode(envelope.payload)
        self._recorded.acknowledged(confirmed.recorded)
        if self._flushed is not None and not len(self._recorded) and not self._flushed.done():
            self._flushed.set_result(None)
        for key in self._keys_of(confirmed.ids):
            if not self._waiting[key].done():
                self._waiting[key].set_result(None)
        for key in self._keys_of(confirmed.refused):
            self._fail(key, JournalFull(confirmed.error.message if confirmed.error else "the disk is full"))

    def reconnected(self) -> None:
        """As in `Durability`; also when a new process of the journal has begun to serve."""
        self._confirmations.journal_is_back(asyncio.get_running_loop().time())
        self._send_what_is_due()

    async def close(self) -> None:
        """As in `Durability`."""
        self._flushed = asyncio.get_running_loop().create_future()
        try:
            if len(self._recorded):
                await asyncio.wait({self._flushed}, timeout=FLUSH_SECONDS)
        finally:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            for key in list(self._waiting):
                self._fail(key, BusClosed("the bus was closed"))

    def _keys_of(self, ids: Iterable[str]) -> list[str]:
        return [key for envelope_id in ids for key in self._keys.get(envelope_id, ())]

    def _left(self, envelope_id: str, key: str) -> None:
        del self._waiting[key]
        self._confirmations.forget(key)
        self._keys[envelope_id].remove(key)
        if not self._keys[envelope_id]:
            del self._keys[envelope_id]

    def _fail(self, key: str, error: BusClosed | JournalFull | NotConfirmed) -> None:
        future = self._waiting[key]
        if not future.done():
            future.set_exception(error)
            future.exception()  # counts as seen: its publisher may be ending for a reason of its own

    def _wind(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None:
            self._timer = loop.call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._send_what_is_due()
        if len(self._confirmations) or len(self._recorded):
            self._wind(asyncio.get_running_loop())

    def _send_what_is_due(self) -> None:
        now = asyncio.get_running_loop().time()
        for decision in self._confirmations.due(now):
            if isinstance(decision, Resend):
                self._carrier.resend(decision.frame)
            else:
                self._fail(decision.envelope_id, decision.error)
        overdue = self._recorded.due(now)
        if overdue.floors:
            self._carrier.post(JournalFloors(floors=overdue.floors))
        for frame in overdue.frames:
            self._carrier.resend(frame)
        if overdue.gaps:
            self._carrier.dropped(overdue.gaps)
