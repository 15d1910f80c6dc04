"""What has to be read from the disk before it is given."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from local.bus.envelope import Envelope
from local.core.errors import StoreFailed, StoreFull
from local.journal.delivery import Deliver
from local.journal.messages import JournalDeliver
from local.journal.writer import JournalDeliveries


class SlowStore:
    """Reads when it is let."""

    def __init__(self) -> None:
        self.read_numbers: list[int] = []
        self.failures: list[StoreFailed] = []
        self.is_asked, self.is_free = asyncio.Event(), asyncio.Event()

    async def read(self, *, limit: int, after: int) -> list[Any]:
        self.read_numbers.append(after + 1)
        self.is_asked.set()
        await self.is_free.wait()
        if self.failures:
            raise self.failures.pop()
        frame = Envelope("query.received", f"e{after + 1}", "api", "i", 1, "q", b"{}").encode()
        return [SimpleNamespace(number=after + 1, redacted=False, entry=SimpleNamespace(frame=frame))]


class Listener:
    """A bus on which all that is published is kept."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[JournalDeliver] = asyncio.Queue()

    async def publish(self, message: JournalDeliver) -> None:
        self.given.put_nowait(message)


def delivery(number: int, attempt: int) -> Deliver:
    return Deliver("generator", number, attempt, "i", 0, 0.0)


async def test_what_waits_for_the_disk_waits_once_and_only_while_it_is_needed() -> None:
    store, bus = SlowStore(), Listener()
    parts: tuple[Any, Any] = (bus, store)
    deliveries = JournalDeliveries(*parts, lambda _: None)
    running = asyncio.create_task(deliveries.run())
    deliveries.give(delivery(1, 1), None)
    await store.is_asked.wait()
    for attempt in (1, 2, 3):  # nothing is heard of them for long
        for number in (2, 3, 4):
            deliveries.give(delivery(number, attempt), None)
    deliveries.give(delivery(5, 1), b"at hand, but not before those that were given earlier")
    deliveries.settled("generator", 3)
    store.is_free.set()
    given = [await asyncio.wait_for(bus.given.get(), 5) for _ in range(4)]
    assert [(each.number, each.attempt) for each in given] == [(1, 1), (2, 3), (4, 3), (5, 1)]
    assert store.read_numbers == [1, 2, 4, 5]
    running.cancel()


async def test_what_a_full_disk_keeps_from_being_read_is_given_when_it_is_due_again() -> None:
    store, bus = SlowStore(), Listener()
    parts: tuple[Any, Any] = (bus, store)
    deliveries = JournalDeliveries(*parts, lambda _: None)
    running = asyncio.create_task(deliveries.run())
    store.failures.append(StoreFull("the disk is full"))
    store.is_free.set()
    deliveries.give(delivery(1, 1), None)
    deliveries.give(delivery(2, 1), None)
    assert (await asyncio.wait_for(bus.given.get(), 5)).number == 2
    deliveries.give(delivery(1, 2), None)
    assert (await asyncio.wait_for(bus.given.get(), 5)).number == 1
    assert not running.done()
    running.cancel()
