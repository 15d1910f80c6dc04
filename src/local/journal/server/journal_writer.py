"""The journal's hands: commits in groups what arrives, then tells publishers and consumers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from local import failpoints
from local.bus.bus import Bus
from local.errors import FrameTooLarge, PublishTimeout, StoreFailed, StoreFull, UnknownConsumer, UnsendableMessage
from local.journal.core.delivery_core import Confirm, Decision, DeliveryCore
from local.journal.core.durable_consumer import Deliver, Died, Fenced, Park, Serving, Settled
from local.journal.server.commit_queue import MAX_BATCH, JournalArrivals, PendingChanges, entry_of
from local.journal.server.journal_deliveries import JournalDeliveries, admit, backlog
from local.journal.store.store import JournalStore
from local.protocol.delivery_classes import delivery_of, kept_subjects
from local.protocol.envelope import Envelope, Trace
from local.protocol.journal_messages import (
    JournalAck,
    JournalAttach,
    JournalConfirmed,
    JournalDetach,
    JournalFenced,
    JournalFloors,
    JournalWorking,
)
from local.protocol.message import Delivery, Message
from local.protocol.messages import BusDead, ErrorInfo
from local.protocol.subjects import QUERY_ACCEPTED, QUERY_RECEIVED

log = logging.getLogger(__name__)

COMPANY_SECONDS = 0.05  # messages for which nobody waits wait so long for others to share a commit with
TICK_SECONDS = 0.1
RETRY_SECONDS = 1.0
RECONNECT_SECONDS = 0.15  # until the others have found the new proxy, too
UNHURRIED = frozenset({QUERY_ACCEPTED})  # confirmed, but the turn that it tells of goes on meanwhile
NEW_WORK = frozenset({QUERY_RECEIVED})  # refused while the disk is full; the rest is what running work still has to say


class JournalWriter:
    """One task commits, so that numbers, commits and what follows from them have one order.

    What has not been committed when the process dies was not confirmed either: its publisher sends it again.
    """

    def __init__(
        self, bus: Bus, store: JournalStore, *, ack_wait: float, max_deliver: int, clock: Callable[[], float]
    ) -> None:
        self._bus, self._store, self._clock = bus, store, clock
        self._ack_wait, self._max_deliver = ack_wait, max_deliver
        self._desk = DeliveryCore(delivery_of)
        self._consumers: dict[str, JournalAttach] = {}
        self._newcomers: dict[str, tuple[JournalAttach, str]] = {}
        self._arrived, self._committing = JournalArrivals(), asyncio.Lock()
        self._pending = PendingChanges()
        self._retry: asyncio.TimerHandle | None = None
        self._deliveries = JournalDeliveries(bus, store, self._obsolete)
        self._news, self._urgent = asyncio.Event(), asyncio.Event()
        self._counters: Counter[str] = Counter()
        self.problem = ""

    def figures(self) -> dict[str, int]:
        """How much was committed, in how many commits, and what each consumer has before it."""
        return {**self._counters, **{f"pending_{name}": count for name, count in self._desk.pending.items()}}

    def subscribe(self) -> None:
        """Hear everything that is to be kept, and what consumers say."""
        for subject in kept_subjects():
            self._bus.subscribe(subject, self._take, repeats=True)
        heard: dict[type[Message], Callable[[Envelope], None]] = {
            JournalAttach: self._attach,
            JournalDetach: self._detach,
            JournalAck: self._acknowledge,
            JournalWorking: self._working,
            JournalFloors: self._floors,
        }
        for kind, hear in heard.items():
            self._bus.subscribe(kind.subject, self._guarded(hear))

    def reconnected(self) -> None:
        """What was on its way to consumers may be lost: give it again soon, when they are back, too."""
        self._desk.hasten(self._clock() + RECONNECT_SECONDS)

    async def run(self) -> None:
        """Commit and tell until cancelled. Raises `StoreFailed` for what only a new start can mend."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick(), name="journal: clock")
            tasks.create_task(self._deliveries.run(), name="journal: deliveries")
            while True:
                await self._something_to_do()
                async with self._committing:
                    await self._commit()
                await self._admit_newcomers()

    async def catch_up(self) -> None:
        """Commit what has arrived so far."""
        async with self._committing:
            for _ in range(0, len(self._arrived), MAX_BATCH):
                await self._commit()

    async def finish(self) -> None:
        """Commit what there is: whoever ended in order before this process must not be taken for dead after it."""
        while self._arrived or self._pending:
            await self._commit()
            if self.problem:
                return

    # What arrives

    def _take(self, envelope: Envelope) -> bool:
        if not self._arrived.add(envelope):
            return False
        self._news.set()
        if delivery_of(envelope.subject) is Delivery.CONFIRMED and envelope.subject not in UNHURRIED:
            self._urgent.set()
        return True

    def _guarded(self, hear: Callable[[Envelope], None]) -> Callable[[Envelope], None]:
        def guarded(envelope: Envelope) -> None:
            with suppress(UnknownConsumer):  # a journal that has just started: it attaches, and is given it again
                hear(envelope)

        return guarded

    def _attach(self, envelope: Envelope) -> None:
        message = JournalAttach.decode(envelope.payload)
        if self._consumers.get(message.consumer) == message:
            self._carry_out(self._desk.attach(message.consumer, envelope.instance, self._clock()))
        else:
            self._newcomers[message.consumer] = (message, envelope.instance)
            self._wake()

    def _detach(self, envelope: Envelope) -> None:
        self._carry_out(self._desk.detach(JournalDetach.decode(envelope.payload).consumer, envelope.instance))

    def _acknowledge(self, envelope: Envelope) -> None:
        message = JournalAck.decode(envelope.payload)
        for number in message.numbers:
            self._carry_out(self._desk.ack(message.consumer, number, self._clock()))
        failpoints.reach("journal.acknowledged")

    def _working(self, envelope: Envelope) -> None:
        message = JournalWorking.decode(envelope.payload)
        for number, attempt in message.attempts.items():
            self._desk.working(message.consumer, number, attempt, envelope.instance, self._clock())

    def _floors(self, envelope: Envelope) -> None:
        floors = JournalFloors.decode(envelope.payload).floors
        self._carry_out([self._desk.begins_after(envelope.instance, floors)])

    # Committing

    def _wake(self) -> None:
        self._news.set()
        self._urgent.set()

    async def _something_to_do(self) -> None:
        await self._news.wait()
        if not self._urgent.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(COMPANY_SECONDS):
                    await self._urgent.wait()
        self._news.clear()
        self._urgent.clear()

    async def _commit(self) -> None:
        batch = self._arrived.take_batch()
        if self._arrived:
            self._wake()
        changes, parked = self._pending.take()
        letters = [await self._dead_letter(park) for park in parked]
        envelopes = [*batch, *letters]
        if not envelopes and not changes:
            return  # and if the disk was full, nothing shows yet that it is not
        failpoints.reach("journal.received")
        try:
            appended = await self._store.commit([entry_of(envelope) for envelope in envelopes], changes)
        except StoreFailed as error:
            self._pending.put_back(changes, parked)
            if not isinstance(error, StoreFull):
                raise
            self._has_no_room(batch, error)
            return
        failpoints.reach("journal.committed")
        self.problem = ""
        self._counters["committed"] += sum(place.is_new for place in appended)
        self._counters["commits"] += 1
        numbered = [(place.number, envelope) for place, envelope in zip(appended, envelopes, strict=True)]
        self._carry_out(self._desk.committed(numbered, self._clock()), dict(numbered))
        for letter in letters:
            with suppress(PublishTimeout):  # nobody hears it live then; it is on record
                await self._bus.send(letter)

    async def _dead_letter(self, park: Park) -> Envelope:
        [found] = await self._store.read(limit=1, after=park.number - 1)
        log.error("message %d is given up for %s: %s", park.number, park.consumer, park.reason)
        dead = BusDead(
            participant=park.consumer,
            envelope_id=found.entry.envelope_id,
            dead_subject=found.entry.subject,
            error=ErrorInfo(kind="gave_up", message=park.reason),
        )
        return self._bus.seal(dead, Trace(found.entry.correlation_id, found.entry.envelope_id, found.entry.session_id))

    def _has_no_room(self, batch: Sequence[Envelope], error: StoreFull) -> None:
        """Refuse new work; whatever else there is comes again."""
        if not self.problem:
            log.error("%s: new queries are refused", error)
        self.problem = str(error)
        info = ErrorInfo(kind=error.kind, message=str(error))
        for envelope in batch:
            if envelope.subject in NEW_WORK:
                self._tell(JournalConfirmed(instance=envelope.instance, refused=(envelope.id,), error=info))
        if self._retry is not None:
            self._retry.cancel()
        self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._wake)

    async def _admit_newcomers(self) -> None:
        """Consumers of which this process has not heard, or that have changed what they want."""
        newcomers, self._newcomers = self._newcomers, {}
        for name, (attach, instance) in newcomers.items():
            if self._consumers.get(name) == attach:  # it has said so again while the earlier ones were admitted
                self._carry_out(self._desk.attach(name, instance, self._clock()))
                continue
            try:
                consumer = await admit(self._store, attach, ack_wait=self._ack_wait, max_deliver=self._max_deliver)
            except StoreFull as error:
                log.error("%s: %s has to wait", error, name)
                continue  # it attaches again each second
            self._desk.register(consumer)
            async for header in backlog(self._store, consumer):
                lane = header.session_id or header.envelope_id
                self._carry_out(consumer.add(header.number, lane, self._clock()))
            self._consumers[name] = attach
            self._carry_out(self._desk.attach(name, instance, self._clock()))

    # Telling

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._carry_out(self._desk.tick(self._clock()))

    def _carry_out(self, decisions: Sequence[Decision], fresh: Mapping[int, Envelope] | None = None) -> None:
        """Do what was decided. `fresh` are envelopes at hand, by number."""
        for decision in decisions:
            match decision:
                case Confirm(instance, ids, recorded):
                    self._tell(JournalConfirmed(instance=instance, ids=tuple(ids), recorded=recorded))
                    failpoints.reach("journal.confirmed")
                case Deliver(number=number):
                    self._deliveries.give(decision, None if fresh is None else fresh.get(number))
                case Fenced(consumer, instance):
                    self._tell(JournalFenced(consumer=consumer, instance=instance))
                case Park():
                    self._pending.note(decision)
                    self._wake()
                case Settled() | Died() | Serving():
                    self._pending.note(decision)
                    self._news.set()

    def _tell(self, message: Message) -> None:
        try:
            self._bus.post(message)
        except (FrameTooLarge, UnsendableMessage) as error:  # a stranger's instance or id: nobody can be told of it
            self._bus.reject(str(error), b"")

    def _obsolete(self, delivery: Deliver) -> None:
        self._carry_out(self._desk.ack(delivery.consumer, delivery.number, self._clock()))
