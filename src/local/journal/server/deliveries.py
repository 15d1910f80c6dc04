"""How a durable consumer is given a message: at once if it is at hand, else from the disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from local import failpoints
from local.bus.blobs import FIELD_LIMIT
from local.bus.bus import Bus
from local.errors import BlobNotStored, FrameTooLarge, PublishTimeout
from local.journal.core.durable_consumer import Deliver
from local.journal.store.store import JournalStore
from local.protocol.journal_messages import JournalDeliver

log = logging.getLogger(__name__)


class JournalDeliveries:
    """In the order of `give`. What was deleted in the meantime is `obsolete`: there is nothing left to give."""

    def __init__(self, bus: Bus, store: JournalStore, obsolete: Callable[[Deliver], None]) -> None:
        self._bus, self._store, self._obsolete = bus, store, obsolete
        self._from_disk: asyncio.Queue[Deliver] = asyncio.Queue()
        self._waiting = 0

    def give(self, delivery: Deliver, frame: bytes | None) -> None:
        """Send a message; `frame` is None where it is not at hand."""
        if failpoints.is_lossy() and delivery.attempt > 1:
            return
        if frame is None or self._waiting or len(frame) > FIELD_LIMIT // 2:
            self._waiting += 1
            self._from_disk.put_nowait(delivery)
        else:
            self._bus.post(_message(delivery, frame))

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
