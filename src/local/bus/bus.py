"""A participant's one door to everybody else: publish, subscribe, request, ready."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from local.bus.blobs import BlobStore, is_packed, needs_packing
from local.bus.gaps import GapTracker
from local.bus.handshake import Handshake
from local.bus.outbox import Outbox
from local.bus.rejects import RejectLog
from local.bus.transport import Transport
from local.errors import BusClosed, MalformedFrame, RequestTimeout
from local.protocol.envelope import Envelope, Trace, decode, new_id
from local.protocol.messages import BusGap, BusProbe, Message, ParticipantStatus
from local.protocol.subjects import BUS_PROBE, PARTICIPANT_STATUS, is_family, subscription

M = TypeVar("M", bound=Message)
Receive = Callable[[Envelope], object]

READY_SECONDS = 10.0
FIRST_RESEND_SECONDS = 0.5
LAST_RESEND_SECONDS = 5.0
MAX_ROUTES = 4096
MAX_LATE = 1024


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
        self._subscriptions: list[tuple[str, Receive]] = []
        self._routes: dict[str, tuple[Receive, ...]] = {}
        self._gaps = GapTracker(self._note_gap)
        self._senders: dict[str, str] = {}
        self._unreported: Counter[tuple[str, str]] = Counter()
        self._pending: dict[str, tuple[asyncio.Future[Envelope], Envelope]] = {}
        self._late: deque[str] = deque(maxlen=MAX_LATE)
        self._reply_subjects: set[str] = set()
        self._handshake = Handshake(self._send_probe, self._reconnected)
        self._outbox = Outbox(transport, self._handshake, self.counters)

    async def __aenter__(self) -> Self:
        self._transport.open(self._on_frame, self._handshake.link)
        self.subscribe(BUS_PROBE + self.instance, lambda envelope: None)
        self.subscribe(PARTICIPANT_STATUS, lambda envelope: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handshake.close()
        self._outbox.close()
        for future, _ in self._pending.values():
            if not future.done():
                future.set_exception(BusClosed("the bus was closed"))
        await self._transport.close()

    # Listening

    def subscribe(self, subject: str, receive: Receive) -> Callable[[], None]:
        """Call `receive(envelope)` for every envelope on a subject, or on a family ("tool.result.", "" for all).

        `receive` runs inside the reader: it must neither block nor raise. In place after the next `ready()`.
        Returns the function that ends the subscription.
        """
        entry = (subject, receive)
        self._subscriptions.append(entry)
        self._routes.clear()
        self._gaps.forget(lambda known: _covers(subject, known))
        self._transport.subscribe(subscription(subject))

        def end() -> None:
            if entry in self._subscriptions:
                self._subscriptions.remove(entry)
                self._routes.clear()
                self._transport.unsubscribe(subscription(subject))

        return end

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until every subscription made so far is in place: a probe has gone through the proxy and come back.

        Raises `BusNotReady` when that takes longer than `seconds`.
        """
        await self._handshake.shake(self._transport.address, seconds)

    def overflowed(self, envelope: Envelope) -> None:
        """A consumer had no room for this envelope: count it as missed, as a loss on the way would be."""
        self.counters["overflow"] += 1
        self._note_gap(envelope.instance, envelope.subject, 1)

    def take_gaps(self) -> list[BusGap]:
        """The losses noticed since the last call, as messages to publish."""
        gaps = [
            BusGap(
                observer=self.sender,
                sender=self._senders.get(instance, "unknown"),
                instance=instance,
                missed_subject=subject,
                missed=missed,
            )
            for (instance, subject), missed in self._unreported.items()
        ]
        self._unreported.clear()
        return gaps

    async def decode(self, kind: type[M], envelope: Envelope) -> M:
        """The message in an envelope, large fields fetched. Raises `MalformedFrame`."""
        payload = envelope.payload
        if self._blobs is not None and is_packed(payload):
            payload = await asyncio.to_thread(self._blobs.unpack, payload)
        return kind.decode(payload)

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

        Without a trace the message begins a new correlation. Raises `FrameTooLarge`, `PublishTimeout`, `BusClosed`.
        """
        payload = await self._pack(message)
        envelope = self._seal(message.routing_key, payload, trace, in_reply_to, envelope_id, ttl_ms)
        await self.send(envelope)
        return envelope

    async def send(self, envelope: Envelope) -> None:
        """Send a sealed envelope, again or for the first time; as `publish` otherwise."""
        await self._outbox.send(envelope.encode(), envelope.subject)

    def post(self, message: Message, trace: Trace | None = None) -> bool:
        """Publish an ephemeral message without waiting. False, and counted, if it could not leave at once."""
        envelope = self._seal(message.routing_key, message.encode(), trace)
        sent = self._outbox.try_send(envelope.encode())
        if not sent:
            self.counters["dropped"] += 1
        return sent

    async def request(self, message: Message, reply: type[M], timeout: float, trace: Trace | None = None) -> M:
        """Publish a request and wait `timeout` seconds at most for its answer; on silence the same envelope goes again.

        Raises `RequestTimeout`; an answer that comes later is counted and dropped.
        """
        subject = message.routing_key
        reply_subject = reply.subject + subject.removeprefix(message.subject) if reply.family_key else reply.subject
        if reply_subject not in self._reply_subjects:
            self.subscribe(reply_subject, self._unclaimed)
            await self.ready()
            self._reply_subjects.add(reply_subject)
        envelope = self._seal(subject, await self._pack(message), trace)
        future: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._pending[envelope.id] = (future, envelope)
        try:
            async with asyncio.timeout(timeout):
                return await self.decode(reply, await self._await_reply(envelope, future))
        except TimeoutError:
            self._late.append(envelope.id)
            raise RequestTimeout(subject, timeout) from None
        finally:
            del self._pending[envelope.id]

    async def _await_reply(self, envelope: Envelope, future: asyncio.Future[Envelope]) -> Envelope:
        await self.send(envelope)
        pause = FIRST_RESEND_SECONDS
        while True:
            done, _ = await asyncio.wait({future}, timeout=pause)
            if done:
                return future.result()
            self.counters["resent"] += 1
            await self.send(envelope)
            pause = min(pause * 2, LAST_RESEND_SECONDS)

    async def _pack(self, message: Message) -> bytes:
        payload = message.encode()
        if self._blobs is not None and needs_packing(payload):
            return await asyncio.to_thread(self._blobs.pack, payload)
        return payload

    def _seal(
        self,
        subject: str,
        payload: bytes,
        trace: Trace | None,
        in_reply_to: str | None = None,
        envelope_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> Envelope:
        seq = self.last_seq.get(subject, 0) + 1
        self.last_seq[subject] = seq
        envelope_id = envelope_id or new_id()
        correlation_id, cause_id, session_id, user_id = trace or Trace(envelope_id)
        return Envelope(
            subject, envelope_id, self.sender, self.instance, seq, correlation_id, payload,
            cause_id, in_reply_to, session_id, user_id, time.time(), ttl_ms,
        )  # fmt: skip

    # What the transport calls

    def _on_frame(self, frame: bytes) -> None:
        try:
            envelope = decode(frame)
            if envelope.subject == PARTICIPANT_STATUS:
                self._gaps.beat(envelope.instance, ParticipantStatus.decode(envelope.payload).last_seq, self._is_wanted)
        except MalformedFrame as error:
            self.reject(str(error), frame)
            return
        self.counters["received"] += 1
        if envelope.subject.startswith(BUS_PROBE):
            if envelope.instance == self.instance:
                self._handshake.returned(envelope.seq)
            return
        if not self._gaps.observe(envelope.instance, envelope.subject, envelope.seq):
            self.counters["repeated"] += 1
        if len(self._senders) > MAX_ROUTES:
            self._senders.clear()
        self._senders[envelope.instance] = envelope.sender
        if envelope.in_reply_to in self._pending:
            future, _ = self._pending[envelope.in_reply_to]
            if not future.done():
                future.set_result(envelope)
            return
        routes = self._routes.get(envelope.subject) or self._find_routes(envelope.subject)
        if not routes:
            self.reject(f"subject {envelope.subject} is not known here", frame)
        for receive in routes:
            receive(envelope)

    def _find_routes(self, subject: str) -> tuple[Receive, ...]:
        if len(self._routes) > MAX_ROUTES:
            self._routes.clear()
        routes = tuple(receive for known, receive in self._subscriptions if _covers(known, subject))
        self._routes[subject] = routes
        return routes

    def _is_wanted(self, subject: str) -> bool:
        return bool(self._routes.get(subject) or self._find_routes(subject))

    def _note_gap(self, instance: str, subject: str, missed: int) -> None:
        self.counters["missed"] += missed
        self._unreported[instance, subject] += missed

    def _unclaimed(self, envelope: Envelope) -> None:
        """A reply that no request waits for: too late if the request was ours, somebody else's otherwise."""
        if envelope.in_reply_to in self._late:
            self.counters["late_replies"] += 1

    def _send_probe(self, attempt: int) -> None:
        probe = BusProbe(instance=self.instance, attempt=attempt)
        self._transport.send(self._seal(probe.routing_key, probe.encode(), None).encode())

    def _reconnected(self) -> None:
        self.counters["reconnects"] += 1
        for _, request in self._pending.values():  # what was on its way when the connection broke is lost
            self.counters["resent"] += self._outbox.try_send(request.encode())
        for call in self.on_reconnect:
            call()


def _covers(known: str, subject: str) -> bool:
    return subject.startswith(known) if is_family(known) else subject == known
