"""How durable consumers come to be served, and how each is given its messages."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict

from local import failpoints
from local.bus.bus import Bus
from local.errors import BlobNotStored, FrameTooLarge, PublishTimeout, StoreLocked, StoreUnwritable, UnknownConsumer
from local.journal.core.consumer_decision import Deliver
from local.journal.core.consumer_state import ConsumerState, Deaths, DeliveryLimits
from local.journal.core.delivery_core import Decision, DeliveryCore
from local.journal.core.durable_consumer import DurableConsumer
from local.journal.store.entry import Header
from local.journal.store.store import JournalStore
from local.protocol.envelope import FIELD_LIMIT
from local.protocol.journal_messages import (
    ConsumerClaim,
    ConsumerMessage,
    JournalAttach,
    JournalDeliver,
    JournalDetach,
    JournalGiven,
    JournalHurry,
    JournalWorking,
)

log = logging.getLogger(__name__)

PAGE = 2000
NOT_GIVEN = (BlobNotStored, FrameTooLarge, PublishTimeout, StoreLocked, StoreUnwritable)


def consumers_of(message: ConsumerMessage) -> Collection[str]:
    """The durable consumers in whose name something is said."""
    if isinstance(message, JournalAttach):
        return [claim.name for claim in message.consumers]
    return message.attempts if isinstance(message, JournalWorking) else [message.consumer]


class JournalAdmission:
    """A consumer that is known is attached at once; one that is new, or has changed what it wants, is admitted first:
    it is made from what the store knows of it, and gets everything there is."""

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
                if self._admitted.get(name) != claim:  # else it has said so again while earlier ones were admitted
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
            await self.redeliver(claim.name, number, state.deaths.get(number, Deaths()))
        async for header in self._backlog(state):
            self._carry_out(consumer.add(header.number, header.lane, self._clock()))
        self._admitted[claim.name] = claim

    async def redeliver(self, name: str, number: int, deaths: Deaths) -> None:
        """A dead letter is to be given again, and that is on record; to a consumer that is not admitted, it is later.

        Raises `StoreFailed`.
        """
        [header] = await self._store.recovery((), number - 1, 1)
        with suppress(UnknownConsumer):
            self._carry_out(self._core.redeliver(name, number, header.lane, deaths, self._clock()))

    async def _backlog(self, state: ConsumerState) -> AsyncIterator[Header]:
        """What a consumer may still need, in order."""
        after = state.floor
        while headers := await self._store.recovery(state.subjects, after, PAGE):
            for header in headers:
                yield header
            after = headers[-1].number


class JournalDeliveries:
    """Gives at once what is at hand, else from the disk, in the order of `give`. What was deleted in the meantime is
    `obsolete`: there is nothing left to give.

    What waits for the disk waits once, however often it is given, and no longer than it is needed: else what a busy
    system gives again for its slowness would make it slower.
    """

    def __init__(self, bus: Bus, store: JournalStore, obsolete: Callable[[Deliver], None]) -> None:
        self._bus, self._store, self._obsolete = bus, store, obsolete
        self._from_disk: OrderedDict[tuple[str, int], Deliver] = OrderedDict()  # by consumer and number
        self._news = asyncio.Event()
        self._is_reading = False
        self._lingering: list[JournalDeliver] = []
        self._hurried: list[JournalGiven] = []  # what they wait for has arrived
        self._told_when_read: list[JournalGiven] = []  # it is on record

    def give(self, delivery: Deliver, frame: bytes | None) -> None:
        """Send a message; `frame` is None where it is not at hand."""
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
        """A message is done: what of it still waits is not needed."""
        self._from_disk.pop((consumer, number), None)

    def flush(self) -> None:
        """Send what waits for others to travel with it."""
        lingering, self._lingering = self._lingering, []
        for message in lingering:
            self._bus.post(message)

    def hurry(self, hurry: JournalHurry, instance: str) -> bool:
        """Somebody waits for what a consumer does: its process is told by `tell_given`, which is urgent."""
        self._hurried.append(JournalGiven(consumer=hurry.consumer, instance=instance, mark=hurry.mark))
        return True

    def tell_given(self) -> None:
        """What had arrived is on record: send what lingers, and tell whoever was in a hurry when all has been read."""
        if self._hurried:
            self.flush()
            self._told_when_read += self._hurried
            self._hurried.clear()
            self._news.set()

    async def run(self) -> None:
        """Send what is given again, or later, or is too large for one frame, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._from_disk:
                _, delivery = self._from_disk.popitem(last=False)
                self._is_reading = True
                try:
                    await self._give_from_disk(delivery)
                except NOT_GIVEN as error:  # its consumer is silent, and gets it again
                    log.warning("message %d could not be given to %s: %s", delivery.number, delivery.consumer, error)
                self._is_reading = False
            told, self._told_when_read = self._told_when_read, []
            for given in told:
                self._bus.post(given)

    async def _give_from_disk(self, delivery: Deliver) -> None:
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
