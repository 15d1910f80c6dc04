"""The journal as seen by every other process: confirmed publishing, durable consumers, and reading the record."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TypeVar

from local.bus.bus import Bus, Consumer, Delivered, DurableBus
from local.bus.envelope import Envelope, decode
from local.bus.message import Message
from local.bus.sending import TICK_SECONDS, Retry, RetryTable
from local.core import failpoints
from local.core.errors import (
    BusClosed,
    JournalFull,
    JournalGone,
    MalformedFrame,
    NotConfirmed,
    RecordNotRedacted,
    RecordUnreadable,
    RequestTimeout,
    StoreGone,
)
from local.core.files import Backoff, until_next_tick
from local.journal.messages import (
    ConsumerClaim,
    JournalAck,
    JournalAttach,
    JournalConfirmed,
    JournalDeliver,
    JournalDetach,
    JournalEntries,
    JournalEntry,
    JournalFailed,
    JournalFenced,
    JournalFlush,
    JournalFlushed,
    JournalOpened,
    JournalRead,
    JournalRedact,
    JournalRedacted,
    JournalWorking,
)

log = logging.getLogger(__name__)

WORKING_SECONDS = 0.25
ATTACH_SECONDS = 2.0
KEPT_DONE = 4096
MAX_REASON = 2000  # characters


class JournalConsumers:
    """All durable consumers that one process serves; one periodic message keeps all of them attached.

    It attaches when the journal has opened and every `ATTACH_SECONDS`; four times a second it reports the messages
    that are still being handled.
    """

    def __init__(self, carrier: DurableBus, clock: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.carrier, self.clock = carrier, clock
        self._serving: list[JournalConsumer] = []
        self._attaching: asyncio.TimerHandle | None = None
        self._working: asyncio.TimerHandle | None = None

    def add(self, consumer: JournalConsumer) -> None:
        """A consumer is ready to be given messages."""
        self._serving.append(consumer)
        self._attach_in(0.0)

    def remove(self, consumer: JournalConsumer) -> None:
        """A consumer ends."""
        if consumer in self._serving:
            self._serving.remove(consumer)
        if not self._serving and self._attaching is not None:
            self._attaching.cancel()

    def attach(self) -> None:
        """Tell the journal which consumers this process serves, if any."""
        if self._serving:
            self.carrier.post(JournalAttach(consumers=tuple(consumer.claim for consumer in self._serving)))
            self._attach_in(until_next_tick(self.clock().time(), ATTACH_SECONDS))

    def watch_in_flight(self) -> None:
        """Note a delivered message: if it is still in flight after a while, that is reported."""
        if self._working is None:
            self._working = self.clock().call_later(WORKING_SECONDS, self._report_in_flight)

    def _attach_in(self, seconds: float) -> None:
        if self._attaching is not None:
            self._attaching.cancel()
        self._attaching = self.clock().call_later(seconds, self.attach)

    def _report_in_flight(self) -> None:
        self._working = None
        attempts = {consumer.claim.name: lasting for consumer in self._serving if (lasting := consumer.lasting())}
        if attempts:
            self.carrier.post(JournalWorking(attempts=attempts))
        if any(consumer.attempts for consumer in self._serving):
            self.watch_in_flight()


class JournalConsumer:
    """One durable consumer as one process serves it: it passes deliveries on, acknowledges handled messages, and
    repeats acknowledgements that the journal has not received.

    A message is passed on only after its predecessor, because the predecessor may have been lost on its way.
    """

    def __init__(
        self,
        all_of_them: JournalConsumers,
        claim: ConsumerClaim,
        receive: Callable[[Delivered], object],
        replaced: Callable[[], object],
    ) -> None:
        self._all, self._carrier = all_of_them, all_of_them.carrier
        self._receive, self._replaced = receive, replaced
        self.claim = claim
        self.attempts: dict[int, int] = {}  # of the messages in flight
        self._said: dict[int, int] = {}  # in flight at the last report: only what takes longer is reported
        self._done: OrderedDict[int, None] = OrderedDict()
        self._unacknowledged: list[int] = []  # of these, those reported to the journal with the next batch
        self._closed = False
        self._marks = count(1)
        self._hurries: dict[int, asyncio.Future[None]] = {}  # by mark
        self._ended = asyncio.Event()  # something in flight has
        self._ends = [
            self._carrier.subscribe(JournalDeliver.subject + claim.name, self._deliver),
            self._carrier.subscribe(JournalFenced.subject + claim.name, self._fenced),
            self._carrier.subscribe(JournalFlushed.subject + claim.name, self._given),
        ]

    def start(self) -> None:
        """See `Consumer`."""
        self._all.add(self)

    def acknowledge(self, number: int) -> None:
        """See `Consumer`."""
        self._pop(number)
        self._done[number] = None
        if len(self._done) > KEPT_DONE:
            self._done.popitem(last=False)
        if not self._unacknowledged:
            self._all.clock().call_later(self.claim.linger_ms / 1000, self._acknowledge)
        self._unacknowledged.append(number)

    async def caught_up(self, seconds: float) -> bool:
        """See `Consumer`."""
        try:
            async with asyncio.timeout(seconds):
                await self._hurry()
                before = set(self.attempts)
                while not before.isdisjoint(self.attempts):
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def release(self, number: int) -> None:
        """See `Consumer`."""
        self._pop(number)

    def fail(self, number: int, reason: str) -> None:
        """See `Consumer`."""
        attempt = self._pop(number)
        if attempt is not None and not self._closed:
            self._carrier.post(
                JournalFailed(consumer=self.claim.name, number=number, attempt=attempt, reason=reason[:MAX_REASON])
            )

    async def close(self) -> None:
        """See `Consumer`."""
        if not self._closed:
            self._acknowledge()
            self._end()
            self._carrier.post(JournalDetach(consumer=self.claim.name))

    def lasting(self) -> dict[int, int]:
        """The attempts in flight that were so when this was last asked."""
        lasting = {number: attempt for number, attempt in self.attempts.items() if number in self._said}
        self._said = dict(self.attempts)
        return lasting

    def _pop(self, number: int) -> int | None:
        self._ended.set()
        return self.attempts.pop(number, None)

    async def _hurry(self) -> None:
        """Return when the journal has delivered all messages that had arrived."""
        mark, given = next(self._marks), asyncio.get_running_loop().create_future()
        self._hurries[mark] = given
        self._acknowledge()  # there is room for as much
        try:
            self._carrier.post(JournalFlush(consumer=self.claim.name, mark=mark))
            await given
        finally:
            del self._hurries[mark]

    def _given(self, envelope: Envelope) -> None:
        given = JournalFlushed.decode(envelope.payload)
        hurry = self._hurries.get(given.mark)
        if given.instance == self._carrier.instance and hurry is not None and not hurry.done():
            hurry.set_result(None)

    def _acknowledge(self) -> None:
        if self._unacknowledged and not self._closed:
            self._carrier.post(JournalAck(consumer=self.claim.name, numbers=tuple(self._unacknowledged)))
        self._unacknowledged.clear()

    def _end(self) -> None:
        self._closed = True
        self._all.remove(self)
        for end in self._ends:
            end()

    def _deliver(self, envelope: Envelope) -> None:
        try:
            delivery = JournalDeliver.decode(self._carrier.unpack_now(envelope.payload))
            if delivery.instance != self._carrier.instance:
                return
            delivered = decode(delivery.frame.encode())
        except MalformedFrame as error:
            log.error("a delivery cannot be read: %s", error)
            return
        number = delivery.number
        if number in self._done:
            self._carrier.post(JournalAck(consumer=self.claim.name, numbers=(number,)))  # the first one was lost
        elif number in self.attempts:
            self.attempts[number] = delivery.attempt
        elif not delivery.after or delivery.after in self.attempts or delivery.after in self._done:
            self.attempts[number] = delivery.attempt
            self._all.watch_in_flight()
            self._receive(Delivered(number, delivery.attempt, delivered))

    def _fenced(self, envelope: Envelope) -> None:
        if JournalFenced.decode(envelope.payload).instance == self._carrier.instance and not self._closed:
            self._end()
            self._replaced()


# The journal as a bus's durability: pending commits, and messages that may have to be sent again.

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
FLUSH_SECONDS = 0.5
MAX_RECORDED = 10_000
PAUSE = 0.5
WINDOW = 256
MAX_BYTES = 16 * 1024 * 1024


class JournalClient:
    """The `Durability` of one bus, provided by the journal."""

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

    def open(self, carrier: DurableBus) -> None:
        """See `Durability`."""
        self._retries = RetryTable[None](carrier.resend, self._clock)
        self._recorded = RecordedBuffer(self._retries, carrier.dropped, self._max_recorded)
        self._consumers = JournalConsumers(carrier, self._clock)
        carrier.subscribe(JournalConfirmed.subject + carrier.instance, self._receive)
        carrier.subscribe(JournalOpened.subject, lambda _: self.reconnected())

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for its commit."""
        return not len(self._retries)

    def confirm(self, envelope: Envelope, frame: bytes, seconds: float) -> asyncio.Future[None]:
        """See `Durability`."""
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
        """See `Durability`."""
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
        """See `Durability`."""
        claim = ConsumerClaim(
            name=name,
            subjects=tuple(subjects),
            max_in_flight=max_in_flight,
            lane_width=lane_width,
            linger_ms=linger_ms,
        )
        return JournalConsumer(self._consumers, claim, receive, replaced)

    def reconnected(self) -> None:
        """See `Durability`; also called when a new process of the journal has begun to serve."""
        self._retries.hasten()
        self._consumers.attach()

    async def close(self) -> None:
        """See `Durability`."""
        self._flushed = self._clock().create_future()
        try:
            if len(self._recorded):
                await asyncio.wait({self._flushed}, timeout=FLUSH_SECONDS)
        finally:
            self._closed = True
            self._retries.close(partial(BusClosed, "the bus was closed"))

    def _receive(self, envelope: Envelope) -> None:
        """Receive the ids that are on disk, and those that the journal refuses."""
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
    """The recorded messages of one bus that the journal has not confirmed, the oldest first; if there are too many,
    the oldest are dropped and reported.

    Only the `WINDOW` oldest frames are sent again on silence; each confirmation lets the next one in.
    """

    def __init__(
        self,
        retries: RetryTable[None],
        dropped: Callable[[Mapping[str, int]], object],
        max_count: int,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`dropped(gaps)` is called with the number of messages, by subject, that were given up unconfirmed."""
        self._retries, self._dropped = retries, dropped
        self._max_count, self._max_bytes = max_count, max_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # by envelope id, oldest first
        self._outside: deque[str] = deque()  # the window; messages confirmed meanwhile are skipped
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
        """Remove a message that was confirmed or given up."""
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


# Reading and redacting the journal, for clients that missed messages, need more, or delete content.

M = TypeVar("M", bound=Message)

PAGE = 10  # messages at a time: each may be long
MOST = 1000  # of several queries: as many as fit into an answer


async def entries_on_record(bus: Bus, request: JournalRead, seconds: float) -> AsyncIterator[JournalEntry]:
    """Yield every entry that a request asks for, page by page, at most its `limit` in each; `seconds` are for each
    page. Raises `RequestTimeout` while there is no journal, and `RecordUnreadable`.
    """
    while True:
        page = await bus.request(request, JournalEntries, seconds)
        if page.error is not None:
            raise RecordUnreadable(page.error.message)
        for entry in page.entries:
            yield entry
        if not page.more or not page.entries:
            return
        last = page.entries[-1].number
        request = request.model_copy(update={"before" if request.is_backwards else "after": last})


async def read_on_record(
    bus: Bus, query_ids: str | Sequence[str], subjects: Iterable[str], seconds: float
) -> AsyncIterator[tuple[Envelope, bool]]:
    """Return every message on these subjects that belongs to a query, or to one of at most 100, oldest first, and
    whether its payload was removed.

    `seconds` are for each page. Raises `RequestTimeout` while there is no journal, and `RecordUnreadable`.
    """
    if isinstance(query_ids, str):
        request = JournalRead(subjects=tuple(subjects), correlation_id=query_ids, limit=PAGE)
    else:
        request = JournalRead(subjects=tuple(subjects), correlation_ids=tuple(query_ids), limit=MOST)
    async for entry in entries_on_record(bus, request, seconds):
        yield decode(entry.frame.encode()), entry.redacted


async def messages_on_record(
    bus: Bus, query_id: str, kinds: Iterable[type[M]], seconds: float
) -> list[tuple[M, Envelope]]:
    """Return the messages of these kinds that belong to a query, oldest first, without removed ones.

    Raises `RecordUnreadable`, which postpones a durable handler's work, also if no journal answers.
    """
    by_subject = {kind.subject: kind for kind in kinds}
    found: list[tuple[M, Envelope]] = []
    try:
        async for envelope, is_redacted in read_on_record(bus, query_id, by_subject, seconds):
            if not is_redacted:
                found.append((await bus.decode(by_subject[envelope.subject], envelope), envelope))
    except RequestTimeout as error:
        raise RecordUnreadable(str(error)) from None
    return found


async def redact_on_record(bus: Bus, what: JournalRedact, seconds: float) -> int:
    """Have the journal remove payloads permanently; returns how many. Can be repeated after a failure.

    Raises `RequestTimeout` while there is no journal, and `RecordNotRedacted`, which postpones a durable handler's
    work.
    """
    answer = await bus.request(what, JournalRedacted, seconds)
    if answer.error is not None:
        raise RecordNotRedacted(answer.error.message)
    return answer.count
