"""A full disk: refused by name, nothing lost, and on it goes when there is space."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import StoreFull
from local.journal.schema import Appended, Entry
from local.journal.store import JournalStore

MakeEntry = Callable[..., Entry]


async def numbers(store: JournalStore, **wanted: object) -> list[int]:
    return [stored.number for stored in await store.read(limit=10_000, **wanted)]  # type: ignore[arg-type]


async def test_a_store_without_room_says_so_and_works_again_when_there_is_some(path: Path, entry: MakeEntry) -> None:
    async with JournalStore(path) as store:
        await store.commit([entry(0)])
        (pages,) = await store._database.run(lambda db: tuple(db.execute("PRAGMA page_count").fetchone()))
        await store._database.run(lambda db: db.execute(f"PRAGMA max_page_count={pages}").fetchall())
        large = [entry(number, payload=b"x" * 50_000) for number in range(1, 3)]
        failed = await asyncio.gather(*(store.commit([each]) for each in large), return_exceptions=True)
        assert [type(error) for error in failed] == [StoreFull] * 2
        assert str(failed[0]) == f"{path}: the disk is full; free some space and try again"
        assert await numbers(store) == [1]
        await store._database.run(lambda db: db.execute("PRAGMA max_page_count=100000").fetchall())
        assert await store.commit(large) == [Appended(2, True), Appended(3, True)]
    async with JournalStore(path) as store:
        assert store.damage is None
        assert await numbers(store) == [1, 2, 3]


async def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Any, entry: MakeEntry) -> None:
    acknowledged = []
    async with JournalStore(small_disk.folder / "journal.db") as store:
        small_disk.fill(room=1024 * 1024)
        with pytest.raises(StoreFull):
            for number in range(10_000):
                acknowledged += await store.commit([entry(number, payload=b"x" * 5000)])
        small_disk.free()
        acknowledged += await store.commit([entry(10_000)])
        assert await numbers(store) == [appended.number for appended in acknowledged]
        assert await store.verify() is None
    async with JournalStore(small_disk.folder / "journal.db") as store:
        assert store.damage is None
        assert await numbers(store) == [appended.number for appended in acknowledged]
