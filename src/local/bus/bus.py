"""A participant's one door to everybody else: publish, subscribe, request, ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self, TypeVar

from local.bus.blobs import BlobStore
from local.bus.dispatcher import Dispatcher, Receive
from local.bus.durability import Consumer, Delivered, Durability
from local.bus.envelope_factory import EnvelopeFactory
from local.bus.probes import Probes
from local.bus.reject_log import RejectLog
from local.bus.requests import Requests
from local.bus.send_queue import Handshake, SendQueue
from local.bus.sender_guard import SenderGuard
from local.bus.transport import Transport
from local.errors import BusNotReady, NoJournal, PublishTimeout, RequestTimeout
from local.protocol.bus_messages import BusGap
from local.protocol.envelope import Envelope, Trace, is_packed, new_id
from local.protocol.message import Delivery
from local.protocol.messages import Message, ParticipantStatus
from local.protocol.subjects import subscription

M = TypeVar("M", bound=Message)

READY_SECONDS = 10.0
PUBLISH_SECONDS = 5.0
CONFIRM_SECONDS = 30.0


class Bus:
    """One participant's connection. Use as `async with`; then subscribe, `await ready()`, and talk.

    `counters` (published, waited, dropped, received, repeated, malformed, missed, overflow, resent, late_replies,
    reconnects, refused) only grow. `instance` is fresh for each Bus. With a `durability`, of this bus alone, confirmed
    and recorded messages are sent until they are on record. Without, they are sent once. With a `guard` nothing arrives
    that its sender has not declared, and nothing leaves that this one has not.
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
        """How many messages it has sent, by subject."""
        return self._envelopes.last_seq

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

        `receive` runs inside the reader: it must not block, and raise nothing but `MalformedFrame`, which is counted.
        False from it says that it had no room, and counts as a loss. With `repeats` it gets also what was sent again
        and has arrived before.
        In place after the next `ready()`. Returns the function that ends the subscription.
        """
        remove = self._dispatcher.add(subject, receive, repeats=repeats)
        self._fresh.append(subject)
        self._transport.subscribe(subscription(subject))

        def end() -> None:
            if remove():
                self._transport.unsubscribe(subscription(subject))

        return end

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until every subscription made so far is in place: a probe has gone through the proxy and come back.

        Raises `BusNotReady` when that takes longer than `seconds`, `BusClosed`.
        """
        fresh, self._fresh = self._fresh, []
        await self._handshake.shake(self._transport.address, seconds)
        for subject in fresh:  # a status beat may have named numbers that went by before the subscription was in place
            self._dispatcher.forget(subject)

    def dropped(self, gaps: Mapping[str, int]) -> None:
        """So many recorded messages of its own, by subject, were given up and may be on no record."""
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
        """Count and sample something that is not what the protocol says."""
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
        """Serve a durable consumer, as `Durability.consume` has it. Raises `NoJournal` where there is none."""
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
        """Publish a request and wait `timeout` seconds at most for its answer; on silence the same envelope goes again.

        With `envelope_id` it is known for the same request when it is made again, perhaps by another process.
        `on_sent` is called once, when the request has left for the first time.
        Raises `RequestTimeout`, also when there was no connection all the while; otherwise as `publish`, and
        `MalformedFrame` for an answer that is none. An answer that comes later is counted and dropped.
        """
        subject = message.routing_key
        reply_subject = reply.subject + subject.removeprefix(message.subject) if reply.family_key else reply.subject
        silence = partial(RequestTimeout, subject, timeout, message.whom)
        payload = await self._envelopes.payload(message)
        try:
            if not self._hears_replies.get(reply_subject):
                await self._hear_replies(reply_subject, timeout)
            envelope, frame = self._envelopes.seal(subject, payload, trace, envelope_id=envelope_id)
            opened = self._requests.begin(envelope.id, timeout, silence)
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

    async def _hear_replies(self, subject: str, seconds: float) -> None:
        if subject not in self._hears_replies:
            self.subscribe(subject, _ignore)
            self._hears_replies[subject] = False
        await self.ready(seconds)
        self._hears_replies[subject] = True

    def _record(self, message: Message, envelope: Envelope, frame: bytes) -> bool:
        """Keep a recorded message until the journal has it; False if that is nobody's business."""
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
    """For what the bus itself wants to hear."""
