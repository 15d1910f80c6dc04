"""Where a handler's messages come from: the live bus, or the journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from local.bus.bus import Bus
from local.bus.durability import Consumer, Delivered
from local.bus.inbox import Inbox
from local.protocol.envelope import Envelope
from local.protocol.messages import Message
from local.protocol.subjects import covers
from local.runtime.participant import Handles, Participant

Method = Callable[[Message, Envelope], Awaitable[Message | None]]


class Subscription(Protocol):
    """One handler, and what has arrived for it."""

    handles: Handles
    method: Method
    inbox: Inbox

    def done(self, envelope: Envelope) -> None:
        """The handler is done with an envelope, for good."""

    def not_done(self, envelope: Envelope) -> None:
        """The handler could not do its work on an envelope now."""

    def close(self) -> None:
        """Take nothing more; what has arrived can still be handled."""


class LiveSubscription:
    """A subscription: what is lost is lost, and what is done is nobody's business."""

    def __init__(self, bus: Bus, participant: Participant, handles: Handles) -> None:
        self.handles, self.method, self.inbox = handles, getattr(participant, handles.method), Inbox()
        subject = participant.subject_of(handles.message)
        self._end = bus.subscribe(subject, self.inbox.offer, repeats=handles.message.is_request)

    def done(self, envelope: Envelope) -> None:
        """A live message is nobody else's business."""

    def not_done(self, envelope: Envelope) -> None:
        """A live message is nobody else's business."""

    def close(self) -> None:
        """As in `Subscription`."""
        self._end()
        self.inbox.close()


class DurableSubscription:
    """A handler's share of what its durable consumer is given."""

    def __init__(self, participant: Participant, handles: Handles) -> None:
        self.handles, self.method, self.inbox = handles, getattr(participant, handles.method), Inbox()
        self.subject, self._attempts = participant.subject_of(handles.message), participant.attempts
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
        self.consumer = bus.consume(
            name,
            sorted(subscription.subject for subscription in self.subscriptions),
            self._take,
            replaced,
            max_in_flight=max(2, *(subscription.handles.concurrency for subscription in self.subscriptions)),
            lane_width=max(subscription.handles.lane_width for subscription in self.subscriptions),
        )
        for subscription in self.subscriptions:
            subscription.consumer = self.consumer

    def _take(self, delivered: Delivered) -> None:
        subject = delivered.envelope.subject
        for subscription in self.subscriptions:
            if covers(subscription.subject, subject):
                subscription.take(delivered)
                return
        self.consumer.acknowledge(delivered.number)  # of a subject that an earlier version wanted
