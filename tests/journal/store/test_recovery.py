"""Damaged journals and crashes: what is done about each kind, and that nothing is lost without being reported."""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import StoreFailed
from local.journal.recovery import TABLE, UNKNOWN_TAIL, DamageReport, File, Look, Mark, RecoveryCase, Salvage
from local.journal.schema import Appended, Entry, HighWaterMark, JournalState, create_mark, put_entry
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


# Random damage

Files = dict[str, bytes]
CHUNK, CHUNKS, QUICK = 20, 50, 1  # so many cases to a test; the quick ones run by default
MORE = (pytest.mark.thorough, pytest.mark.timeout(600))  # each tries every kind of damage: they are more of the same
SOME_AND_MORE = [*range(QUICK), *(pytest.param(chunk, marks=MORE) for chunk in range(QUICK, CHUNKS))]


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """A folder where a sync costs nothing, if the system has one: thousands of cases need no real disk."""
    shared_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as folder:
        yield Path(folder)


def flip(files: Files, chance: random.Random) -> Files:
    name = chance.choices(list(files), [len(content) for content in files.values()])[0]
    content = bytearray(files[name])
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return files | {name: bytes(content)}


def truncate(files: Files, chance: random.Random) -> Files:
    name = chance.choice(list(files))
    return files | {name: files[name][: chance.randrange(len(files[name]))]}


@pytest.mark.parametrize("chunk", SOME_AND_MORE)
async def test_a_flipped_bit_loses_nothing_in_silence(
    journal: Journal, closed_journal: Journal, memory_folder: Path, judge: Judge, chunk: int
) -> None:
    await hurt_many_times((journal, closed_journal), memory_folder, judge, flip, chunk)


@pytest.mark.parametrize("chunk", SOME_AND_MORE)
async def test_a_truncation_loses_nothing_in_silence(
    journal: Journal, closed_journal: Journal, memory_folder: Path, judge: Judge, chunk: int
) -> None:
    reported = await hurt_many_times((journal, closed_journal), memory_folder, judge, truncate, chunk)
    assert reported > CHUNK // 3


async def test_no_bit_of_how_the_file_is_to_be_read_makes_it_unusable(
    closed_journal: Journal, memory_folder: Path, judge: Judge
) -> None:
    for byte, bits in {16: [0], 17: [4], 18: [0, 1, 2], 19: [0, 1, 7], 20: [3], 21: [6], 23: [5]}.items():
        for bit in bits:
            content = bytearray(closed_journal.files["db"])
            content[byte] ^= 1 << bit
            path = closed_journal.put(memory_folder / f"{byte}.{bit}", db=bytes(content))
            await judge(path, closed_journal.acknowledged)


async def hurt_many_times(
    journals: Sequence[Journal], folder: Path, judge: Judge, hurt: Callable[[Files, random.Random], Files], chunk: int
) -> int:
    reported = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        journal = journals[seed % len(journals)]
        path = journal.put(folder / str(seed), **hurt(journal.files, random.Random(seed)))
        try:
            reported += await judge(path, journal.acknowledged) is not None
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(path.parent)
    return reported


# Crashes


class Crash(BaseException):
    """The process ends here."""


def crash_at(patched: pytest.MonkeyPatch, step: int) -> None:
    """Let the process end instead of its `step`th rename."""
    replace, left = Path.replace, [step]

    def counted(source: Path, target: Path) -> Path:
        if left[0] == 0:
            raise Crash
        left[0] -= 1
        return replace(source, target)

    patched.setattr(Path, "replace", counted)


async def test_a_crash_at_any_commit_loses_nothing_and_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: MakeEntry
) -> None:
    instants: list[tuple[Path, int]] = []
    path = tmp_path / "live" / "journal.db"
    advance = HighWaterMark.advance
    acknowledged = 0

    def keep_what_a_crash_would_leave() -> None:
        case = tmp_path / str(len(instants))
        shutil.copytree(path.parent, case, ignore=shutil.ignore_patterns("*-shm"))
        instants.append((case / path.name, acknowledged))

    def watched(mark: HighWaterMark, state: JournalState) -> None:
        keep_what_a_crash_would_leave()
        advance(mark, state)
        keep_what_a_crash_would_leave()

    monkeypatch.setattr(HighWaterMark, "advance", watched)
    async with JournalStore(path) as store:
        await store.register("critic", ["query."], floor=0)
        for number in range(1, 8):
            await store.commit([entry(number)])
            acknowledged = number
    for left, known in instants:
        async with JournalStore(left) as store:
            assert store.damage is None
            found = [stored.number for stored in await store.read(limit=100)]
            assert found[:known] == list(range(1, known + 1))
            assert len(found) <= known + 1


async def test_a_crash_while_a_journal_is_made_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: MakeEntry
) -> None:
    for step in range(20):
        case = tmp_path / str(step)
        with monkeypatch.context() as patched:
            crash_at(patched, step)
            try:
                await JournalStore(case / "journal.db").__aenter__()
            except Crash:
                pass
            else:
                break
        async with JournalStore(case / "journal.db") as store:
            assert store.damage is None
            assert await store.commit([entry(1)]) == [Appended(1, True)]
    assert step > 1


async def test_a_crash_during_a_salvage_is_taken_up_where_it_ended(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: Judge
) -> None:
    for step in range(20):
        path = journal.put(tmp_path / str(step), wal=journal.files["wal"][:20_000])
        with monkeypatch.context() as patched:
            crash_at(patched, step)
            try:
                await JournalStore(path).__aenter__()
            except Crash:
                pass
            else:
                break
        damage = await judge(path, journal.acknowledged)
        assert damage is not None
        assert damage.in_doubt[-1][-1] == journal.count
    assert step > 5
