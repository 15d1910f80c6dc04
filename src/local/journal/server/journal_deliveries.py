"""How a durable consumer of the journal comes into being, and how it is given a message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from local import failpoints
from local.bus.blobs import FIELD_LIMIT
from local.bus.bus import Bus
from local.errors import BlobNotStored, FrameTooLarge, PublishTimeout
from local.journal.core.durable_consumer import ConsumerState, Deaths, Deliver, DurableConsumer
from local.journal.store.entry import Header
from local.journal.store.store import JournalStore
from local.protocol.envelope import Envelope
from local.protocol.journal_messages import JournalAttach, JournalDeliver

log = logging.getLogger(__name__)


class JournalDeliveries:
    """In the order of `give`. What was deleted in the meantime is `obsolete`: nobody has to deal with it."""

    def __init__(self, bus: Bus, store: JournalStore, obsolete: Callable[[Deliver], None]) -> None:
        self._bus, self._store, self._obsolete = bus, store, obsolete
        self._from_disk: asyncio.Queue[Deliver] = asyncio.Queue()
        self._waiting = 0

    def give(self, delivery: Deliver, envelope: Envelope | None) -> None:
        """Send a message; `envelope` is None where it is not at hand."""
        if failpoints.is_lossy() and delivery.attempt > 1:
            return
        if envelope is None or self._waiting or len(envelope.payload) > FIELD_LIMIT // 2:
            self._waiting += 1
            self._from_disk.put_nowait(delivery)
        else:
            self._bus.post(_message(delivery, envelope.encode()))

    async def run(self) -> None:
        """Send what is given again, or later, or is too large for one frame, until cancelled."""
        while True:
            delivery = await self._from_disk.get()
            try:
                await self._give_from_disk(delivery)
            except (BlobNotStored, FrameTooLarge, PublishTimeout) as error:  # its consumer is silent and gets it again
                log.warning("message %d could not be given to %s: %s", delivery.number, delivery.consumer, error)
            self._waiting -= 1

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


PAGE = 2000


async def admit(store: JournalStore, attach: JournalAttach, *, ack_wait: float, max_deliver: int) -> DurableConsumer:
    """The consumer, with its past. One that is new gets everything there is. Raises `StoreFailed`."""
    known = await store.register(attach.consumer, attach.subjects, floor=0)
    state = ConsumerState(
        floor=known.floor,
        settled=known.settled,
        deaths={number: Deaths(*deaths) for number, deaths in known.deaths.items()},
        instance=known.served_by,
        fenced=known.fenced,
    )
    return DurableConsumer(
        attach.consumer,
        attach.subjects,
        ack_wait=ack_wait,
        max_deliver=max_deliver,
        max_in_hand=attach.max_in_hand,
        lane_width=attach.lane_width,
        state=state,
    )


async def backlog(store: JournalStore, consumer: DurableConsumer) -> AsyncIterator[Header]:
    """What it may still need, in order. Raises `StoreFailed`."""
    after = consumer.floor
    while headers := await store.recovery(consumer.subjects, after, PAGE):
        for header in headers:
            yield header
        after = headers[-1].number
