"""A participant's one door to everybody else: publish, subscribe, request, ready."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from local.bus.blobs import BlobStore, is_packed, needs_packing
from local.bus.handshake import Handshake
from local.bus.losses import Losses
from local.bus.outbox import Outbox
from local.bus.rejects import RejectLog
from local.bus.requests import Requests
from local.bus.routes import Receive, Routes, covers
from local.bus.transport import Transport
from local.errors import BusNotReady, MalformedFrame, PublishTimeout, RequestTimeout, UnsendableMessage
from local.protocol.envelope import Envelope, Trace, decode, new_id
from local.protocol.messages import BusGap, BusProbe, Message, ParticipantStatus
from local.protocol.subjects import BUS_PROBE, PARTICIPANT_STATUS, is_subject, subscription

M = TypeVar("M", bound=Message)

READY_SECONDS = 10.0
PUBLISH_SECONDS = 5.0


class Bus:
    """One participant's connection. Use as `async with`; then subscribe, `await ready()`, and talk.

    `counters` (published, waited, dropped, received, repeated, malformed, missed, overflow, resent, late_replies,
    reconnects) only grow. `instance` is fresh for each Bus.
    """

    def __init__(
        self, sender: str, transport: Transport, *, rejects: RejectLog | None = None, blobs: BlobStore | None = None
    ) -> None:
        self.sender = sender
        self.instance = new_id()[:12]
        self.counters: Counter[str] = Counter()
        self.last_seq: dict[str, int] = {}
        self.on_reconnect: list[Callable[[], object]] = []
        self._transport = transport
        self._rejects, self._blobs = rejects, blobs
        self._routes = Routes()
        self._fresh: list[str] = []  # subscribed to since the last ready()
        self._losses = Losses(sender, self.counters)
        self._requests = Requests(self._send_again)
        self._hears_replies: dict[str, bool] = {}  # by subject: subscribed to, and whether the subscription is in place
        self._handshake = Handshake(self._send_probe, self._reconnected)
        self._outbox = Outbox(transport, self._handshake, self.counters)

    async def __aenter__(self) -> Self:
        self._transport.open(self._on_frame, self._handshake.link)
        self.subscribe(BUS_PROBE + self.instance, _ignore)
        self.subscribe(PARTICIPANT_STATUS, _ignore)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close()
        try:
            await self._handshake.close()
            await self._outbox.close()
        finally:
            await self._transport.close()

    # Listening

    def subscribe(self, subject: str, receive: Receive) -> Callable[[], None]:
        """Call `receive(envelope)` for every envelope on a subject, or on a family ("tool.result.", "" for all).

        `receive` runs inside the reader: it must neither block nor raise. False from it says that it had no room, and
        counts as a loss. In place after the next `ready()`.
        Returns the function that ends the subscription.
        """
        remove = self._routes.add(subject, receive)
        self._fresh.append(subject)
        self._forget(subject)
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
            self._forget(subject)

    def overflowed(self, envelope: Envelope) -> None:
        """A consumer had no room for this envelope: count it as missed, as a loss on the way would be."""
        self._losses.overflowed(envelope)

    def take_gaps(self) -> list[BusGap]:
        """The losses noticed since the last call, as messages to publish."""
        return self._losses.take()

    async def unpack(self, envelope: Envelope) -> bytes:
        """The payload of an envelope, with the large fields that travel outside it. Raises `MalformedFrame`."""
        if self._blobs is not None and is_packed(envelope.payload):
            return await self._blobs.unpack_aside(envelope.payload)
        return envelope.payload

    async def decode(self, kind: type[M], envelope: Envelope) -> M:
        """The message in an envelope, large fields fetched. Raises `MalformedFrame`."""
        return kind.decode(await self.unpack(envelope))

    def reject(self, reason: str, data: bytes) -> None:
        """Count and sample something that is not what the protocol says."""
        self.counters["malformed"] += 1
        if self._rejects is not None:
            self._rejects.add(self.sender, reason, data)

    # Talking

    async def publish(
        self,
        message: Message,
        trace: Trace | None = None,
        *,
        in_reply_to: str | None = None,
        envelope_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> Envelope:
        """Hand a message to the proxy; waits up to 5 s for a connection and room.

        Without a trace the message begins a new correlation. Raises `FrameTooLarge`, `UnsendableMessage`,
        `BlobNotStored`, `PublishTimeout`, `BusClosed`.
        """
        payload = message.encode()
        if self._blobs is not None and needs_packing(payload):
            payload = await self._blobs.pack_aside(payload)
        envelope, frame = self._seal(message.routing_key, payload, trace, in_reply_to, envelope_id, ttl_ms)
        if not self._outbox.try_send(frame):
            await self._outbox.send(frame, envelope.subject, PUBLISH_SECONDS)
        return envelope

    async def send(self, envelope: Envelope) -> None:
        """Send a sealed envelope, again or for the first time; as `publish` otherwise."""
        await self._outbox.send(envelope.encode(), envelope.subject, PUBLISH_SECONDS)

    def post(self, message: Message, trace: Trace | None = None) -> bool:
        """Publish an ephemeral message without waiting. False, and counted, if it could not leave at once.

        Raises `FrameTooLarge`, `UnsendableMessage`.
        """
        _, frame = self._seal(message.routing_key, message.encode(), trace)
        sent = self._outbox.try_send(frame)
        if not sent:
            self.counters["dropped"] += 1
        return sent

    async def request(
        self,
        message: Message,
        reply: type[M],
        timeout: float,
        trace: Trace | None = None,
        *,
        on_sent: Callable[[], object] = lambda: None,
    ) -> M:
        """Publish a request and wait `timeout` seconds at most for its answer; on silence the same envelope goes again.

        `on_sent` is called once, when the request has left for the first time.
        Raises `RequestTimeout`, also when there was no connection all the while; otherwise as `publish`, and
        `MalformedFrame` for an answer that is none. An answer that comes later is counted and dropped.
        """
        subject = message.routing_key
        reply_subject = reply.subject + subject.removeprefix(message.subject) if reply.family_key else reply.subject
        payload = message.encode()
        if self._blobs is not None and needs_packing(payload):
            payload = await self._blobs.pack_aside(payload)
        try:
            if not self._hears_replies.get(reply_subject):
                await self._hear_replies(reply_subject, timeout)
            envelope, frame = self._seal(subject, payload, trace)
            answer = self._requests.begin(envelope.id, subject, timeout)
            try:
                if not self._outbox.try_send(frame):
                    await self._outbox.send(frame, subject, timeout)
                self._requests.left(envelope.id, frame)
                on_sent()
                return reply.decode(await self.unpack(await answer))
            finally:
                self._requests.end(envelope.id)
        except (BusNotReady, PublishTimeout):
            raise RequestTimeout(subject, timeout) from None

    async def _hear_replies(self, subject: str, seconds: float) -> None:
        if subject not in self._hears_replies:
            self.subscribe(subject, _ignore)
            self._hears_replies[subject] = False
        await self.ready(seconds)
        self._hears_replies[subject] = True

    def _seal(
        self,
        subject: str,
        payload: bytes,
        trace: Trace | None,
        in_reply_to: str | None = None,
        envelope_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> tuple[Envelope, bytes]:
        seq = self.last_seq.get(subject, 0) + 1
        if seq == 1 and not is_subject(subject):
            raise UnsendableMessage(f"{subject[:80]!a} is no subject: dotted words of a-z, A-Z, 0-9, _ and -")
        envelope_id = envelope_id or new_id()
        correlation_id, cause_id, session_id, user_id = trace or Trace(envelope_id)
        envelope = Envelope(
            subject, envelope_id, self.sender, self.instance, seq, correlation_id, payload,
            cause_id, in_reply_to, session_id, user_id, time.time(), ttl_ms,
        )  # fmt: skip
        frame = envelope.encode()
        self.last_seq[subject] = seq  # only now: what could not be encoded must not look like a loss
        return envelope, frame

    # What the transport calls

    def _on_frame(self, frame: bytes) -> None:
        try:
            envelope = decode(frame)
            if envelope.subject == PARTICIPANT_STATUS:
                self._losses.gaps.beat(
                    envelope.instance, ParticipantStatus.decode(envelope.payload).last_seq, self._is_wanted
                )
        except MalformedFrame as error:
            self.reject(str(error), frame)
            return
        self.counters["received"] += 1
        if envelope.subject.startswith(BUS_PROBE):
            if envelope.instance == self.instance:
                self._handshake.returned(envelope.seq)
            return
        if not self._losses.observe(envelope):
            self.counters["repeated"] += 1
        if envelope.in_reply_to is not None and not self._requests.settle(envelope.in_reply_to, envelope):
            self.counters["late_replies"] += 1
        routes = self._routes.find(envelope.subject)
        if not routes and not self._routes.was_wanted(envelope.subject):
            self.reject(f"subject {envelope.subject} is not known here", frame)
        for receive in routes:
            if receive(envelope) is False:
                self.overflowed(envelope)

    def _is_wanted(self, subject: str) -> bool:
        return bool(self._routes.find(subject))

    def _forget(self, subject: str) -> None:
        """A subscription begins: what went by before is not our loss."""
        self._losses.gaps.forget(lambda known: covers(subject, known))

    def _send_probe(self, number: int) -> None:
        """Probes have numbers of their own: they are no messages that anybody could miss."""
        probe = BusProbe(instance=self.instance, attempt=number)
        envelope_id = new_id()
        envelope = Envelope(
            probe.routing_key, envelope_id, self.sender, self.instance, number, envelope_id, probe.encode()
        )
        self._transport.send(envelope.encode())

    def _send_again(self, frame: bytes) -> None:
        self.counters["resent"] += self._outbox.try_send(frame)

    def _reconnected(self) -> None:
        self.counters["reconnects"] += 1
        for frame in self._requests.under_way():  # what was on its way when the connection broke is lost
            self.counters["resent"] += self._outbox.send_first(frame)
        for call in self.on_reconnect:
            call()


def _ignore(envelope: Envelope) -> None:
    """For what the bus itself wants to hear."""
