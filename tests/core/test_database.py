"""A SQLite file with group commit; one that belongs to its last opener and wipes deleted text; a reader."""

# ruff: noqa: ASYNC240 - the files of these tests are small

from __future__ import annotations

import asyncio
import math
import sqlite3
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import local.core.database
from local.core.database import Database, DatabaseReader, OwnedDatabase, unwritable
from local.core.errors import StoreFailed, StoreFenced, StoreFull, StoreGone, StoreReplaced

Until = Callable[[Callable[[], object]], Awaitable[None]]
NORMAL, FULL = 1, 2  # values of PRAGMA synchronous
MIGRATIONS = ("CREATE TABLE notes (text TEXT NOT NULL UNIQUE)",)
SECRET = "a secret " * 1000


def insert(text: str) -> Callable[[sqlite3.Connection], object]:
    return lambda db: db.execute("INSERT INTO notes VALUES (?)", (text,)) and text


def delete(db: sqlite3.Connection) -> object:
    return db.execute("DELETE FROM notes")


def all_notes(db: sqlite3.Connection) -> list[str]:
    return [row["text"] for row in db.execute("SELECT text FROM notes ORDER BY rowid")]


def thread_of(db: sqlite3.Connection) -> int:
    return threading.get_ident()


def synchronous(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA synchronous").fetchone()[0])


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "down" / "notes.db"


# Jobs and commits


async def test_jobs_are_done_in_order_and_are_there_after_reopening(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        assert await database.run(insert("one")) == "one"
        with closing(sqlite3.connect(path)) as other:  # the commit is done when `run` returns
            assert other.execute("SELECT text FROM notes").fetchall() == [("one",)]
        await asyncio.gather(*(database.run(insert(str(number))) for number in range(200)))
    async with Database(path, MIGRATIONS) as database:
        assert await database.run(all_notes) == ["one", *(str(number) for number in range(200))]


async def test_jobs_that_wait_together_are_committed_together(path: Path) -> None:
    commits: list[str] = []
    may_go_on = threading.Event()

    def hold(db: sqlite3.Connection) -> None:
        db.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
        may_go_on.wait(90)

    async with Database(path, MIGRATIONS) as database:
        jobs: list[asyncio.Task[object]] = [asyncio.create_task(database.run(hold))]
        await asyncio.sleep(0)
        jobs += [asyncio.create_task(database.run(insert(str(number)))) for number in range(100)]
        for _ in range(10):  # until all of them wait
            await asyncio.sleep(0)
        may_go_on.set()
        await asyncio.gather(*jobs)
    assert 1 <= len(commits) <= 2


async def test_a_cursor_that_a_job_returns_is_closed_in_the_owning_thread(path: Path) -> None:
    closed_in: list[str] = []

    class Watched(sqlite3.Cursor):
        def close(self) -> None:
            closed_in.append(threading.current_thread().name)
            super().close()

    async with Database(path, MIGRATIONS) as database:
        await database.run(lambda db: db.cursor(Watched).execute("INSERT INTO notes VALUES ('one')"))
    assert closed_in == ["database notes.db"]


async def test_a_job_that_fails_leaves_no_trace_and_disturbs_no_other(path: Path) -> None:
    def fails(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO notes VALUES ('half')")
        raise ZeroDivisionError("oops")

    async with Database(path, MIGRATIONS) as database:
        jobs = (insert("a"), fails, insert("a"), insert("b"))
        before, failed, doubled, after = await asyncio.gather(*map(database.run, jobs), return_exceptions=True)
        assert isinstance(failed, ZeroDivisionError)
        assert isinstance(doubled, StoreFailed) and str(doubled) == f"{path}: UNIQUE constraint failed: notes.text"
        assert (before, after) == ("a", "b")
        assert await database.run(all_notes) == ["a", "b"]


async def test_a_commit_that_fails_fails_its_jobs_and_the_next_one_works(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        lost, broken = await asyncio.gather(
            database.run(insert("a")), database.run(lambda db: db.execute("ROLLBACK")), return_exceptions=True
        )
        assert isinstance(broken, StoreFailed)
        assert lost == "a" or isinstance(lost, StoreFailed)  # both may be in one commit
        await database.run(insert("b"))
        assert (await database.run(all_notes))[-1] == "b"


async def test_a_job_without_room_on_the_disk_takes_no_other_along(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("before"))
        await database.run(lambda db: db.execute("PRAGMA max_page_count=3").fetchall())
        large = [database.run_short(insert(letter * 50_000)) for letter in "ab"]  # on the loop: all in one group
        small = [database.run_short(all_notes), database.run_short(insert("after"))]
        *refused, read, written = await asyncio.gather(*large, *small, return_exceptions=True)
        assert [type(error) for error in refused] == [StoreFull] * 2
        assert (read, written) == (["before"], "after")


async def test_a_file_that_cannot_be_written_is_reported_until_it_can_although_nothing_is_to_be_stored(
    path: Path, until: Until
) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("before"))
        await database.run(lambda db: db.execute("PRAGMA max_page_count=3").fetchall())
        with pytest.raises(StoreFull):
            await database.run(insert("a" * 50_000))
        assert str(path) in unwritable()
        assert await database.run(all_notes) == ["before"]  # reading needs no room
        await until(lambda: unwritable() == "")


@pytest.mark.parametrize("of", ["file", "folder"])
async def test_an_immutable_file_is_waited_for(path: Path, until: Until, of: str) -> None:
    immutable = path if of == "file" else path.parent
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("a"))
    if subprocess.run(["chattr", "+i", immutable], capture_output=True).returncode:  # noqa: ASYNC221 - a moment
        pytest.skip("making a file immutable takes the rights of the system's owner, and a file system that can")
    try:
        opening = asyncio.create_task(Database(path, MIGRATIONS).__aenter__())
        done, _ = await asyncio.wait({opening}, timeout=0.2)
        assert not done
    finally:
        subprocess.run(["chattr", "-i", immutable], check=True)  # noqa: ASYNC221 - a moment
    database = await opening
    assert await database.run(insert("b")) == "b"
    await database.__aexit__()


async def test_a_cancelled_awaiter_does_not_undo_the_work(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        waiting = asyncio.create_task(database.run(insert("a")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await database.run(all_notes) == ["a"]


async def test_closing_does_what_was_asked_before_and_refuses_what_comes_later(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        job = asyncio.create_task(database.run(insert("one")))
        await asyncio.sleep(0)
        database.note(insert("two"))
    await job
    with pytest.raises(StoreFailed, match="is closed"):
        await database.run(all_notes)
    async with Database(path, MIGRATIONS) as database:
        assert await database.run(all_notes) == ["one", "two"]


async def test_a_note_is_stored_with_the_next_job_and_its_failure_is_logged(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Database(path, MIGRATIONS) as database:
        database.note(insert("one"))
        slow = database.run(insert("two"))
        await asyncio.gather(slow, database.run_short(insert("three")))
        assert await database.run_short(all_notes) == ["one", "two", "three"]
        await asyncio.wait([database.note(lambda db: db.execute("INSERT INTO nowhere VALUES (1)"))])
    assert "no such table: nowhere" in caplog.text


async def test_an_unsynced_commit_survives_the_process_and_is_synced_by_the_next_one(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        assert await database.run_unsynced(insert("one")) == "one"
        with closing(sqlite3.connect(path)) as other:  # as a process sees it that comes after a kill -9
            assert [text for (text,) in other.execute("SELECT * FROM notes")] == ["one"]
        with pytest.raises(StoreFailed, match="UNIQUE"):
            await database.run_unsynced(insert("one"))
        assert await database.run_unsynced(synchronous) == NORMAL
        assert await asyncio.gather(database.run_unsynced(synchronous), database.run_short(synchronous)) == [FULL, FULL]


async def test_a_short_job_is_committed_on_the_loop_unless_commits_are_slow(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local.core.database, "QUICK_SECONDS", math.inf)
    async with Database(path, MIGRATIONS) as database:
        here = threading.get_ident()
        assert await database.run_short(thread_of) == here
        assert await database.run(thread_of) != here
        assert here not in await asyncio.gather(database.run_short(thread_of), database.run(thread_of))
        monkeypatch.setattr(local.core.database, "QUICK_SECONDS", 0.0)
        assert await database.run_short(thread_of) != here


async def test_another_process_in_the_way_of_a_short_job_does_not_hold_up_the_loop(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            stored = asyncio.create_task(database.run_short(insert("one")))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not stored.done()
            other.execute("COMMIT")
        assert await stored == "one"


# Opening, and what becomes of the file


@pytest.fixture
def unfinished_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Another connection in the middle of a commit, as of a frozen process."""
    monkeypatch.setattr("local.core.database.LOCKED_SECONDS", 0.01)
    monkeypatch.setattr("local.core.database.UNWRITABLE_SECONDS", 0.02)
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_opening_waits_for_another_commit_says_so_and_can_be_cancelled(
    path: Path,
    unfinished_commit: sqlite3.Connection,
    caplog: pytest.LogCaptureFixture,
    until: Until,
    is_cancelled: bool,
) -> None:
    opening = asyncio.create_task(Database(path, MIGRATIONS).__aenter__())
    await until(lambda: f"opening waits: {path}: a process is in the middle of a commit" in caplog.text)
    if is_cancelled:
        opening.cancel()
        await asyncio.wait([opening], timeout=90)
        assert opening.cancelled()
    else:
        assert not opening.done()
        unfinished_commit.execute("COMMIT")
        database = await asyncio.wait_for(opening, 90)
        assert await database.run(insert("one")) == "one"
        await database.__aexit__(None, None, None)
    assert not [thread for thread in threading.enumerate() if "notes.db" in thread.name]


async def test_an_older_file_is_migrated_and_a_newer_one_refused(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("old"))
    with pytest.raises(StoreFailed, match="cannot be opened: table notes already exists"):
        await Database(path, (*MIGRATIONS, "CREATE TABLE more (x); CREATE TABLE notes (y)")).__aenter__()
    newer = (*MIGRATIONS, "ALTER TABLE notes ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
    async with Database(path, newer) as database:
        assert await database.run(lambda db: tuple(db.execute("SELECT * FROM notes").fetchone())) == ("old", "red")
        tables = await database.run(lambda db: db.execute("SELECT name FROM sqlite_master").fetchall())
        assert "more" not in {row["name"] for row in tables}  # the failed migration changed nothing
    with pytest.raises(StoreFailed) as caught:
        await Database(path, MIGRATIONS).__aenter__()
    assert str(caught.value) == f"{path}: cannot be opened: schema version 2 is newer than this program's 1"


async def test_a_file_that_is_no_database_or_is_damaged_is_a_store_failure(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await asyncio.gather(*(database.run(insert(f"{number:0500}")) for number in range(50)))
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    async with Database(path, MIGRATIONS) as database:
        with pytest.raises(StoreFailed, match="malformed"):
            await database.run(all_notes)
    path.write_bytes(b"This is no database. " * 500)
    with pytest.raises(StoreFailed, match="cannot be opened: file is not a database"):
        await Database(path, MIGRATIONS).__aenter__()
    with pytest.raises(StoreFailed, match="cannot be opened"):
        await Database(path / "notes.db", MIGRATIONS).__aenter__()


async def test_a_file_that_was_moved_away_takes_nothing_until_it_is_back(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("one"))
        elsewhere = path.parent.rename(path.parent.with_name("elsewhere"))
        for run in (database.run, database.run_short):
            with pytest.raises(StoreGone, match=r"notes\.db is gone"):
                await run(insert("two"))
        elsewhere.rename(path.parent)
        await database.run(insert("three"))
        path.rename(path.with_name("old.db"))
        path.write_bytes(b"")
        with pytest.raises(StoreReplaced, match="was replaced"):
            await database.run(insert("four"))


# Owned by the process that opened it last


async def test_the_process_that_was_replaced_reads_and_neither_writes_nor_erases(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS) as old, OwnedDatabase(path, MIGRATIONS) as new:
        await new.write(insert("one"))
        for attempt in (old.write(insert("two")), old.erase(delete)):
            with pytest.raises(StoreFenced, match="a newer process has opened it"):
                await attempt
        assert await old.run(all_notes) == ["one"]
        async with OwnedDatabase(path, MIGRATIONS, "another role") as other:
            await other.write(insert("two"))
            await new.write(insert("three"))


async def test_an_erased_text_is_in_no_file_once_no_reader_needs_it(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS) as database:
        await database.run(lambda db: db.execute("PRAGMA busy_timeout=1"))
        await database.write(insert(SECRET))
        assert b"a secret" in contents(path.parent)
        await database.erase(delete)
        assert b"a secret" not in contents(path.parent)
        await database.write(insert(SECRET))
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM notes").fetchall()
            await database.erase(delete)
            assert b"a secret" in contents(path.parent)
        await database.write(delete)
        assert b"a secret" not in contents(path.parent)


async def test_a_file_that_cannot_be_taken_over_is_closed_again(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("DROP TABLE ownership; CREATE VIEW ownership AS SELECT 1")
    with pytest.raises(StoreFailed, match="ownership"):
        await OwnedDatabase(path, MIGRATIONS).__aenter__()
    assert not [thread for thread in threading.enumerate() if "notes.db" in thread.name]


# Read by another process


async def test_a_reader_sees_what_is_committed_changes_nothing_and_waits_for_nobody(tmp_path: Path) -> None:
    is_writing, may_end = threading.Event(), threading.Event()

    def slow(db: sqlite3.Connection) -> None:
        insert("two")(db)
        is_writing.set()
        may_end.wait(90)

    path = tmp_path / "notes #1.db"
    with closing(DatabaseReader(path)) as reader, pytest.raises(StoreFailed):
        reader.read(all_notes)
    assert list(tmp_path.iterdir()) == []
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("one"))
        writing = asyncio.create_task(database.run(slow))
        await asyncio.to_thread(is_writing.wait, 10)
        with closing(DatabaseReader(path)) as reader:
            assert reader.read(all_notes) == ["one"]
            may_end.set()
            await writing
            assert reader.read(all_notes) == ["one", "two"]
            with pytest.raises(StoreFailed, match="readonly"):
                reader.read(delete)
