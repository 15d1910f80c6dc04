"""The journal as a bus's durability: who waits for a commit, and what may have to be sent again.

Recorded messages are kept until the journal has them, bounded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from local import failpoints
from local.backoff import Backoff
from local.bus.durability import Carrier, Consumer, Delivered
from local.bus.retry_table import TICK_SECONDS, Retry, RetryTable
from local.errors import BusClosed, JournalFull, JournalGone, NotConfirmed, StoreGone
from local.journal.client.journal_consumer import JournalConsumer, JournalConsumers
from local.protocol.envelope import Envelope
from local.protocol.journal_messages import ConsumerClaim, JournalConfirmed, JournalOpened

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
FLUSH_SECONDS = 0.5
MAX_RECORDED = 10_000
PAUSE = 0.5
WINDOW = 256
MAX_BYTES = 16 * 1024 * 1024


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
        linger_ms: int,
    ) -> Consumer:
        """As in `Durability`."""
        claim = ConsumerClaim(
            name=name,
            subjects=tuple(subjects),
            max_in_flight=max_in_flight,
            lane_width=lane_width,
            linger_ms=linger_ms,
        )
        return JournalConsumer(self._consumers, claim, receive, replaced)

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
        """The journal has told what is on disk, and what it refuses to take."""
        confirmed = JournalConfirmed.decode(envelope.payload)
        for envelope_id in confirmed.ids:
            self._retries.answered(envelope_id, None)
            self._recorded.confirmed(envelope_id)
        for envelope_id in confirmed.refused:
            reason = confirmed.error.message if confirmed.error else "the disk is full"
            is_gone = confirmed.error is not None and confirmed.error.kind == StoreGone.kind
            self._retries.refused(envelope_id, JournalGone(reason) if is_gone else JournalFull(reason))
        if self._flushed is not None and not len(self._recorded) and not self._flushed.done():
            self._flushed.set_result(None)


@dataclass(slots=True)
class _Kept:
    subject: str
    frame: bytes
    sent_at: float
    retry: Retry[None] | None = None


class RecordedBuffer:
    """The oldest are dropped first when there are too many.

    At most `WINDOW` frames, the oldest, are sent again on silence: each that is confirmed lets the next one in.
    """

    def __init__(
        self,
        retries: RetryTable[None],
        dropped: Callable[[Mapping[str, int]], object],
        max_count: int,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`dropped(gaps)` is told, by subject, how many messages were given up unconfirmed."""
        self._retries, self._dropped = retries, dropped
        self._max_count, self._max_bytes = max_count, max_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # by envelope id, oldest first
        self._outside: deque[str] = deque()  # the window; what was confirmed meanwhile is skipped
        self._bytes = self._inside = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, envelope_id: str, subject: str, frame: bytes) -> None:
        """A message is on its way."""
        if envelope_id in self._kept:
            return
        self._kept[envelope_id] = _Kept(subject, frame, self._retries.now())
        self._bytes += len(frame)
        self._outside.append(envelope_id)
        self._fill()
        while len(self._kept) > 1 and (len(self._kept) > self._max_count or self._bytes > self._max_bytes):
            oldest = next(iter(self._kept))
            self._dropped({self._kept[oldest].subject: 1})
            self.confirmed(oldest)

    def confirmed(self, envelope_id: str) -> None:
        """The journal has a message, or nobody will know."""
        kept = self._kept.pop(envelope_id, None)
        if kept is None:
            return
        self._bytes -= len(kept.frame)
        if kept.retry is not None:
            self._inside -= 1
            self._retries.end(kept.retry)
            self._fill()

    def _fill(self) -> None:
        """Let the next ones into the window."""
        while self._inside < WINDOW and self._outside:
            envelope_id = self._outside.popleft()
            kept = self._kept.get(envelope_id)
            if kept is not None:
                self._inside += 1
                first_pause = max(TICK_SECONDS, kept.sent_at + PAUSE - self._retries.now())
                kept.retry = self._retries.open(envelope_id, Backoff(first_pause, PAUSE))
                self._retries.left(kept.retry, kept.frame)
