"""The journal's store: numbers, look-ups, agreement with a plain dictionary."""

import asyncio
import errno
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import StoreDamaged, StoreFull, StoreGone
from local.journal.delivery import ConsumerChanges
from local.journal.schema import Appended, Entry, HighWaterMark, JournalState, mark_path, read_mark
from local.journal.store import JournalStore

MakeEntry = Callable[..., Entry]
UNLIMITED = 2**60


async def numbers(store: JournalStore, **wanted: object) -> list[int]:
    return [stored.number for stored in await store.read(limit=10_000, **wanted)]  # type: ignore[arg-type]


async def test_entries_are_numbered_from_one_in_the_order_of_appending(store: JournalStore, entry: MakeEntry) -> None:
    assert await store.commit([entry(1), entry(2)]) == [Appended(1, True), Appended(2, True)]
    assert await store.commit([entry(3)]) == [Appended(3, True)]


async def test_an_entry_that_is_sent_again_gets_its_number_again(store: JournalStore, entry: MakeEntry) -> None:
    await store.commit([entry(1), entry(2)])
    assert await store.commit([entry(2), entry(3), entry(3)]) == [
        Appended(2, False), Appended(3, True), Appended(3, False),
    ]  # fmt: skip
    assert await numbers(store) == [1, 2, 3]


async def test_an_entry_comes_back_as_it_was_after_reopening(path: Path, clock: Any, entry: MakeEntry) -> None:
    strange = Entry("a.b", "ïd\0", "s", "i", 2**62, "c", None, 0.1, b"a.b\0{}\0" + bytes(range(1, 256)))
    async with JournalStore(path, clock=clock) as store:
        await store.commit([strange])
    async with JournalStore(path) as store:
        (stored,) = await store.read(limit=1)
        assert (stored.number, stored.committed_at, stored.redacted, stored.entry) == (1, 1000.0, False, strange)
        assert store.damage is None
        assert await store.commit([entry(1)]) == [Appended(2, True)]


async def test_a_mark_that_was_taken_away_while_it_runs_makes_no_damaged_journal_of_it(
    path: Path, entry: MakeEntry
) -> None:
    async with JournalStore(path) as store:
        await store.commit([entry(1)])
        mark_path(path).unlink()
        await store.commit([entry(2)])
    async with JournalStore(path) as store:
        assert store.damage is None
        assert await numbers(store) == [1, 2]


async def test_a_folder_that_is_exchanged_in_the_middle_of_a_commit_gets_no_mark(
    path: Path, entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, exchanged = HighWaterMark.has_its_name, path.parent.with_name("exchanged")

    def exchange(mark: HighWaterMark) -> bool:
        if not exchanged.exists():
            path.parent.rename(exchanged)
            path.parent.mkdir()
        return find(mark)

    async with JournalStore(path) as store:
        monkeypatch.setattr(HighWaterMark, "has_its_name", exchange)
        with pytest.raises(StoreGone):
            await store.commit([entry(1)])
        assert list(path.parent.iterdir()) == []


async def test_entries_are_found_by_subject_session_correlation_sender_and_time(
    store: JournalStore, clock: Any, entry: MakeEntry
) -> None:
    await store.commit([entry(1), entry(2, subject="tool.result.search", session="t", sender="search")])
    clock.now = 2000.0
    await store.commit([entry(3, subject="tool.result.fetch", session=None), entry(4, subject="tool.resultant")])
    assert await numbers(store, subjects=["query.received"]) == [1]
    assert await numbers(store, subjects=["tool.result."]) == [2, 3]
    assert await numbers(store, subjects=["tool.result.", "query.received"]) == [1, 2, 3]
    assert await numbers(store, subjects=["tool.result"]) == []
    assert await numbers(store, session_id="t") == [2]
    assert await numbers(store, correlation_id="correlation-1") == [1, 4]
    assert await numbers(store, correlation_ids=["correlation-2", "correlation-0"], subjects=["tool."]) == [2, 3]
    assert await numbers(store, before=4) == [3, 2, 1]
    assert await numbers(store, before=4, after=1) == [2, 3]
    assert await numbers(store, sender="search") == [2]
    assert await numbers(store, since=2000.0) == [3, 4]
    assert await numbers(store, until=2000.0) == [1, 2]
    assert await numbers(store, after=2, session_id="s") == [4]
    assert [stored.number for stored in await store.read(limit=2)] == [1, 2]


async def test_appends_side_by_side_share_commits_and_get_numbers_of_their_own(
    store: JournalStore, entry: MakeEntry
) -> None:
    results = await asyncio.gather(*(store.commit([entry(number)]) for number in range(300)))
    assert sorted(appended.number for (appended,) in results) == list(range(1, 301))
    assert await store.verify() is None


async def test_a_row_that_changed_since_the_check_is_not_given_out(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1), entry(2)])
    await store._database.run(lambda db: db.execute("UPDATE entries SET sender = 'evil' WHERE number = 2"))
    with pytest.raises(StoreDamaged, match="row 2 of entries does not match its checksum"):
        await store.read(limit=9)
    assert await numbers(store, until=2000.0, subjects=["nothing"]) == []
    assert await store.verify() == "journal: row 2 of entries does not match its checksum"


async def test_nothing_is_acknowledged_before_the_mark_is_written(
    path: Path, store: JournalStore, monkeypatch: pytest.MonkeyPatch, entry: MakeEntry
) -> None:
    def fails(mark: HighWaterMark, state: JournalState) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(HighWaterMark, "advance", fails)
        with pytest.raises(StoreFull):
            await store.commit([entry(1)])
    assert await store.commit([entry(1)]) == [Appended(1, False)]
    assert read_mark(mark_path(path)) == await store.state()


@pytest.mark.parametrize("seed", range(10))
async def test_whatever_is_done_to_it_a_store_agrees_with_a_plain_dictionary(
    path: Path, clock: Any, seed: int, entry: MakeEntry
) -> None:
    chance = random.Random(seed)
    plain: dict[int, tuple[str, bool]] = {}
    last = unsettled = 0
    store = await JournalStore(path, clock=clock).__aenter__()
    await store.register("critic", ())
    for _ in range(60):
        clock.now += 1
        match chance.choice(["append", "append", "append", "again", "redact", "retain", "acknowledge", "reopen"]):
            case "append":
                for number in range(last + 1, last + chance.randint(1, 6)):
                    new = replace(entry(number, session=f"s{number % 4}"), correlation_id=f"q{number}")
                    assert await store.commit([new]) == [Appended(number, True)]
                    plain[number], last = (f"s{number % 4}", False), number
            case "again" if plain:
                number = chance.choice(list(plain))
                assert await store.commit([entry(number)]) == [Appended(number, False)]
            case "redact":
                session = f"s{chance.randrange(4)}"
                hit = [number for number, known in plain.items() if known == (session, False)]
                assert await store.redact_session(session) == len(hit)
                plain |= dict.fromkeys(hit, (session, True))
            case "retain":
                clock.now += 1
                removed = [number for number in plain if number <= unsettled]
                assert await store.retain(0, UNLIMITED) == len(removed)
                for number in removed:
                    del plain[number]
            case "acknowledge":
                unsettled = chance.randint(unsettled, last)
                await store.commit([], {"critic": ConsumerChanges(settled=set(range(1, unsettled + 1)))})
                assert (await store.consumer("critic")).floor == unsettled
            case "reopen":
                await store.__aexit__(None, None, None)
                store = await JournalStore(path, clock=clock).__aenter__()
                assert store.damage is None
        found = {one.number: (one.entry.session_id, one.redacted) for one in await store.read(limit=1000)}
        assert found == plain
    await store.__aexit__(None, None, None)
