"""The journal as a bus's durability: who waits for a commit, and what may have to be sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from local import failpoints
from local.backoff import Backoff
from local.bus.durability import Carrier, Consumer, Delivered
from local.bus.retry_table import RetryTable
from local.errors import BusClosed, JournalFull, NotConfirmed
from local.journal.client.journal_consumer import JournalConsumer, JournalConsumers
from local.journal.client.recorded_buffer import RecordedBuffer
from local.protocol.envelope import Envelope
from local.protocol.journal_messages import JournalConfirmed, JournalOpened

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
FLUSH_SECONDS = 0.5
MAX_RECORDED = 10_000


class JournalClient:
    """Durability by the journal participant, for one bus."""

    def __init__(
        self,
        *,
        clock: Callable[[], asyncio.AbstractEventLoop] = asyncio.get_running_loop,
        max_recorded: int = MAX_RECORDED,
    ) -> None:
        """At most `max_recorded` recorded messages are kept until they are confirmed."""
        self._clock, self._max_recorded = clock, max_recorded
        self._flushed: asyncio.Future[None] | None = None
        self._closed = False

    def open(self, carrier: Carrier) -> None:
        """As in `Durability`."""
        self._retries = RetryTable[None](carrier.resend, self._clock)
        self._recorded = RecordedBuffer(self._retries, carrier.dropped, self._max_recorded)
        self._consumers = JournalConsumers(carrier, self._clock)
        carrier.subscribe(JournalConfirmed.subject + carrier.instance, self._hear)
        carrier.subscribe(JournalOpened.subject, lambda _: self.reconnected())

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for its commit."""
        return not len(self._retries)

    def confirm(self, envelope: Envelope, frame: bytes, seconds: float) -> asyncio.Future[None]:
        """As in `Durability`."""
        too_late = partial(NotConfirmed, envelope.subject, seconds)
        retry = self._retries.open(envelope.id, Backoff(FIRST_PAUSE, LONGEST_PAUSE), seconds, too_late)
        if self._closed:
            retry.fail(BusClosed("the bus was closed"))
        elif failpoints.is_lossy():
            self._retries.answered(envelope.id, None)
        else:
            self._retries.left(retry, frame)
        return retry.answer

    def record(self, envelope: Envelope, frame: bytes) -> None:
        """As in `Durability`."""
        if not self._closed and not failpoints.is_lossy():
            self._recorded.add(envelope.id, envelope.subject, frame)

    def consume(
        self,
        name: str,
        subjects: Sequence[str],
        receive: Callable[[Delivered], object],
        replaced: Callable[[], object],
        *,
        max_in_flight: int,
        lane_width: int,
    ) -> Consumer:
        """As in `Durability`."""
        return JournalConsumer(
            self._consumers, name, subjects, receive, replaced, max_in_flight=max_in_flight, lane_width=lane_width
        )

    def reconnected(self) -> None:
        """As in `Durability`; also when a new process of the journal has begun to serve."""
        self._retries.hasten()
        self._consumers.attach()

    async def close(self) -> None:
        """As in `Durability`."""
        self._flushed = self._clock().create_future()
        try:
            if len(self._recorded):
                await asyncio.wait({self._flushed}, timeout=FLUSH_SECONDS)
        finally:
            self._closed = True
            self._retries.close(partial(BusClosed, "the bus was closed"))

    def _hear(self, envelope: Envelope) -> None:
        """The journal has told what is on disk, and what it has no room for."""
        confirmed = JournalConfirmed.decode(envelope.payload)
        for envelope_id in confirmed.ids:
            self._retries.answered(envelope_id, None)
            self._recorded.confirmed(envelope_id)
        for envelope_id in confirmed.refused:
            reason = confirmed.error.message if confirmed.error else "the disk is full"
            self._retries.refused(envelope_id, JournalFull(reason))
        if self._flushed is not None and not len(self._recorded) and not self._flushed.done():
            self._flushed.set_result(None)
