"""The journal over a log: takeover, fencing, answers that are lost, and files that are made again from the log."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import NotOnRecord, StoreFailed, StoreFenced, StoreFull, StoreInDoubt, StoreUnwritable
from local.journal.delivery import ConsumerChanges, DeliveryFailures
from local.journal.log import CommitLog
from local.journal.replicated import Owner, ReplicatedJournalStore
from local.journal.schema import Appended, Entry, JournalState, rows
from local.journal.store import PROGRESS, JournalStore
from tests.logs import MemoryLog, SharedFileLog

MakeEntry = Callable[..., Entry]
Journal = Any  # the class is in conftest.py, which no test can import


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture(params=["memory", "shared file"])
def either_log(request: pytest.FixtureRequest, tmp_path: Path) -> CommitLog:
    return MemoryLog() if request.param == "memory" else SharedFileLog(tmp_path / "log.db")


async def content(store: JournalStore) -> tuple[JournalState, list[object]]:
    return await store.state(), [*await store.read(limit=10_000)]


async def test_another_machine_continues_with_the_same_journal(
    either_log: CommitLog, tmp_path: Path, entry: MakeEntry
) -> None:
    async with ReplicatedJournalStore(tmp_path / "a" / "journal.db", either_log) as first:
        await first.register("critic", ["query."], floor=0)
        await first.commit([entry(number, session=f"s{number % 3}") for number in range(1, 9)])
        await first.commit([], {"critic": ConsumerChanges(deaths={3: DeliveryFailures(2, 1)}, served_by=["one"])})
        assert await first.redact_session("s1") == 3
        await first.commit([entry(9)], {"critic": ConsumerChanges(settled={1, 2})})
        assert await first.retain(0, 2**60) == 2
        before, consumer = await content(first), await first.consumer("critic")
    async with ReplicatedJournalStore(tmp_path / "b" / "journal.db", either_log) as second:
        assert await content(second) == before
        assert await second.consumer("critic") == consumer
        assert await second.commit([entry(9), entry(10)]) == [Appended(9, False), Appended(10, True)]


async def test_who_was_replaced_confirms_nothing_any_more(
    either_log: CommitLog, tmp_path: Path, entry: MakeEntry
) -> None:
    async with ReplicatedJournalStore(tmp_path / "a" / "journal.db", either_log) as frozen:
        await frozen.commit([entry(1)])
        async with ReplicatedJournalStore(tmp_path / "b" / "journal.db", either_log) as owner:
            await owner.commit([entry(2)])
            for _ in range(2):
                with pytest.raises(StoreFenced):
                    await frozen.commit([entry(3)])
            with pytest.raises(StoreFenced):
                await frozen.redact_session("s")
            assert await owner.commit([entry(4)]) == [Appended(3, True)]
    async with ReplicatedJournalStore(tmp_path / "a" / "journal.db", either_log) as again:
        assert [one.entry.envelope_id for one in await again.read(limit=9)] == ["id-1", "id-2", "id-4"]


async def test_the_replaced_owner_of_a_cell_does_not_take_it_back(
    either_log: CommitLog, tmp_path: Path, entry: MakeEntry
) -> None:
    def journal(machine: str, *, takes_over: bool) -> ReplicatedJournalStore:
        owner = Owner(machine, takes_over=takes_over)
        return ReplicatedJournalStore(tmp_path / machine / "journal.db", either_log, owner=owner)

    for is_restart in (False, True):
        async with journal("a", takes_over=not is_restart) as first:
            await first.commit([entry(1 + is_restart)])
    async with journal("b", takes_over=True) as second:
        await second.commit([entry(3)])
    with pytest.raises(StoreFenced, match="another machine runs this cell now"):
        await journal("a", takes_over=False).__aenter__()
    async with journal("b", takes_over=False) as second:
        assert await second.commit([entry(4)]) == [Appended(4, True)]


async def test_a_new_owner_has_delivered_again_what_its_other_stores_lack(
    either_log: CommitLog, tmp_path: Path, entry: MakeEntry
) -> None:
    async with ReplicatedJournalStore(tmp_path / "a" / "journal.db", either_log) as first:
        await first.register("critic", ["query."], floor=0)
        await first.commit([entry(number) for number in range(1, 5)], {"critic": ConsumerChanges(settled={1})})
        progress = await first._database.run(lambda db: {table: list(rows(db, table)) for table in PROGRESS})
        await first.commit([entry(5)], {"critic": ConsumerChanges(settled={2, 3}, dead_letters={5: "no"})})
    owner = Owner("b", takes_over=True, progress=progress)
    async with ReplicatedJournalStore(tmp_path / "b" / "journal.db", either_log, owner=owner) as second:
        consumer = await second.consumer("critic")
        assert (consumer.floor, consumer.dead_letters) == (1, {})


async def test_files_are_stored_before_the_message_that_refers_to_them(
    log: MemoryLog, tmp_path: Path, entry: MakeEntry
) -> None:
    kept: list[tuple[int, str]] = []

    async def keep(entries: Sequence[Entry]) -> None:
        kept.append((len(log.records), entries[0].envelope_id))

    async with ReplicatedJournalStore(tmp_path / "journal.db", log, keep=keep) as store:
        await store.commit([entry(1)])
    assert kept == [(1, "id-1")]  # after the owner's record


async def test_a_record_of_the_owner_before_may_arrive_during_the_takeover(
    log: MemoryLog, tmp_path: Path, entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedJournalStore(tmp_path / "a" / "journal.db", log) as dying:
        append, late = log.append, [entry(1)]

        async def arrives_first(record: bytes, after: int) -> int:
            monkeypatch.undo()
            await dying.commit(late)
            return await append(record, after)

        monkeypatch.setattr(log, "append", arrives_first)
        async with ReplicatedJournalStore(tmp_path / "b" / "journal.db", log) as owner:
            assert await owner.commit([entry(1), entry(2)]) == [Appended(1, False), Appended(2, True)]


async def test_a_lost_answer_makes_nothing_twice(log: MemoryLog, tmp_path: Path, entry: MakeEntry) -> None:
    async with ReplicatedJournalStore(tmp_path / "journal.db", log) as store:
        log.loses_answers = True
        for _ in range(2):
            with pytest.raises(StoreUnwritable):
                await store.commit([entry(1)])
        log.loses_answers = False
        assert await store.commit([entry(1), entry(2)]) == [Appended(1, False), Appended(2, True)]
        records = len(log.records)
        log.is_away = True
        with pytest.raises(StoreUnwritable):
            await store.redact_session("s")
        log.is_away = False
        assert await store.redact_session("s") == 0  # the one before has done it
        assert len(log.records) == records + 2
        state = await store.state()
    async with ReplicatedJournalStore(tmp_path / "copy" / "journal.db", log) as copy:
        assert await copy.state() == state


async def test_a_start_waits_for_the_log(log: MemoryLog, tmp_path: Path) -> None:
    log.is_away = True
    opening = asyncio.create_task(ReplicatedJournalStore(tmp_path / "journal.db", log).__aenter__())
    await log.was_asked_while_away.wait()
    log.is_away = False
    await (await opening).__aexit__(None, None, None)


async def test_what_a_full_disk_holds_up_is_carried_out_when_there_is_room(
    log: MemoryLog, tmp_path: Path, entry: MakeEntry
) -> None:
    async with ReplicatedJournalStore(tmp_path / "journal.db", log) as store:
        (pages,) = await store._database.run(lambda db: tuple(db.execute("PRAGMA page_count").fetchone()))
        await store._database.run(lambda db: db.execute(f"PRAGMA max_page_count={pages}").fetchall())
        for number, error in ((1, StoreInDoubt), (2, StoreFull)):
            with pytest.raises(error, match="the disk is full"):
                await store.commit([entry(number, payload=b"x" * 50_000)])
        await store._database.run(lambda db: db.execute("PRAGMA max_page_count=100000").fetchall())
        assert await store.commit([entry(2)]) == [Appended(2, True)]
        assert [one.number for one in await store.read(limit=9)] == [1, 2]


async def test_acknowledgements_travel_with_the_next_record(log: MemoryLog, tmp_path: Path, entry: MakeEntry) -> None:
    async with ReplicatedJournalStore(tmp_path / "journal.db", log) as store:
        await store.register("critic", (), floor=0)
        await store.commit([entry(number) for number in range(1, 6)])
        records = len(log.records)
        for number in (1, 2):
            await store.commit([], {"critic": ConsumerChanges(settled={number})})
        assert len(log.records) == records
        assert (await store.consumer("critic")).floor == 2
        await store.commit([entry(6)])
        await store.commit([], {"critic": ConsumerChanges(settled={3})})
        async with ReplicatedJournalStore(tmp_path / "copy" / "journal.db", log) as copy:
            assert (await copy.consumer("critic")).floor == 2
        with pytest.raises(StoreFenced):
            await store.commit([entry(7)])


async def test_an_orderly_end_writes_the_last_acknowledgements(
    log: MemoryLog, tmp_path: Path, entry: MakeEntry
) -> None:
    async with ReplicatedJournalStore(tmp_path / "journal.db", log) as store:
        await store.register("critic", (), floor=0)
        await store.commit([entry(1)])
        await store.commit([], {"critic": ConsumerChanges(settled={1})})
    async with ReplicatedJournalStore(tmp_path / "copy" / "journal.db", log) as copy:
        assert (await copy.consumer("critic")).floor == 1


async def test_what_the_journal_refuses_is_not_in_the_log(log: MemoryLog, tmp_path: Path, entry: MakeEntry) -> None:
    async with ReplicatedJournalStore(tmp_path / "journal.db", log) as store:
        records = len(log.records)
        with pytest.raises(NotOnRecord):
            await store.commit([entry(1)], {"nobody": ConsumerChanges(settled={1})})
        with pytest.raises(NotOnRecord):
            await store.forget("nobody")
        assert len(log.records) == records


async def test_a_damaged_file_is_moved_aside_and_made_again(log: MemoryLog, tmp_path: Path, entry: MakeEntry) -> None:
    path = tmp_path / "journal.db"
    async with ReplicatedJournalStore(path, log) as store:
        await store.commit([entry(number) for number in range(1, 6)])
        before = await content(store)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE entries SET sender = 'evil' WHERE number = 2")
        db.commit()
    async with ReplicatedJournalStore(path, log) as store:
        assert store.damage is not None
        assert (store.damage.salvaged, store.damage.in_doubt) == (5, ())
        assert await content(store) == before
    async with ReplicatedJournalStore(path, log) as store:
        assert store.damage is None


async def test_an_older_copy_of_the_file_catches_up(log: MemoryLog, tmp_path: Path, entry: MakeEntry) -> None:
    path, names = tmp_path / "journal.db", ("journal.db", "journal.db.mark")
    async with ReplicatedJournalStore(path, log) as store:
        await store.commit([entry(1)])
    older = {name: (tmp_path / name).read_bytes() for name in names}
    async with ReplicatedJournalStore(path, log) as store:
        await store.commit([entry(number) for number in range(2, 200)])
        before = await content(store)
    for name, old in older.items():
        (tmp_path / name).write_bytes(old)
    async with ReplicatedJournalStore(path, log) as store:
        assert store.damage is None
        assert await content(store) == before


async def test_an_empty_log_begins_with_the_journal_that_is_there(
    log: MemoryLog, journal: Journal, tmp_path: Path, entry: MakeEntry
) -> None:
    path = journal.put(tmp_path / "old")
    async with JournalStore(path) as store:
        await store.redact_session("s1")
        before, consumer = await content(store), await store.consumer("critic")
    async with ReplicatedJournalStore(path, log) as store:
        assert await content(store) == before
    async with ReplicatedJournalStore(tmp_path / "new" / "journal.db", log) as store:
        assert await content(store) == before
        assert await store.consumer("critic") == consumer
        assert await store.commit([entry(1000)]) == [Appended(journal.count + 1, True)]


@pytest.mark.parametrize("is_behind", [True, False])
async def test_a_journal_that_the_log_does_not_contain_is_never_overwritten(
    log: MemoryLog, tmp_path: Path, entry: MakeEntry, is_behind: bool
) -> None:
    path = tmp_path / "journal.db"
    async with ReplicatedJournalStore(path, log) as store:
        await store.commit([entry(1)])
    other = MemoryLog()
    if not is_behind:
        async with ReplicatedJournalStore(tmp_path / "other" / "journal.db", other) as store:
            for number in range(20, 30):
                await store.commit([entry(number)])
    with pytest.raises(StoreFailed, match="this journal is not a copy of the log; move it away"):
        await ReplicatedJournalStore(path, other).__aenter__()
    async with ReplicatedJournalStore(path, log) as store:
        assert [one.entry.envelope_id for one in await store.read(limit=9)] == ["id-1"]


async def test_a_journal_that_left_its_log_does_not_come_back(log: MemoryLog, tmp_path: Path, entry: MakeEntry) -> None:
    path = tmp_path / "journal.db"
    async with ReplicatedJournalStore(path, log) as store:
        await store.commit([entry(1)])
    async with JournalStore(path) as store:
        assert await store.commit([entry(2)]) == [Appended(2, True)]
    with pytest.raises(StoreFailed, match="not a copy of the log"):
        await ReplicatedJournalStore(path, log).__aenter__()


async def test_a_log_that_begins_with_a_part_of_a_journal_is_refused(
    log: MemoryLog, journal: Journal, tmp_path: Path
) -> None:
    async with ReplicatedJournalStore(journal.put(tmp_path / "old"), log):
        pass
    del log.records[-3:]
    with pytest.raises(StoreFailed, match="only a part of another machine's journal"):
        await ReplicatedJournalStore(tmp_path / "new" / "journal.db", log).__aenter__()
