"""Durable consumers: what each has settled and what it still needs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from local.errors import NotOnRecord
from local.services.journal.entry import Deaths, Entry
from local.services.journal.store import JournalStore

MakeEntry = Callable[..., Entry]


async def test_a_new_consumer_needs_what_comes_from_now_on_or_everything(store: JournalStore, entry: MakeEntry) -> None:
    await store.append([entry(1), entry(2)])
    assert (await store.register("critic", ["query.received"])).floor == 2
    assert (await store.register("memory", ["query.received"], floor=0)).floor == 0
    assert await store.consumer_names() == ["critic", "memory"]


async def test_a_consumer_that_registers_again_keeps_its_floor_and_gets_its_new_subjects(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["a"])
    await store.append([entry(1)])
    known = await store.register("critic", ["a", "b."])
    assert (known.floor, known.subjects) == (0, ("a", "b."))


async def test_the_floor_rises_over_what_is_acknowledged_and_what_is_not_the_consumers(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["query."])
    await store.append([entry(1), entry(2), entry(3, subject="other"), entry(4), entry(5, subject="other")])
    await store.acknowledge("critic", [2, 4])
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (0, {2, 4})
    await store.acknowledge("critic", [1])
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (5, frozenset())


async def test_an_acknowledgement_of_what_is_still_to_come_settles_nothing(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ())
    await store.acknowledge("critic", [1, 2, -3])
    await store.append([entry(1)])
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (0, frozenset())


async def test_deaths_and_parked_messages_are_remembered(path: Path, entry: MakeEntry) -> None:
    async with JournalStore(path) as store:
        await store.register("critic", ())
        await store.append([entry(1), entry(2), entry(3)])
        await store.note_deaths("critic", {1: Deaths(2, 0), 2: Deaths(4, 3)})
        await store.park("critic", 2, "died three times alone")
        await store.acknowledge("critic", [3])
    async with JournalStore(path) as store:
        known = await store.consumer("critic")
        assert known.deaths == {1: (2, 0), 2: (4, 3)}
        assert (known.floor, known.acknowledged, known.parked) == (0, {3}, {2: "died three times alone"})
        await store.acknowledge("critic", [1])
        known = await store.consumer("critic")
        assert (known.floor, known.parked) == (3, {2: "died three times alone"})


async def test_a_consumer_that_is_forgotten_is_unknown(store: JournalStore) -> None:
    await store.register("critic", ())
    await store.forget("critic")
    assert await store.consumer_names() == []
    for call in (
        store.consumer("critic"), store.acknowledge("critic", [1]), store.park("critic", 1, "why"),
        store.note_deaths("critic", {}), store.forget("critic"),
    ):  # fmt: skip
        with pytest.raises(NotOnRecord, match="no durable consumer 'critic' is registered"):
            await call
