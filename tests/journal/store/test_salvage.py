"""What is done about each kind of damage, and what is said about it."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import StoreFailed
from local.journal.recovery import TABLE, UNKNOWN_TAIL, DamageReport, File, Look, Mark, RecoveryCase, Salvage
from local.journal.schema import Appended, Entry, HighWaterMark, create_mark, put_entry
from local.journal.store import JournalStore

Journal = Any  # the class is in conftest.py, which no test can import
Judge = Callable[..., Awaitable[DamageReport | None]]
MakeEntry = Callable[..., Entry]


def with_sqlite(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(sql)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


async def test_the_broken_files_are_kept_as_they_were(journal: Journal, tmp_path: Path, judge: Judge) -> None:
    path = journal.put(tmp_path, wal=journal.files["wal"][:20_000])
    before = contents(tmp_path)
    damage = await judge(path, journal.acknowledged)
    assert damage is not None
    assert damage.moved_to == tmp_path / "journal.db.damaged-1"
    assert before.items() <= contents(damage.moved_to).items()


async def test_a_lost_tail_is_named_and_numbering_goes_on_behind_it(
    journal: Journal, tmp_path: Path, entry: MakeEntry
) -> None:
    path = journal.put(tmp_path, wal=None)
    async with JournalStore(path) as store:
        assert store.damage is not None
        assert store.damage.in_doubt == ((journal.count // 2, journal.count),)
        assert store.damage.salvaged == journal.count // 2 - 1
        assert store.damage.reason.startswith(f"it ends at entry {journal.count // 2 - 1}, but entry {journal.count}")
        assert not store.damage.consumers_in_doubt
        assert await store.commit([entry(1000)]) == [Appended(journal.count + 1, True)]
        assert await store.verify() is None


async def test_a_file_that_is_gone_or_no_database_is_all_in_doubt(
    journal: Journal, tmp_path: Path, entry: MakeEntry
) -> None:
    for name, content in (("gone", None), ("empty", b""), ("nonsense", b"This is no database. " * 500)):
        async with JournalStore(journal.put(tmp_path / name, db=content, wal=None)) as store:
            assert store.damage is not None
            assert (store.damage.in_doubt, store.damage.salvaged) == (((1, journal.count),), 0)
            assert store.damage.consumers_in_doubt
            assert await store.commit([entry(1)]) == [Appended(journal.count + 1, True)]


async def test_a_bad_description_of_an_index_costs_no_entry(
    closed_journal: Journal, tmp_path: Path, judge: Judge
) -> None:
    for name, content in (
        ("word", b"CREATE INDEX entries_by_subject O\xce"),
        ("name", b"CREATE INDEX entri\xf3s_by_sub"),
    ):
        file = bytearray(closed_journal.files["db"])
        found = file.index(b"CREATE INDEX entries_by_subject")
        file[found : found + len(content)] = content
        path = closed_journal.put(tmp_path / name, db=bytes(file))
        damage = await judge(path, closed_journal.acknowledged)
        assert damage is not None
        assert (damage.in_doubt, damage.salvaged) == ((), closed_journal.count)


async def test_a_file_without_a_readable_description_is_all_in_doubt(
    closed_journal: Journal, tmp_path: Path, judge: Judge
) -> None:
    file = closed_journal.files["db"].replace(b"CREATE TABLE entries", b"CREATE T\xc1BLE entries")
    path = closed_journal.put(tmp_path, db=file)
    damage = await judge(path, closed_journal.acknowledged)
    assert damage is not None
    assert damage.in_doubt == ((1, closed_journal.count),)


async def test_without_its_mark_the_numbers_that_may_have_been_given_out_are_skipped(
    journal: Journal, tmp_path: Path, entry: MakeEntry
) -> None:
    async with JournalStore(journal.put(tmp_path, mark=None)) as store:
        assert store.damage is not None
        assert store.damage.reason == "the high-water mark is missing or unreadable"
        assert store.damage.in_doubt == ((journal.count + 1, journal.count + UNKNOWN_TAIL),)
        assert store.damage.salvaged == journal.count
        assert await store.commit([entry(1000)]) == [Appended(journal.count + UNKNOWN_TAIL + 1, True)]


async def test_a_journal_in_the_place_of_another_is_noticed(journal: Journal, tmp_path: Path) -> None:
    path = journal.put(tmp_path)
    with HighWaterMark(tmp_path / "journal.db.mark") as mark:
        other = mark.state._replace(digest=b"another history!")
    create_mark(tmp_path / "journal.db.mark", other)
    async with JournalStore(path) as store:
        assert store.damage is not None
        assert store.damage.reason == "its high-water mark belongs to another journal"


@pytest.mark.parametrize("sql", ["PRAGMA user_version=7", "CREATE TABLE later (x); PRAGMA user_version=3"])
async def test_a_newer_schema_is_refused_and_left_alone(
    journal: Journal, tmp_path: Path, judge: Judge, sql: str
) -> None:
    path = journal.put(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(sql)
    with pytest.raises(StoreFailed, match="newer than this program"):
        await JournalStore(path).__aenter__()
    with_sqlite(path, "PRAGMA user_version=1")
    assert await judge(path, journal.acknowledged) is None


@pytest.mark.parametrize("version", [0, 3])
async def test_a_version_with_a_flipped_bit_is_damage(
    journal: Journal, tmp_path: Path, judge: Judge, version: int
) -> None:
    path = journal.put(tmp_path)
    with_sqlite(path, f"PRAGMA user_version={version}")
    damage = await judge(path, journal.acknowledged)
    assert damage is not None
    assert damage.reason == f"its schema version is {version}; this program knows 1 to 1"
    assert damage.in_doubt == ()


def test_of_every_situation_one_row_of_the_table_holds() -> None:
    for found in product(Salvage, File, Mark, Look):
        assert sum(row.holds(RecoveryCase(*found)) for row in TABLE) == 1, found


async def test_consumers_that_damage_took_get_everything_when_they_register(journal: Journal, tmp_path: Path) -> None:
    path = journal.put(tmp_path)
    with_sqlite(path, "UPDATE consumers SET floor = 50")
    async with JournalStore(path) as store:
        assert store.damage is not None
        assert store.damage.consumers_in_doubt
        assert store.damage.in_doubt == ()
        assert await store.consumer_names() == []
    async with JournalStore(path) as store:
        assert (await store.register("critic", ["query."])).floor == 0


async def test_a_salvage_carries_tombstones_out(journal: Journal, tmp_path: Path) -> None:
    path = journal.put(tmp_path)
    async with JournalStore(path) as store:
        before = await store.read(limit=100, session_id="s1")
        await store.redact_session("s1")
    with closing(sqlite3.connect(path)) as db, db:  # a page of before comes back
        for stored in before:
            put_entry(db, stored)
    (tmp_path / "journal.db.mark").unlink()
    async with JournalStore(path) as store:
        assert store.damage is not None
        assert {stored.redacted for stored in await store.read(limit=100, session_id="s1")} == {True}


async def test_a_second_damage_keeps_the_first_gap_and_reports_only_its_own(journal: Journal, tmp_path: Path) -> None:
    path = journal.put(tmp_path)
    (tmp_path / "journal.db.damaged-2").mkdir()  # by hand, say
    for victim in (10, 20):
        with_sqlite(path, f"UPDATE entries SET sender = 'evil' WHERE number = {victim}")
        async with JournalStore(path) as store:
            assert store.damage is not None
            assert store.damage.in_doubt == ((victim, victim),)
    assert store.damage.moved_to.name == "journal.db.damaged-3"


async def test_a_large_file_is_checked_at_its_end_only_until_it_is_verified(journal: Journal, tmp_path: Path) -> None:
    path = journal.put(tmp_path)
    with_sqlite(path, "UPDATE consumers SET floor = 50")
    async with JournalStore(path, full_check_bytes=0) as store:
        assert store.damage is None
        assert await store.verify() == "journal: row 'critic' of consumers does not match its checksum"
    with_sqlite(path, f"DELETE FROM entries WHERE number = {journal.count - 3}")
    async with JournalStore(path, full_check_bytes=0) as store:
        assert store.damage is not None
        assert store.damage.reason == f"entries {journal.count - 3} to {journal.count - 3} are missing"


async def test_what_is_no_damage_moves_nothing(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: Judge
) -> None:
    path = journal.put(tmp_path)

    def refused(*args: object, **options: object) -> sqlite3.Connection:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("local.core.database.sqlite3.connect", refused)
        with pytest.raises(StoreFailed, match="unable to open database file"):
            await JournalStore(path).__aenter__()
    assert await judge(path, journal.acknowledged) is None
