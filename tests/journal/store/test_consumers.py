"""Durable consumers: what each has settled and what it still needs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from local.core.errors import NotOnRecord
from local.journal.delivery import ConsumerChanges, DeliveryFailures
from local.journal.schema import Entry
from local.journal.store import JournalStore

MakeEntry = Callable[..., Entry]


async def test_a_new_consumer_needs_what_comes_from_now_on_or_everything(store: JournalStore, entry: MakeEntry) -> None:
    await store.commit([entry(1), entry(2)])
    assert (await store.register("critic", ["query.received"])).floor == 2
    assert (await store.register("memory", ["query.received"], floor=0)).floor == 0
    assert await store.consumer_names() == ["critic", "memory"]


async def test_a_consumer_that_registers_again_keeps_its_floor_and_gets_its_new_subjects(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["a"])
    await store.commit([entry(1)])
    known = await store.register("critic", ["a", "b."])
    assert (known.floor, known.subjects) == (0, ("a", "b."))


async def test_the_floor_rises_over_what_is_acknowledged_and_what_is_not_the_consumers(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["query."])
    await store.commit([entry(1), entry(2), entry(3, subject="other"), entry(4), entry(5, subject="other")])
    await store.commit([], {"critic": ConsumerChanges(settled={2, 4})})
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (0, {2, 4})
    await store.commit([], {"critic": ConsumerChanges(settled={1})})
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (5, frozenset())


async def test_an_acknowledgement_of_what_is_still_to_come_settles_nothing(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ())
    await store.commit([], {"critic": ConsumerChanges(settled={1, 2, -3})})
    await store.commit([entry(1)])
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (0, frozenset())


async def test_deaths_and_dead_letters_are_remembered(path: Path, entry: MakeEntry) -> None:
    async with JournalStore(path) as store:
        await store.register("critic", ())
        await store.commit([entry(1), entry(2), entry(3)])
        await store.commit(
            [], {"critic": ConsumerChanges(deaths={1: DeliveryFailures(2, 0), 2: DeliveryFailures(4, 3)})}
        )
        await store.commit([], {"critic": ConsumerChanges(dead_letters={2: "died three times alone"})})
        await store.commit([], {"critic": ConsumerChanges(settled={3})})
    async with JournalStore(path) as store:
        known = await store.consumer("critic")
        assert known.deaths == {1: (2, 0), 2: (4, 3)}
        assert (known.floor, known.acknowledged, known.dead_letters) == (0, {3}, {2: "died three times alone"})
        await store.commit([], {"critic": ConsumerChanges(settled={1})})
        known = await store.consumer("critic")
        assert (known.floor, known.dead_letters) == (3, {2: "died three times alone"})


@pytest.mark.parametrize("is_above_the_floor", [False, True])
async def test_a_dead_letter_that_is_to_be_given_again_is_remembered_on_either_side_of_the_floor(
    path: Path, entry: MakeEntry, is_above_the_floor: bool
) -> None:
    async with JournalStore(path) as store:
        await store.register("critic", ())
        await store.commit([entry(1), entry(2), entry(3)])
        settled = {3} if is_above_the_floor else {1, 3}
        await store.commit([], {"critic": ConsumerChanges(settled=settled, dead_letters={2: "why"})})
        await store.commit([], {"critic": ConsumerChanges(again={2}, deaths={2: DeliveryFailures(4, 0)})})
    async with JournalStore(path) as store:
        known = await store.consumer("critic")
        assert (known.again, known.dead_letters, known.deaths, known.settled & {2}) == ({2}, {}, {2: (4, 0)}, set())
        await store.commit([], {"critic": ConsumerChanges(deaths={2: DeliveryFailures(5, 1)})})
        assert (await store.consumer("critic")).deaths == {2: (5, 1)}
        await store.commit([], {"critic": ConsumerChanges(dead_letters={2: "again"})})
        known = await store.consumer("critic")
        assert (known.again, known.dead_letters) == (set(), {2: "again"})
        await store.commit([], {"critic": ConsumerChanges(again={2})})
        await store.commit([], {"critic": ConsumerChanges(settled={1, 2})})
        known = await store.consumer("critic")
        assert (known.again, known.dead_letters, known.floor) == (set(), {}, 3)


async def test_a_consumer_that_is_forgotten_is_unknown(store: JournalStore) -> None:
    await store.register("critic", ())
    await store.forget("critic")
    assert await store.consumer_names() == []
    nothing = {"critic": ConsumerChanges()}
    for call in (store.consumer("critic"), store.commit([], nothing), store.forget("critic")):
        with pytest.raises(NotOnRecord, match="no durable consumer 'critic' is registered"):
            await call


async def test_the_instance_that_serves_a_consumer_is_remembered_and_64_before_it(path: Path) -> None:
    async with JournalStore(path) as store:
        await store.register("critic", ())
        await store.commit([], {"critic": ConsumerChanges(served_by=["a", "b", None])})
        known = await store.consumer("critic")
        assert (known.served_by, known.fenced) == (None, ("a", "b"))
        await store.commit([], {"critic": ConsumerChanges(served_by=[str(number) for number in range(70)])})
    async with JournalStore(path) as store:
        known = await store.consumer("critic")
        assert (known.served_by, known.fenced) == ("69", tuple(str(number) for number in range(5, 69)))
        await store.forget("critic")
        assert (await store.register("critic", ())).served_by is None


async def test_a_dead_letter_and_the_parking_of_what_it_is_about_are_one_commit(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["query."])
    await store.commit([entry(1)])
    given_up = {"critic": ConsumerChanges(dead_letters={1: "why"})}
    with pytest.raises(NotOnRecord):
        await store.commit([entry(2, subject="bus.dead")], given_up | {"nobody": ConsumerChanges()})
    assert (await store.consumer("critic")).settled == frozenset()
    assert await store.recovery((), after=1, limit=9) == []
    await store.commit([entry(2, subject="bus.dead")], given_up)
    known = await store.consumer("critic")
    assert (known.floor, known.settled) == (2, {1})


async def test_only_settling_may_be_lost_with_the_end_of_the_file(store: JournalStore, entry: MakeEntry) -> None:
    await store.register("critic", ())
    await store.commit([entry(1), entry(2)])
    counts = [(await store.state()).changes]
    for change in (
        ConsumerChanges(settled={1}), ConsumerChanges(deaths={2: DeliveryFailures(1, 0)}),
        ConsumerChanges(served_by=["a"]),
        ConsumerChanges(dead_letters={2: "why"}), ConsumerChanges(again={2}),
    ):  # fmt: skip
        await store.commit([], {"critic": change})
        counts.append((await store.state()).changes - counts[0])
    assert counts[1:] == [0, 1, 2, 3, 4]


async def test_recovery_brings_the_headers_of_a_consumers_subjects_in_order(
    store: JournalStore, entry: MakeEntry
) -> None:
    subjects = [
        "tool.request.b",
        "query.received",
        "tool.request.a",
        "tool.requests",
        "query.received",
        "tool.request.b",
    ]
    await store.commit([entry(number, subject=subject) for number, subject in enumerate(subjects, 1)])

    async def numbers(subjects: Sequence[str], after: int = 0, limit: int = 9) -> list[int]:
        return [header.number for header in await store.recovery(subjects, after, limit)]

    assert await numbers(["tool.request.", "query.received", "tool.request.a"]) == [1, 2, 3, 5, 6]
    assert await numbers(["tool.request."], after=1) == [3, 6]
    assert await numbers(["nothing.", "nobody"]) == []
    assert await numbers(()) == [1, 2, 3, 4, 5, 6]
    assert await numbers(["query."], limit=1) == [2]
    assert await store.recovery(["query."], 2, 9) == [(5, "query.received", "id-5", "s")]
