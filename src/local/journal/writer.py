"""The task of the journal that commits incoming messages in groups, then informs publishers and consumers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from local.bus.bus import Bus
from local.bus.envelope import FIELD_LIMIT, Envelope, Trace
from local.bus.message import QUERY_RECEIVED, ErrorInfo, Message, delivery_of, is_hurried, kept_subjects
from local.bus.messages import BusDead
from local.core import failpoints
from local.core.errors import (
    BlobNotStored,
    FrameTooLarge,
    LocalError,
    PublishTimeout,
    StoreFailed,
    StoreGone,
    StoreInDoubt,
    StoreLocked,
    StoreUnwritable,
    UnknownConsumer,
    UnsendableMessage,
)
from local.journal.delivery import (
    CommitQueue,
    Confirm,
    ConsumerChanges,
    ConsumerState,
    DeadLetter,
    Decision,
    Deliver,
    DeliveryCore,
    DeliveryFailure,
    DeliveryFailures,
    DeliveryLimits,
    DurableConsumer,
    Fenced,
    Serving,
    Settled,
)
from local.journal.messages import (
    ConsumerClaim,
    ConsumerMessage,
    JournalAck,
    JournalAttach,
    JournalConfirmed,
    JournalDeliver,
    JournalDetach,
    JournalFailed,
    JournalFenced,
    JournalFlush,
    JournalFlushed,
    JournalRedeliver,
    JournalWorking,
)
from local.journal.schema import Entry, Header
from local.journal.store import JournalStore

# Dead letters: they are reported, and delivered again on request.

log = logging.getLogger(__name__)

GivenAgain = dict[str, tuple[int, ...]]  # numbers by consumer


class DeadLetters:
    """The dead letters of one journal: their reports, and their redelivery on request.

    `give(consumer, number, deaths)` delivers a recorded dead letter again; `wake` makes `redeliver_requested` run
    soon, for the requests in `asked`.
    """

    def __init__(
        self,
        bus: Bus,
        store: JournalStore,
        give: Callable[[str, int, DeliveryFailures], Awaitable[None]],
        wake: Callable[[], object],
    ) -> None:
        self._bus, self._store, self._give, self._wake = bus, store, give, wake
        self.asked: list[tuple[JournalRedeliver, asyncio.Future[GivenAgain]]] = []

    async def dead_notice(self, dead: DeadLetter) -> Envelope:
        """Return the `bus.dead` that reports a message which a consumer does not receive any more."""
        [found] = await self._store.read(limit=1, after=dead.number - 1)
        log.error("message %d is given up for %s: %s", dead.number, dead.consumer, dead.reason)
        message = BusDead(
            participant=dead.consumer,
            envelope_id=found.entry.envelope_id,
            dead_subject=found.entry.subject,
            error=ErrorInfo(kind="gave_up", message=dead.reason),
        )
        trace = Trace(found.entry.correlation_id, found.entry.envelope_id, found.entry.session_id)
        return self._bus.seal(message, trace)

    async def redeliver(self, request: JournalRedeliver) -> GivenAgain:
        """Schedule dead letters for redelivery; returns which, after that is stored. It runs between two commits, so
        that all earlier work is stored. Raises `LocalError`: no such consumer, a full disk.
        """
        answer: asyncio.Future[GivenAgain] = asyncio.get_running_loop().create_future()
        self.asked.append((request, answer))
        self._wake()
        return await answer

    async def redeliver_requested(self) -> None:
        """Execute the requests one after the other."""
        asked, self.asked = self.asked, []
        for request, answer in asked:
            try:
                given = await self._redeliver_now(request)
            except LocalError as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(given)

    async def _redeliver_now(self, request: JournalRedeliver) -> GivenAgain:
        names = await self._store.consumer_names() if request.consumer is None else [request.consumer]
        states = {name: await self._store.consumer(name) for name in names}
        dead = {name: _chosen(state.dead_letters, request) for name, state in states.items()}
        changes = {name: _again(states[name], numbers) for name, numbers in dead.items() if numbers}
        if changes:
            await self._store.commit([], changes)
        for name, change in changes.items():
            log.info("redelivered to %s: %s", name, ", ".join(map(str, sorted(change.again))))
            for number in sorted(change.again):
                await self._give(name, number, change.deaths[number])
        both = {name: _chosen({*dead[name], *state.again}, request) for name, state in states.items()}
        return {name: numbers for name, numbers in both.items() if numbers}


def _chosen(numbers: Iterable[int], request: JournalRedeliver) -> tuple[int, ...]:
    return tuple(sorted(set(numbers) & set(request.numbers) if request.numbers else numbers))


def _again(state: ConsumerState, numbers: Iterable[int]) -> ConsumerChanges:
    """Return a former dead letter's count of deaths. One that has killed processes runs alone, and may fail as often as
    the first time.
    """
    deaths = {number: DeliveryFailures(state.deaths.get(number, DeliveryFailures()).total, 0) for number in numbers}
    return ConsumerChanges(again=set(numbers), deaths=deaths)


# The admission of durable consumers, and the deliveries to each.

PAGE = 2000
NOT_GIVEN = (BlobNotStored, FrameTooLarge, PublishTimeout, StoreLocked, StoreUnwritable)


def consumers_of(message: ConsumerMessage) -> Collection[str]:
    """Return the durable consumers named in a message."""
    if isinstance(message, JournalAttach):
        return [claim.name for claim in message.consumers]
    return message.attempts if isinstance(message, JournalWorking) else [message.consumer]


class JournalAdmission:
    """The admission of durable consumers. A known one is attached immediately; a new one, or one with changed
    subjects, is first created from what the store knows, and gets all messages.
    """

    def __init__(
        self,
        core: DeliveryCore,
        store: JournalStore,
        carry_out: Callable[[Sequence[Decision]], None],
        clock: Callable[[], float],
        limits: DeliveryLimits,
    ) -> None:
        self._core, self._store, self._carry_out, self._clock = core, store, carry_out, clock
        self._limits = limits
        self._admitted: dict[str, ConsumerClaim] = {}
        self._newcomers: dict[str, tuple[ConsumerClaim, str]] = {}

    def attach(self, message: JournalAttach, instance: str) -> bool:
        """A process serves consumers. True if some of them have to be admitted first."""
        for claim in message.consumers:
            if self._admitted.get(claim.name) == claim:
                self._carry_out(self._core.attach(claim.name, instance, self._clock()))
            else:
                self._newcomers[claim.name] = (claim, instance)
        return bool(self._newcomers)

    def detach(self, message: JournalDetach, instance: str) -> None:
        """A process that ends serves a consumer no longer."""
        self._carry_out(self._core.detach(message.consumer, instance))

    async def admit_newcomers(self) -> None:
        """Admit those that wait for it. Raises `StoreFailed`."""
        newcomers, self._newcomers = self._newcomers, {}
        for name, (claim, instance) in newcomers.items():
            try:
                if self._admitted.get(name) != claim:  # otherwise it was claimed again while earlier ones were admitted
                    await self._admit(claim)
            except StoreUnwritable as error:
                log.error("%s: %s has to wait", error, name)
                continue  # it attaches again
            self._carry_out(self._core.attach(name, instance, self._clock()))

    async def _admit(self, claim: ConsumerClaim) -> None:
        state = await self._store.register(claim.name, claim.subjects, floor=0)
        consumer = DurableConsumer(
            claim.name,
            claim.subjects,
            **asdict(self._limits),
            max_in_flight=claim.max_in_flight,
            lane_width=claim.lane_width,
            linger=claim.linger_ms / 1000,
            state=state,
        )
        self._core.register(consumer)
        for number in sorted(state.again):
            await self.redeliver(claim.name, number, state.deaths.get(number, DeliveryFailures()))
        async for header in self._backlog(state):
            self._carry_out(consumer.add(header.number, header.lane, self._clock()))
        self._admitted[claim.name] = claim

    async def redeliver(self, name: str, number: int, deaths: DeliveryFailures) -> None:
        """A dead letter is to be given again, and that is on record; to a consumer that is not admitted, it is later.

        Raises `StoreFailed`.
        """
        [header] = await self._store.recovery((), number - 1, 1)
        with suppress(UnknownConsumer):
            self._carry_out(self._core.redeliver(name, number, header.lane, deaths, self._clock()))

    async def _backlog(self, state: ConsumerState) -> AsyncIterator[Header]:
        """Return the messages that a consumer may still need, in order."""
        after = state.floor
        while headers := await self._store.recovery(state.subjects, after, PAGE):
            for header in headers:
                yield header
            after = headers[-1].number


class JournalDeliveries:
    """The deliveries of one journal: sent immediately if the frame is in memory, else read from the disk, in the order
    of `deliver`. A message that was deleted in the meantime is `obsolete` and is not delivered.

    A message waits for the disk only once, however often it is to be delivered, and only as long as it is needed;
    otherwise the redeliveries of a slow system would make it slower.
    """

    def __init__(self, bus: Bus, store: JournalStore, obsolete: Callable[[Deliver], None]) -> None:
        self._bus, self._store, self._obsolete = bus, store, obsolete
        self._from_disk: OrderedDict[tuple[str, int], Deliver] = OrderedDict()  # by consumer and number
        self._news = asyncio.Event()
        self._is_reading = False
        self._lingering: list[JournalDeliver] = []
        self._hurried: list[JournalFlushed] = []  # their consumers have been sent everything before
        self._reported_when_read: list[JournalFlushed] = []  # it is on record

    def deliver(self, delivery: Deliver, frame: bytes | None) -> None:
        """Send a message; `frame` is None if it is not in memory."""
        if failpoints.is_lossy() and delivery.attempt > 1:
            return
        if frame is None or self._from_disk or self._is_reading or len(frame) > FIELD_LIMIT // 2:
            self.flush()
            self._from_disk[delivery.consumer, delivery.number] = delivery
            self._news.set()
        elif delivery.linger:
            if not self._lingering:
                asyncio.get_running_loop().call_later(delivery.linger, self.flush)
            self._lingering.append(_message(delivery, frame))
        else:
            self._bus.post(_message(delivery, frame))

    def settled(self, consumer: str, number: int) -> None:
        """Drop the waiting deliveries of a settled message."""
        self._from_disk.pop((consumer, number), None)

    def flush(self) -> None:
        """Send the held deliveries."""
        lingering, self._lingering = self._lingering, []
        for message in lingering:
            self._bus.post(message)

    def hurry(self, hurry: JournalFlush, instance: str) -> bool:
        """Hurry, because a requester waits for a consumer: its process is notified by `after_commit`."""
        self._hurried.append(JournalFlushed(consumer=hurry.consumer, instance=instance, mark=hurry.mark))
        return True

    def after_commit(self) -> None:
        """Send the delayed deliveries after a commit, and notify the processes that asked for a flush when all were
        read.
        """
        if self._hurried:
            self.flush()
            self._reported_when_read += self._hurried
            self._hurried.clear()
            self._news.set()

    async def run(self) -> None:
        """Send redeliveries, delayed deliveries and messages too large for one frame, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._from_disk:
                _, delivery = self._from_disk.popitem(last=False)
                self._is_reading = True
                try:
                    await self._deliver_from_disk(delivery)
                except NOT_GIVEN as error:  # its consumer is silent, and gets it again
                    log.warning(
                        "message %d could not be delivered to %s: %s", delivery.number, delivery.consumer, error
                    )
                self._is_reading = False
            told, self._reported_when_read = self._reported_when_read, []
            for given in told:
                self._bus.post(given)

    async def _deliver_from_disk(self, delivery: Deliver) -> None:
        found = await self._store.read(limit=1, after=delivery.number - 1)
        if found and found[0].number == delivery.number and not found[0].redacted:
            await self._bus.publish(_message(delivery, found[0].entry.frame))
        else:
            self._obsolete(delivery)


def _message(delivery: Deliver, frame: bytes) -> JournalDeliver:
    return JournalDeliver(
        consumer=delivery.consumer,
        instance=delivery.instance,
        number=delivery.number,
        attempt=delivery.attempt,
        after=delivery.after,
        frame=frame.decode(),
    )


GROUP_COMMIT_SECONDS = 0.05  # messages for which no user waits are held so long to share a commit with others
CONFIRM_SECONDS = 0.05  # how long confirmations are held, to join those of several commits, if no user waits
TICK_SECONDS, LONGEST_TICK_SECONDS = 0.1, 1.0
RETRY_SECONDS = 1.0
RECONNECT_SECONDS = 0.15  # until the others have found the new proxy, too
NEW_WORK = frozenset({QUERY_RECEIVED})  # refused while nothing can be written; the rest is running work's


class JournalWriter:
    """The single task that commits, so that numbers, commits and their consequences have one order.

    A message that was not committed when the process died was not confirmed either: its publisher sends it again.
    """

    def __init__(self, bus: Bus, store: JournalStore, limits: DeliveryLimits) -> None:
        self._bus, self._store = bus, store
        self._clock = time.monotonic
        self._core, self._queue = DeliveryCore(delivery_of), CommitQueue(is_hurried)
        self._admission = JournalAdmission(self._core, store, self._carry_out, self._clock, limits)
        self.dead_letters = DeadLetters(bus, store, self._admission.redeliver, self._try_again)
        self._committing = asyncio.Lock()
        self._deliveries = JournalDeliveries(bus, store, self._obsolete)
        self._news, self._urgent = asyncio.Event(), asyncio.Event()
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._counters: Counter[str] = Counter()
        self._trouble: StoreUnwritable | None = None
        self._in_doubt: list[Envelope] = []  # they may be stored: the next commit says under which number

    @property
    def problem(self) -> str:
        """Why nothing can be written; empty while it can."""
        return "" if self._trouble is None else str(self._trouble)

    def metrics(self) -> dict[str, int]:
        """Return the committed messages, the commits, and the backlog of each consumer."""
        return {**self._counters, **{f"pending_{name}": count for name, count in self._core.pending.items()}}

    def subscribe(self) -> None:
        """Subscribe to everything that is recorded, and to the messages of consumers."""
        for subject in kept_subjects():
            self._bus.subscribe(subject, self._take, repeats=True)
        # True if one of these is waiting: it does not wait for others to share its commit
        heard: dict[type[ConsumerMessage], Callable[[Any, str], bool | None]] = {
            JournalAttach: self._admission.attach,
            JournalDetach: self._admission.detach,
            JournalAck: self._acknowledge,
            JournalFlush: self._deliveries.hurry,
            JournalWorking: self._working,
            JournalFailed: self._failed,
        }
        for kind, hear in heard.items():
            self._bus.subscribe(kind.subject, partial(self._receive, kind, hear))

    def reconnected(self) -> None:
        """Deliver again soon the messages in flight to consumers, because they may be lost."""
        self._core.hasten(self._clock() + RECONNECT_SECONDS)
        self._in(RECONNECT_SECONDS, self._tick)

    async def run(self) -> None:
        """Commit and confirm until cancelled. Raises `StoreFailed` for failures that need a restart."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._deliveries.run(), name="journal: deliveries")
                while True:
                    await self._something_to_do()
                    async with self._committing:
                        await self._commit()
                    await self._admission.admit_newcomers()
                    if not self._queue:
                        self._deliveries.after_commit()
                    if self.dead_letters.asked:
                        await self.dead_letters.redeliver_requested()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def catch_up(self) -> None:
        """Commit all messages that have arrived so far, and deliver the waiting ones."""
        async with self._committing:
            left = self._queue.waiting
            while left > 0 and self._queue:
                left -= await self._commit()
        self._deliveries.flush()

    async def finish(self) -> None:
        """Commit the remaining messages, so that processes which ended in order do not count as dead later."""
        while self._queue and not self.problem:
            await self._commit()
        self._confirm_recorded()

    # Incoming messages

    def _take(self, envelope: Envelope) -> bool:
        if not self._queue.add(envelope):
            return False
        self._wake()
        return True

    def _receive(
        self, kind: type[ConsumerMessage], take: Callable[[Any, str], bool | None], envelope: Envelope
    ) -> None:
        message, guard = kind.decode(envelope.payload), self._bus.guard
        sender, instance, names = envelope.sender, envelope.instance, consumers_of(message)
        if guard is not None and not all(guard.may_serve(sender, instance, name) for name in names):
            self._bus.refuse(f"{sender} has not declared that it serves {', '.join(names)}", envelope.payload)
            return
        with suppress(UnknownConsumer):  # a journal that has just started: it attaches, and is given it again
            if take(message, instance):
                self._wake(is_urgent=True)

    def _acknowledge(self, message: JournalAck, instance: str) -> None:
        for number in message.numbers:
            self._carry_out(self._core.ack(message.consumer, number, self._clock()))
        failpoints.reach("journal.acknowledged")

    def _working(self, message: JournalWorking, instance: str) -> None:
        for consumer, attempts in message.attempts.items():
            for number, attempt in attempts.items():
                with suppress(UnknownConsumer):
                    self._carry_out(self._core.working(consumer, number, attempt, instance, self._clock()))

    def _failed(self, said: JournalFailed, instance: str) -> None:
        now = self._clock()
        self._carry_out(self._core.failed(said.consumer, said.number, said.attempt, instance, said.reason, now))
        self._wait_for_silence()

    # Committing

    def _wake(self, *, is_urgent: bool = False) -> None:
        self._news.set()
        if is_urgent or self._queue.is_urgent:
            self._urgent.set()

    async def _something_to_do(self) -> None:
        await self._news.wait()
        if not self._urgent.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(GROUP_COMMIT_SECONDS):
                    await self._urgent.wait()
        self._news.clear()
        self._urgent.clear()

    async def _commit(self) -> int:
        """Commit the next batch; returns the number of messages in it, also if it could not be written."""
        batch = self._queue.take()
        if self._queue:
            self._wake()
        if not batch and not self._in_doubt and not isinstance(self._trouble, StoreGone):
            return 0  # and if nothing could be written, nothing shows yet that it can
        failpoints.reach("journal.received")
        try:
            letters = [await self.dead_letters.dead_notice(dead) for dead in batch.dead_letters]
            envelopes = [*self._in_doubt, *batch.envelopes, *letters]
            entries = [_entry_of(envelope) for envelope in envelopes]
            appended = await self._store.commit(entries, batch.changes)
        except StoreInDoubt as error:
            self._in_doubt = envelopes
            self._cannot_write([], error)
            return len(batch.envelopes)
        except StoreFailed as error:
            self._queue.put_back_changes(batch)
            if not isinstance(error, StoreUnwritable):
                raise
            self._cannot_write(batch.envelopes, error)
            return len(batch.envelopes)
        failpoints.reach("journal.committed")
        self._trouble = None
        self._in_doubt = []
        self._counters["committed"] += sum(place.is_new for place in appended)
        self._counters["commits"] += 1
        numbers = [place.number for place in appended]
        fresh = {number: entry.frame for number, entry in zip(numbers, entries, strict=True)}
        self._carry_out(self._core.committed(zip(numbers, envelopes, strict=True), self._clock()), fresh)
        if self._core.has_unconfirmed:
            self._in(CONFIRM_SECONDS, self._confirm_recorded)
        for letter in letters:
            with suppress(PublishTimeout):  # then it is not received live, but it is recorded
                await self._bus.send(letter)
        return len(batch.envelopes)

    def _cannot_write(self, not_stored: Sequence[Envelope], error: StoreUnwritable) -> None:
        """Refuse new work; whatever else there is comes again."""
        if self._trouble is None:
            log.error("%s: new queries are refused", error)
        self._trouble = error
        info = ErrorInfo.of(error)
        for envelope in not_stored:
            if envelope.subject in NEW_WORK:
                self._publish(JournalConfirmed(instance=envelope.instance, refused=(envelope.id,), error=info))
        self._in(RETRY_SECONDS, self._try_again)

    # Telling

    def _in(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something in a while, unless that is planned already, for about then."""
        planned = self._timers.get(action)
        if planned is None or planned.when() > self._clock() + seconds:
            if planned is not None:
                planned.cancel()
            self._timers[action] = asyncio.get_running_loop().call_later(seconds, self._do, action)

    def _do(self, action: Callable[[], None]) -> None:
        del self._timers[action]
        action()

    def _tick(self) -> None:
        self._carry_out(self._core.tick(self._clock()))
        self._wait_for_silence()

    def _wait_for_silence(self) -> None:
        if self._tick not in self._timers and (due := self._core.next_due) is not None:
            self._in(min(LONGEST_TICK_SECONDS, max(TICK_SECONDS, due - self._clock())), self._tick)

    def _try_again(self) -> None:
        self._wake(is_urgent=True)

    def _confirm_recorded(self) -> None:
        self._carry_out(self._core.confirm_recorded())

    def _carry_out(self, decisions: Sequence[Decision], fresh: Mapping[int, bytes] | None = None) -> None:
        """Execute the decisions. `fresh` are the frames in memory, by number."""
        for decision in decisions:
            match decision:
                case Confirm(instance, ids):
                    self._publish(JournalConfirmed(instance=instance, ids=tuple(ids)))
                    failpoints.reach("journal.confirmed")
                case Deliver(number=number):
                    self._deliveries.deliver(decision, None if fresh is None else fresh.get(number))
                    self._wait_for_silence()
                case Fenced(consumer, instance):
                    self._publish(JournalFenced(consumer=consumer, instance=instance))
                case DeadLetter() | Settled() | DeliveryFailure() | Serving():
                    if isinstance(decision, DeadLetter | Settled):
                        self._deliveries.settled(decision.consumer, decision.number)
                    self._queue.note(decision)
                    self._wake()

    def _publish(self, message: Message) -> None:
        try:
            self._bus.post(message)
        except (FrameTooLarge, UnsendableMessage) as error:  # an invalid instance or id: it cannot be answered
            self._bus.reject(str(error), b"")

    def _obsolete(self, delivery: Deliver) -> None:
        self._carry_out(self._core.ack(delivery.consumer, delivery.number, self._clock()))


def _entry_of(envelope: Envelope) -> Entry:
    """Return the entry in which an envelope is stored."""
    return Entry(
        subject=envelope.subject,
        envelope_id=envelope.id,
        sender=envelope.sender,
        instance=envelope.instance,
        seq=envelope.seq,
        correlation_id=envelope.correlation_id,
        session_id=envelope.session_id,
        sent_at=envelope.sent_at or time.time(),
        frame=envelope.encode(),
    )
