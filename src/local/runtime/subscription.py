"""Where a handler's messages come from: the live bus, or the journal."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol

from local.bus.bus import Bus
from local.bus.durability import Consumer, Delivered
from local.errors import BusClosed
from local.protocol.envelope import Envelope
from local.protocol.messages import Message
from local.protocol.subjects import covers
from local.runtime.participant import Handles, Participant

Method = Callable[[Message, Envelope], Awaitable[Message | None]]
MAX_ENVELOPES = 100_000
MAX_BYTES = 64 * 1024 * 1024


class Inbox:
    """One consumer takes, the reader offers. Bounded by number and by payload bytes; never blocks the reader.

    What has waited here for longer than its `ttl_ms` is dropped and counted in `expired`. `clock` gives monotonic
    seconds.
    """

    def __init__(
        self,
        *,
        max_envelopes: int = MAX_ENVELOPES,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.expired = 0
        self._max_envelopes, self._max_bytes, self._clock = max_envelopes, max_bytes, clock
        self._items: deque[tuple[Envelope, float]] = deque()  # each with the time until which it is of use
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def offer(self, envelope: Envelope) -> bool:
        """Append; False if there is no room."""
        size = len(envelope.payload)
        if len(self._items) >= self._max_envelopes or self._bytes + size > self._max_bytes:
            return False
        until = math.inf if envelope.ttl_ms is None else self._clock() + envelope.ttl_ms / 1000
        self._items.append((envelope, until))
        self._bytes += size
        self._wake()
        return True

    async def take(self) -> Envelope:
        """The oldest envelope still of use, as soon as there is one. Raises `BusClosed` when closed and empty."""
        while True:
            while not self._items:
                if self._closed:
                    raise BusClosed("the inbox was closed")
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            envelope, until = self._items.popleft()
            self._bytes -= len(envelope.payload)
            if until == math.inf or self._clock() <= until:
                return envelope
            self.expired += 1

    def discard(self) -> None:
        """Forget what is there: it has another way of coming."""
        self._items.clear()
        self._bytes = 0

    def close(self) -> None:
        """Nothing more will come; what is there can still be taken."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        while True:
            try:
                yield await self.take()
            except BusClosed:
                return


class Subscription(Protocol):
    """One handler, and what has arrived for it."""

    handles: Handles
    method: Method
    inbox: Inbox

    def done(self, envelope: Envelope) -> None:
        """The handler is done with an envelope, for good."""

    def not_done(self, envelope: Envelope) -> None:
        """The handler could not do its work on an envelope now."""

    def failed(self, envelope: Envelope, reason: str) -> None:
        """The handler raised on an envelope."""

    def close(self) -> None:
        """Take nothing more; what has arrived can still be handled."""


class LiveSubscription:
    """A subscription: what is lost is lost, and what is done is nobody's business."""

    def __init__(self, bus: Bus, participant: Participant, handles: Handles) -> None:
        self.handles, self.method, self.inbox = handles, getattr(participant, handles.method), Inbox()
        subject = handles.subject or participant.subject_of(handles.message)
        self._end = bus.subscribe(subject, self.inbox.offer, repeats=handles.message.is_request)

    def done(self, envelope: Envelope) -> None:
        """A live message is nobody else's business."""

    def not_done(self, envelope: Envelope) -> None:
        """A live message is nobody else's business."""

    def failed(self, envelope: Envelope, reason: str) -> None:
        """A live message is nobody else's business."""

    def close(self) -> None:
        """As in `Subscription`."""
        self._end()
        self.inbox.close()


class DurableSubscription:
    """A handler's share of what its durable consumer is given."""

    def __init__(self, participant: Participant, handles: Handles) -> None:
        self.handles, self.method, self.inbox = handles, getattr(participant, handles.method), Inbox()
        self.subject = handles.subject or participant.subject_of(handles.message)
        self._attempts = participant.attempts
        self.consumer: Consumer
        self._numbers: dict[str, int] = {}  # by envelope id
        self._closed = False

    def take(self, delivered: Delivered) -> None:
        """A message from the journal; what is on record does not expire."""
        envelope = delivered.envelope._replace(ttl_ms=None)
        self._numbers[envelope.id], self._attempts[envelope.id] = delivered.number, delivered.attempt
        if self._closed or not self.inbox.offer(envelope):
            self.not_done(envelope)

    def done(self, envelope: Envelope) -> None:
        """As in `Subscription`."""
        self._attempts.pop(envelope.id, None)
        self.consumer.acknowledge(self._numbers.pop(envelope.id))

    def not_done(self, envelope: Envelope) -> None:
        """As in `Subscription`."""
        self._attempts.pop(envelope.id, None)
        self.consumer.release(self._numbers.pop(envelope.id))

    def failed(self, envelope: Envelope, reason: str) -> None:
        """As in `Subscription`."""
        self.consumer.fail(self._numbers.pop(envelope.id), reason)

    def close(self) -> None:
        """As in `Subscription`. What has not begun is handed back with the consumer."""
        self._closed = True
        self.inbox.discard()
        self.inbox.close()


class DurableSubscriptions:
    """The handlers of one durable consumer, served together: the journal knows one name and one order.

    Raises `NoJournal`.
    """

    def __init__(
        self, bus: Bus, participant: Participant, name: str, handlers: Iterable[Handles], replaced: Callable[[], object]
    ) -> None:
        self.subscriptions = [DurableSubscription(participant, handles) for handles in handlers]
        self.name, self.subjects = name, sorted(subscription.subject for subscription in self.subscriptions)
        self.consumer = bus.consume(
            name,
            self.subjects,
            self._take,
            replaced,
            max_in_flight=max(2, *(subscription.handles.concurrency for subscription in self.subscriptions)),
            lane_width=max(subscription.handles.lane_width for subscription in self.subscriptions),
            linger_ms=participant.linger_ms,
        )
        participant.consumers.append(self.consumer)
        for subscription in self.subscriptions:
            subscription.consumer = self.consumer

    def _take(self, delivered: Delivered) -> None:
        subject = delivered.envelope.subject
        for subscription in self.subscriptions:
            if covers(subscription.subject, subject):
                subscription.take(delivered)
                return
        self.consumer.acknowledge(delivered.number)  # of a subject that an earlier version wanted
