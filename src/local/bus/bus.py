"""A participant's connection to all others: publish, subscribe, request, ready."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, Self, TypeVar

from local.bus.blobs import BlobStore
from local.bus.envelope import Envelope, Trace, is_packed, needs_packing, new_id
from local.bus.message import Delivery, Message, is_subject, subscription
from local.bus.messages import BusGap, BusProbe, ParticipantStatus
from local.bus.receiving import Dispatcher, Receive, RejectLog
from local.bus.security import SenderGuard
from local.bus.sending import Handshake, Retry, RetryTable, SendQueue
from local.bus.zeromq import Transport
from local.core.errors import (
    BusClosed,
    BusNotReady,
    NoJournal,
    PublishTimeout,
    RequestTimeout,
    UndeclaredMessage,
    UnsendableMessage,
)
from local.core.files import Backoff
from local.core.secrets import secret_mask

# The interface of a bus to durable storage: our journal implements it, and NATS JetStream could.


class Delivered(NamedTuple):
    """A message that the journal has delivered, with its number in the journal and how often this consumer has
    received it.
    """

    number: int
    attempt: int
    envelope: Envelope


class Consumer(Protocol):
    """One process's subscription to a named durable consumer. It receives the messages that the consumer has not
    acknowledged, in order within a session. A message that stays unacknowledged for too long is delivered again; the
    subscription keeps the messages in flight alive until `acknowledge` or `release`.
    """

    def start(self) -> None:
        """Ready to be given messages; the subscriptions made by `consume` have to be in place by then."""

    def acknowledge(self, number: int) -> None:
        """The message is handled; it is never given again."""

    async def caught_up(self, seconds: float) -> bool:
        """Whether all that was for it when this was called has been given, and has ended well or ill, within so many
        seconds."""

    def release(self, number: int) -> None:
        """Return the message unhandled: the journal delivers it again after a while, to the instance that then serves
        the consumer.
        """

    def fail(self, number: int, reason: str) -> None:
        """Report that the handler raised: the journal delivers the message again after a growing pause, and finally
        makes it a dead letter.
        """

    async def close(self) -> None:
        """Accept no more messages and return those in flight."""


class DurableBus(Protocol):
    """The part of a bus that a `Durability` uses."""

    instance: str

    def subscribe(self, subject: str, receive: Callable[[Envelope], object]) -> Callable[[], None]:
        """Call `receive` for every envelope on a subject or family; returns the function that ends that."""

    def unpack_now(self, payload: bytes) -> bytes:
        """A payload with the large fields that travel outside it. Raises `MalformedFrame`."""

    def resend(self, frame: bytes) -> object:
        """Send a frame once more, if that is possible now."""

    def post(self, message: Message) -> object:
        """Publish without waiting."""

    def dropped(self, gaps: Mapping[str, int]) -> None:
        """Report, by subject, how many recorded messages were given up and may be missing in the journal."""


class Durability(Protocol):
    """The interface of the journal that one bus uses: publisher confirms and durable consumers."""

    def open(self, carrier: DurableBus) -> None:
        """Subscribe to the journal's messages when the bus opens."""

    async def close(self) -> None:
        """Wait briefly until recorded messages are on the disk; then raise `BusClosed` in all waiting callers."""

    def reconnected(self) -> None:
        """Send unconfirmed messages again, because the connection is back."""

    def confirm(self, envelope: Envelope, frame: bytes, seconds: float) -> asyncio.Future[None]:
        """A confirmed message has been handed over, or could not be yet: it is resent until it is on disk.

        The future raises `NotConfirmed` after `seconds`, and `JournalFull` where the disk has no room for new work.
        """

    def record(self, envelope: Envelope, frame: bytes) -> None:
        """A recorded message has been handed over: it is kept here and resent until it is on disk."""

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
        """Serve the durable consumer `name`, which gets `subjects`, whole ones and families.

        At most `max_in_flight` messages at a time, of one session at most `lane_width`. Deliveries and
        acknowledgements may wait `linger_ms` for others to travel with them. `receive` is called inside the reader and
        must neither block nor raise; `replaced` when another process has taken the place of this one.
        """


# Puts messages into envelopes: ids, numbers, and large fields moved out of the way.


class EnvelopeFactory:
    """The maker of one instance's envelopes. `last_seq` is the number of envelopes so far, by subject."""

    def __init__(self, sender: str, instance: str, blobs: BlobStore | None, guard: SenderGuard | None = None) -> None:
        self._sender, self._instance, self._blobs, self._guard = sender, instance, blobs, guard
        self.last_seq: dict[str, int] = {}

    async def payload(self, message: Message) -> bytes:
        """A message as it travels. Raises `UnsendableMessage`, `BlobNotStored`."""
        payload = message.encode()
        if self._blobs is not None and needs_packing(payload):
            return await self._blobs.pack_aside(_masked(payload))
        return payload

    def seal(
        self,
        subject: str,
        payload: bytes,
        trace: Trace | None = None,
        *,
        in_reply_to: str | None = None,
        envelope_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> tuple[Envelope, bytes]:
        """Return the next envelope on a subject, and its frame. Without a trace it begins a new correlation; it has
        none of the secrets of this process.

        Raises `FrameTooLarge`, `UnsendableMessage`, `UndeclaredMessage`.
        """
        seq = self.last_seq.get(subject, 0) + 1
        if seq == 1:
            self._check(subject)
        envelope_id = envelope_id or new_id()
        correlation_id, cause_id, session_id, user_id = trace or Trace(envelope_id)
        envelope = Envelope(
            subject, envelope_id, self._sender, self._instance, seq, correlation_id, _masked(payload),
            cause_id, in_reply_to, session_id, user_id, time.time(), ttl_ms,
        )  # fmt: skip
        frame = envelope.encode()
        self.last_seq[subject] = seq  # only now: a message that could not be encoded must not look like a loss
        return envelope, frame

    def _check(self, subject: str) -> None:
        if not is_subject(subject):
            raise UnsendableMessage(
                f"{subject[:80]!a} is not a subject; expected words of a-z, A-Z, 0-9, _ and -, joined by dots"
            )
        if self._guard is not None and not self._guard.may_publish(self._sender, self._instance, subject):
            raise UndeclaredMessage(self._sender, subject)


def _masked(payload: bytes) -> bytes:
    return secret_mask.payload(payload) if secret_mask.names else payload


# A bus's probes to itself through the proxy, which prove that its subscriptions are in place.


class Probes:
    """The probes that one bus sends to itself. Each `listen` subscribes to another subject, so that a probe comes back
    only after all earlier subscriptions are in place: the proxy processes the subscriptions of a connection in order,
    but a probe, which has a connection of its own, may overtake them.
    """

    def __init__(self, transport: Transport, sender: str, instance: str) -> None:
        self._transport, self._sender, self._instance = transport, sender, instance
        self._times = 0

    def listen(self) -> None:
        """Hear the probes that are sent from now on, and no earlier ones."""
        earlier, self._times = self._subject, self._times + 1
        self._transport.subscribe(subscription(self._subject))
        if self._times > 1:
            self._transport.unsubscribe(subscription(earlier))

    def send(self, number: int) -> None:
        """Send a probe. Probes are numbered separately, so that they do not count as missed messages."""
        probe = BusProbe(heard_as=self._probe_id, instance=self._instance, attempt=number)
        envelope_id = new_id()
        envelope = Envelope(
            probe.routing_key, envelope_id, self._sender, self._instance, number, envelope_id, probe.encode()
        )
        self._transport.send(envelope.encode())

    @property
    def _probe_id(self) -> str:
        return f"{self._instance}.{self._times}"

    @property
    def _subject(self) -> str:
        return BusProbe.subject + self._probe_id


# Requests that wait for their answers.

MAX_LATE = 1024
FIRST_RESEND_SECONDS = 0.5
LAST_RESEND_SECONDS = 5.0


class Requests:
    """The open requests of one bus by envelope id, and the ids of those that were recently given up."""

    def __init__(self, resend: Callable[[bytes], object]) -> None:
        """`resend(frame)` sends a request once more, if that is possible now."""
        self._open: RetryTable[Envelope] = RetryTable(resend)
        self._given_up: deque[str] = deque(maxlen=MAX_LATE)
        self._answered_on: dict[str, str] = {}  # by the ids of open ones

    def begin(
        self, request_id: str, answered_on: str, seconds: float, silence: Callable[[], RequestTimeout]
    ) -> Retry[Envelope]:
        """Open a request; its answer is an envelope on the subject `answered_on`, the result of `silence()` after
        `seconds`, or `BusClosed`.
        """
        self._answered_on[request_id] = answered_on
        backoff = Backoff(FIRST_RESEND_SECONDS, LAST_RESEND_SECONDS)
        return self._open.open(request_id, backoff, seconds, silence)

    def left(self, request: Retry[Envelope], frame: bytes) -> None:
        """A request was sent; on silence it goes again."""
        self._open.left(request, frame)

    def end(self, request: Retry[Envelope]) -> None:
        """Forget the request: the caller has stopped waiting."""
        self._open.end(request)
        if request.frame_id not in self._open:
            self._answered_on.pop(request.frame_id, None)
        answer = request.answer
        if not answer.done() or answer.cancelled() or answer.exception() is not None:
            self._given_up.append(request.frame_id)

    def settle(self, request_id: str, reply: Envelope) -> bool:
        """Pass a reply to its request, if that is open. False for a reply that comes too late for a request of ours.

        A message on another subject is no reply: its sender may not give this answer.
        """
        if request_id not in self._open:
            return request_id not in self._given_up
        if reply.subject == self._answered_on.get(request_id):
            self._open.answered(request_id, reply)
        return True

    def reconnected(self, send_first: Callable[[bytes], object]) -> None:
        """Send the messages again that were under way when the connection broke, before the waiting ones."""
        self._open.hasten(send_first)

    def close(self) -> None:
        """Fail all open requests with `BusClosed`."""
        self._open.close(partial(BusClosed, "the bus was closed"))


M = TypeVar("M", bound=Message)

READY_SECONDS = 10.0
PUBLISH_SECONDS = 5.0
CONFIRM_SECONDS = 30.0


class Bus:
    """One participant's connection to all others. Use as `async with`; then subscribe, `await ready()`, and send.

    `counters` (published, waited, dropped, received, repeated, malformed, missed, overflow, resent, late_replies,
    reconnects, refused) only grow. `instance` is unique for each Bus. With a `durability`, which belongs to this bus
    alone, confirmed and recorded messages are sent until they are in the journal; without, they are sent once. With a
    `guard` the bus refuses messages that their sender has not declared, and does not send undeclared ones itself.
    """

    def __init__(
        self,
        sender: str,
        transport: Transport,
        *,
        rejects: RejectLog | None = None,
        blobs: BlobStore | None = None,
        durability: Durability | None = None,
        guard: SenderGuard | None = None,
    ) -> None:
        self.sender, self.guard = sender, guard
        self.instance = new_id()[:12]
        self.counters: Counter[str] = Counter()
        self._envelopes = EnvelopeFactory(sender, self.instance, blobs, guard)
        self.on_reconnect: list[Callable[[], object]] = []
        self._transport = transport
        self.blobs = blobs
        self._fresh: list[str] = []  # subscribed to since the last ready()
        self._requests = Requests(self.resend)
        self._hears_replies: dict[str, bool] = {}  # by subject: subscribed to, and whether the subscription is in place
        self._probes = Probes(transport, sender, self.instance)
        self._handshake = Handshake(self._probes.send, self._probes.listen, self._reconnected)
        self._send_queue = SendQueue(transport, self._handshake, self.counters)
        self._dispatcher = Dispatcher(
            sender, self.instance, self.counters, rejects, self._requests.settle, self._handshake.returned, guard
        )
        self.on_newcomer, self.refuse = self._dispatcher.on_newcomer, self._dispatcher.refuse
        self.heard = self._dispatcher.heard
        self._durability = durability

    @property
    def last_seq(self) -> dict[str, int]:
        """The number of sent messages, by subject."""
        return self._envelopes.last_seq

    @property
    def is_ready(self) -> bool:
        """Whether messages sent now reach the bus."""
        return self._handshake.is_ready

    async def __aenter__(self) -> Self:
        self._transport.open(self._dispatcher.on_frame, self._handshake.link)
        self._probes.listen()
        self.subscribe(ParticipantStatus.subject, _ignore)
        if self._durability is not None:
            self._durability.open(self)
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            if self._durability is not None:
                await self._durability.close()
            self._requests.close()
            await self._handshake.close()
            await self._send_queue.close()
        finally:
            await self._transport.close()

    # Listening

    def subscribe(self, subject: str, receive: Receive, *, repeats: bool = False) -> Callable[[], None]:
        """Call `receive(envelope)` for every envelope on a subject, or on a family ("tool.result.", "" for all).

        `receive` runs inside the reader: it must not block, and may raise only `MalformedFrame`, which is counted. If
        it returns False it had no room, and the message counts as lost. With `repeats` it also receives messages that
        were sent again after they had arrived. The subscription is in place after the next `ready()`. Returns a
        function that ends the subscription.
        """
        remove = self._dispatcher.add(subject, receive, repeats=repeats)
        self._fresh.append(subject)
        self._transport.subscribe(subscription(subject))

        def end() -> None:
            if remove():
                self._transport.unsubscribe(subscription(subject))

        return end

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until every subscription made so far is in place: a probe has returned through the proxy.

        Raises `BusNotReady` when that takes longer than `seconds`, `BusClosed`.
        """
        fresh, self._fresh = self._fresh, []
        await self._handshake.shake(self._transport.address, seconds)
        for subject in fresh:  # a status may have named numbers from before the subscription was in place
            self._dispatcher.forget(subject)

    def dropped(self, gaps: Mapping[str, int]) -> None:
        """Report, by subject, how many of its own recorded messages were given up and may be missing in the journal."""
        self._dispatcher.losses.dropped(self.instance, gaps)

    def overflowed(self, envelope: Envelope) -> None:
        """A consumer had no room for this envelope: count it as missed, as a loss on the way would be."""
        self._dispatcher.losses.overflowed(envelope)

    def take_gaps(self) -> list[BusGap]:
        """The losses noticed since the last call, as messages to publish."""
        return self._dispatcher.losses.take()

    async def unpack(self, envelope: Envelope) -> bytes:
        """The payload of an envelope, with the large fields that travel outside it. Raises `MalformedFrame`."""
        if self.blobs is not None and is_packed(envelope.payload):
            return await self.blobs.unpack_aside(envelope.payload)
        return envelope.payload

    def unpack_now(self, payload: bytes) -> bytes:
        """A payload, with the large fields that travel outside it, read in the caller's thread."""
        return self.blobs.unpack(payload) if self.blobs is not None and is_packed(payload) else payload

    async def decode(self, kind: type[M], envelope: Envelope) -> M:
        """The message in an envelope, large fields fetched. Raises `MalformedFrame`."""
        return kind.decode(await self.unpack(envelope))

    def reject(self, reason: str, data: bytes) -> None:
        """Count and sample a frame that violates the protocol."""
        self._dispatcher.reject(reason, data)

    def consume(
        self,
        name: str,
        subjects: Sequence[str],
        receive: Callable[[Delivered], object],
        replaced: Callable[[], object],
        *,
        max_in_flight: int = 256,
        lane_width: int = 1,
        linger_ms: int = 0,
    ) -> Consumer:
        """Serve a durable consumer, as `Durability.consume` does. Raises `NoJournal` without durability."""
        if self._durability is None:
            raise NoJournal(name)
        limits = {"max_in_flight": max_in_flight, "lane_width": lane_width, "linger_ms": linger_ms}
        return self._durability.consume(name, subjects, receive, replaced, **limits)

    # Talking

    async def publish(
        self,
        message: Message,
        trace: Trace | None = None,
        *,
        in_reply_to: str | None = None,
        envelope_id: str | None = None,
        ttl_ms: int | None = None,
        seconds: float = CONFIRM_SECONDS,
    ) -> Envelope:
        """Hand a message to the proxy; waits up to 5 s for a connection and room.

        With durability a confirmed message is on disk when this returns: it is sent again until then, for `seconds`
        at most, whatever becomes of connections. Without a trace the message begins a new correlation.
        Raises `FrameTooLarge`, `UnsendableMessage`, `BlobNotStored`, `PublishTimeout`, `BusClosed`, and of confirmed
        messages `NotConfirmed` and `JournalFull`.
        """
        envelope, frame = self._envelopes.seal(
            message.routing_key,
            await self._envelopes.payload(message),
            trace,
            in_reply_to=in_reply_to,
            envelope_id=envelope_id,
            ttl_ms=ttl_ms,
        )
        if self._durability is not None and message.delivery is Delivery.CONFIRMED:
            confirmed = self._durability.confirm(envelope, frame, seconds)
            self._send_queue.try_send(frame)
            await confirmed
        else:
            if not self._send_queue.try_send(frame):
                await self._send_queue.send(frame, envelope.subject, PUBLISH_SECONDS)
            self._record(message, envelope, frame)
        return envelope

    def seal(self, message: Message, trace: Trace | None = None) -> Envelope:
        """The envelope that `publish` would send next, for `send`."""
        return self._envelopes.seal(message.routing_key, message.encode(), trace)[0]

    async def send(self, envelope: Envelope) -> None:
        """Send a sealed envelope, again or for the first time; as `publish` otherwise."""
        await self._send_queue.send(envelope.encode(), envelope.subject, PUBLISH_SECONDS)

    def post(self, message: Message, trace: Trace | None = None) -> bool:
        """Publish without waiting. False, and counted, if it could not leave at once; a recorded one is sent later.

        Raises `FrameTooLarge`, `UnsendableMessage`.
        """
        envelope, frame = self._envelopes.seal(message.routing_key, message.encode(), trace)
        sent = self._send_queue.try_send(frame)
        if not self._record(message, envelope, frame) and not sent:
            self.counters["dropped"] += 1
        return sent

    def resend(self, frame: bytes) -> None:
        """Send a frame once more, if that is possible now."""
        self._send_queue.resend(frame)

    async def request(
        self,
        message: Message,
        reply: type[M],
        timeout: float,
        trace: Trace | None = None,
        *,
        envelope_id: str | None = None,
        on_sent: Callable[[], object] = lambda: None,
    ) -> M:
        """Publish a request and wait `timeout` seconds at most for its answer; without an answer the same envelope is
        sent again.

        With `envelope_id` a repeated request, perhaps of another process, counts as the same one. `on_sent` is called
        once, when the request has left for the first time. Raises `RequestTimeout`, also if there was no connection all
        the time; otherwise as `publish`, and `MalformedFrame` for an invalid answer. A later answer is counted and
        dropped.
        """
        subject = message.routing_key
        reply_subject = reply.subject + subject.removeprefix(message.subject) if reply.family_key else reply.subject
        silence = partial(RequestTimeout, subject, timeout, message.whom)
        payload = await self._envelopes.payload(message)
        try:
            if not self._hears_replies.get(reply_subject):
                await self._receive_replies(reply_subject, timeout)
            envelope, frame = self._envelopes.seal(subject, payload, trace, envelope_id=envelope_id)
            opened = self._requests.begin(envelope.id, reply_subject, timeout, silence)
            try:
                if not self._send_queue.try_send(frame):
                    await self._send_queue.send(frame, subject, timeout)
                self._requests.left(opened, frame)
                self._record(message, envelope, frame)
                on_sent()
                return reply.decode(await self.unpack(await opened.answer))
            finally:
                self._requests.end(opened)
        except (BusNotReady, PublishTimeout):
            raise silence() from None

    async def _receive_replies(self, subject: str, seconds: float) -> None:
        if subject not in self._hears_replies:
            self.subscribe(subject, _ignore)
            self._hears_replies[subject] = False
        await self.ready(seconds)
        self._hears_replies[subject] = True

    def _record(self, message: Message, envelope: Envelope, frame: bytes) -> bool:
        """Keep a recorded message until the journal has confirmed it. Returns False on a bus without a journal."""
        if self._durability is None or message.delivery is not Delivery.RECORDED:
            return False
        self._durability.record(envelope, frame)
        return True

    def _reconnected(self) -> None:
        self.counters["reconnects"] += 1
        self._requests.reconnected(self._send_queue.resend_first)
        if self._durability is not None:
            self._durability.reconnected()
        for call in self.on_reconnect:
            call()


def _ignore(envelope: Envelope) -> None:
    """Receive a message that only the bus itself needs."""
