"""Commits in groups what arrives, then tells publishers and consumers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from local import failpoints
from local.bus.bus import Bus
from local.errors import (
    FrameTooLarge,
    PublishTimeout,
    StoreFailed,
    StoreGone,
    StoreUnwritable,
    UnknownConsumer,
    UnsendableMessage,
)
from local.journal.core.consumer_decision import DeadLetter, Deliver, Died, Fenced, Serving, Settled
from local.journal.core.consumer_state import DeliveryLimits
from local.journal.core.delivery_core import MAX_BATCH, Batch, CommitQueue, Confirm, Decision, DeliveryCore
from local.journal.server.dead_letters import DeadLetters
from local.journal.server.deliveries import JournalAdmission, JournalDeliveries, consumers_of
from local.journal.store.entry import Entry
from local.journal.store.store import JournalStore
from local.protocol.delivery_classes import delivery_of, is_hurried, kept_subjects
from local.protocol.envelope import Envelope
from local.protocol.journal_messages import (
    ConsumerMessage,
    JournalAck,
    JournalAttach,
    JournalConfirmed,
    JournalDetach,
    JournalFailed,
    JournalFenced,
    JournalHurry,
    JournalWorking,
)
from local.protocol.message import Message
from local.protocol.messages import ErrorInfo
from local.protocol.subjects import QUERY_RECEIVED

log = logging.getLogger(__name__)

GROUP_COMMIT_SECONDS = 0.05  # messages for which nobody waits wait so long for others to share a commit with
CONFIRM_SECONDS = 0.05  # what nobody waits for is confirmed so much later, that of several commits in one message
TICK_SECONDS, LONGEST_TICK_SECONDS = 0.1, 1.0
RETRY_SECONDS = 1.0
RECONNECT_SECONDS = 0.15  # until the others have found the new proxy, too
NEW_WORK = frozenset({QUERY_RECEIVED})  # refused while nothing can be written; the rest is running work's


class JournalWriter:
    """One task commits, so that numbers, commits and what follows from them have one order.

    What has not been committed when the process dies was not confirmed either: its publisher sends it again.
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

    @property
    def problem(self) -> str:
        """Why nothing can be written; empty while it can."""
        return "" if self._trouble is None else str(self._trouble)

    def figures(self) -> dict[str, int]:
        """How much was committed, in how many commits, and what each consumer has before it."""
        return {**self._counters, **{f"pending_{name}": count for name, count in self._core.pending.items()}}

    def subscribe(self) -> None:
        """Hear everything that is to be kept, and what consumers say."""
        for subject in kept_subjects():
            self._bus.subscribe(subject, self._take, repeats=True)
        # True from one of these: what is to be done now does not wait for company in a commit
        heard: dict[type[ConsumerMessage], Callable[[Any, str], bool | None]] = {
            JournalAttach: self._admission.attach,
            JournalDetach: self._admission.detach,
            JournalAck: self._acknowledge,
            JournalHurry: self._deliveries.hurry,
            JournalWorking: self._working,
            JournalFailed: self._failed,
        }
        for kind, hear in heard.items():
            self._bus.subscribe(kind.subject, partial(self._hear, kind, hear))

    def reconnected(self) -> None:
        """What was on its way to consumers may be lost: give it again soon, when they are back, too."""
        self._core.hasten(self._clock() + RECONNECT_SECONDS)
        self._in(RECONNECT_SECONDS, self._tick)

    async def run(self) -> None:
        """Commit and tell until cancelled. Raises `StoreFailed` for what only a new start can mend."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._deliveries.run(), name="journal: deliveries")
                while True:
                    await self._something_to_do()
                    async with self._committing:
                        await self._commit()
                    await self._admission.admit_newcomers()
                    if not self._queue:
                        self._deliveries.tell_given()
                    if self.dead_letters.asked:
                        await self.dead_letters.give_again()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def catch_up(self) -> None:
        """Commit what has arrived so far, and send on what waits to be given."""
        async with self._committing:
            for _ in range(0, self._queue.waiting, MAX_BATCH):
                await self._commit()
        self._deliveries.flush()

    async def finish(self) -> None:
        """Commit what there is: whoever ended in order before this process must not be taken for dead after it."""
        while self._queue and not self.problem:
            await self._commit()
        self._confirm_recorded()

    # What arrives

    def _take(self, envelope: Envelope) -> bool:
        if not self._queue.add(envelope):
            return False
        self._wake()
        return True

    def _hear(self, kind: type[ConsumerMessage], take: Callable[[Any, str], bool | None], envelope: Envelope) -> None:
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

    async def _commit(self) -> None:
        batch = self._queue.take()
        if self._queue:
            self._wake()
        if not batch and not isinstance(self._trouble, StoreGone):
            return  # and if nothing could be written, nothing shows yet that it can
        failpoints.reach("journal.received")
        try:
            letters = [await self.dead_letters.tell(dead) for dead in batch.dead_letters]
            envelopes = [*batch.envelopes, *letters]
            entries = [_entry_of(envelope) for envelope in envelopes]
            appended = await self._store.commit(entries, batch.changes)
        except StoreFailed as error:
            self._queue.put_back_changes(batch)
            if not isinstance(error, StoreUnwritable):
                raise
            self._cannot_write(batch, error)
            return
        failpoints.reach("journal.committed")
        self._trouble = None
        self._counters["committed"] += sum(place.is_new for place in appended)
        self._counters["commits"] += 1
        numbers = [place.number for place in appended]
        fresh = {number: entry.frame for number, entry in zip(numbers, entries, strict=True)}
        self._carry_out(self._core.committed(zip(numbers, envelopes, strict=True), self._clock()), fresh)
        if self._core.has_unconfirmed:
            self._in(CONFIRM_SECONDS, self._confirm_recorded)
        for letter in letters:
            with suppress(PublishTimeout):  # nobody hears it live then; it is on record
                await self._bus.send(letter)

    def _cannot_write(self, batch: Batch, error: StoreUnwritable) -> None:
        """Refuse new work; whatever else there is comes again."""
        if self._trouble is None:
            log.error("%s: new queries are refused", error)
        self._trouble = error
        info = ErrorInfo.of(error)
        for envelope in batch.envelopes:
            if envelope.subject in NEW_WORK:
                self._tell(JournalConfirmed(instance=envelope.instance, refused=(envelope.id,), error=info))
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
        """Do what was decided. `fresh` are frames at hand, by number."""
        for decision in decisions:
            match decision:
                case Confirm(instance, ids):
                    self._tell(JournalConfirmed(instance=instance, ids=tuple(ids)))
                    failpoints.reach("journal.confirmed")
                case Deliver(number=number):
                    self._deliveries.give(decision, None if fresh is None else fresh.get(number))
                    self._wait_for_silence()
                case Fenced(consumer, instance):
                    self._tell(JournalFenced(consumer=consumer, instance=instance))
                case DeadLetter() | Settled() | Died() | Serving():
                    if isinstance(decision, DeadLetter | Settled):
                        self._deliveries.settled(decision.consumer, decision.number)
                    self._queue.note(decision)
                    self._wake()

    def _tell(self, message: Message) -> None:
        try:
            self._bus.post(message)
        except (FrameTooLarge, UnsendableMessage) as error:  # a stranger's instance or id: nobody can be told of it
            self._bus.reject(str(error), b"")

    def _obsolete(self, delivery: Deliver) -> None:
        self._carry_out(self._core.ack(delivery.consumer, delivery.number, self._clock()))


def _entry_of(envelope: Envelope) -> Entry:
    """An envelope as it goes on record."""
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
