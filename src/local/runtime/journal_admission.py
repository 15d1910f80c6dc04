"""How a durable consumer comes into being: from what the store knows of it and what its process asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator

from local.protocol.journal_messages import JournalAttach
from local.runtime.durable_consumer import ConsumerState, Deaths, DurableConsumer
from local.services.journal.entry import Header
from local.services.journal.store import JournalStore

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
