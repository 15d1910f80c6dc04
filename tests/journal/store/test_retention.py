"""Removing the oldest entries, as far as nobody needs them."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from local.bus.envelope import Envelope
from local.core.database import connect_read_only
from local.journal.delivery import ConsumerChanges
from local.journal.schema import Appended, Entry
from local.journal.server import size_of_references
from local.journal.store import JournalStore
from tests.logs import OpenStore

MakeEntry = Callable[..., Entry]
FOREVER, UNLIMITED = 1e12, 2**60


async def numbers(store: JournalStore, **wanted: object) -> list[int]:
    return [stored.number for stored in await store.read(limit=10_000, **wanted)]  # type: ignore[arg-type]


def pages(path: Path) -> int:
    with connect_read_only(path) as db:
        return int(db.execute("PRAGMA page_count").fetchone()[0])


async def test_retention_removes_what_is_too_old(store: JournalStore, clock: Any, entry: MakeEntry) -> None:
    await store.commit([entry(1), entry(2)])
    clock.now += 100
    await store.commit([entry(3)])
    assert await store.retain(50, UNLIMITED) == 2
    assert await numbers(store) == [3]
    assert await store.verify() is None
    clock.now += 100
    assert await store.retain(50, UNLIMITED) == 1
    assert await store.commit([entry(4)]) == [Appended(4, True)]


async def test_retention_keeps_the_file_within_its_size_and_what_it_removes_makes_it_smaller(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    for start in range(0, 600, 200):
        await store.commit(
            [entry(number, payload=os.urandom(1000).hex().encode()) for number in range(start, start + 200)]
        )
    before = pages(path)
    assert await store.retain(FOREVER, 300_000) > 300
    assert pages(path) < before / 2
    assert await store.verify() is None
    left = await numbers(store)
    assert left == list(range(left[0], 601))
    assert len(left) > 40
    assert await store.retain(FOREVER, 300_000) == 0


async def test_what_lies_elsewhere_for_an_entry_counts(store: JournalStore, entry: MakeEntry) -> None:
    await store.commit([entry(number, payload=b"large" if number % 2 else b"{}") for number in range(1, 11)])
    million = 1_000_000

    def weigh(frame: bytes) -> int:
        return million if frame.endswith(b"large") else 0

    assert await store.retain(FOREVER, 3 * million, 5 * million, weigh) == 5  # three are large
    assert await numbers(store) == [6, 7, 8, 9, 10]
    assert await store.retain(FOREVER, 3 * million, 2 * million, weigh) == 0
    assert await store.verify() is None


async def test_a_size_that_cannot_be_removes_nothing_more(store: JournalStore, clock: Any, entry: MakeEntry) -> None:
    payload = b'{"result":{"$blob":"0","size":-1000000000000}}'
    frame = Envelope("tool.result.dice", "id-1", "dice", "instance", 1, "q", payload).encode()
    await store.commit([replace(entry(1), frame=frame)])
    clock.now += 100
    await store.commit([entry(number) for number in range(2, 11)])
    assert await store.retain(50, 3_000_000, 0, size_of_references) == 1


async def test_retention_never_removes_what_a_consumer_has_not_settled(
    store: JournalStore, clock: Any, entry: MakeEntry
) -> None:
    await store.register("critic", ["query.received"])
    await store.commit([entry(1, subject="other"), entry(2), entry(3), entry(4, subject="other"), entry(5)])
    clock.now += 100
    assert await store.retain(0, 0) == 1
    await store.commit([], {"critic": ConsumerChanges(settled={2, 5})})
    await store.commit([], {"critic": ConsumerChanges(dead_letters={3: "why"})})
    assert await store.retain(0, 0) == 4
    await store.commit([entry(6)])
    assert await store.retain(0, 0) == 0
    assert (await store.consumer("critic")).dead_letters == {}
    await store.forget("critic")
    assert await store.retain(0, 0) == 1


async def test_retention_never_removes_what_is_to_be_given_again(
    store: JournalStore, clock: Any, entry: MakeEntry
) -> None:
    await store.register("critic", ["query.received"])
    await store.commit([entry(1), entry(2), entry(3)])
    clock.now += 100
    await store.commit([], {"critic": ConsumerChanges(settled={1, 3}, dead_letters={2: "why"})})
    await store.commit([], {"critic": ConsumerChanges(again={2})})
    assert await store.retain(0, 0) == 1
    await store.commit([], {"critic": ConsumerChanges(settled={2})})
    assert await store.retain(0, 0) == 2


async def test_everything_removed_still_opens_and_goes_on_counting(
    open_store: OpenStore, path: Path, clock: Any, entry: MakeEntry
) -> None:
    async with open_store(path, clock=clock) as store:
        await store.commit([entry(number) for number in range(5)])
        clock.now += 1
        assert await store.retain(0, 0) == 5
    async with open_store(path) as store:
        assert store.damage is None
        assert await store.commit([entry(9)]) == [Appended(6, True)]
