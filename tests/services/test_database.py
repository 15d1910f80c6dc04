"""One SQLite file, one thread that owns it, and group commit."""

import asyncio
import math
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import local.core.database
from local.core.database import Database
from local.core.errors import StoreFailed, StoreFull, StoreGone, StoreReplaced

Until = Callable[[Callable[[], object]], Awaitable[None]]
OPEN_FILES = Path("/proc/self/fd")
NORMAL, FULL = 1, 2  # as PRAGMA synchronous tells them
MIGRATIONS = ("CREATE TABLE notes (text TEXT NOT NULL UNIQUE)",)


def insert(text: str) -> Callable[[sqlite3.Connection], object]:
    return lambda db: db.execute("INSERT INTO notes VALUES (?)", (text,)) and text


def all_notes(db: sqlite3.Connection) -> list[str]:
    return [row["text"] for row in db.execute("SELECT text FROM notes ORDER BY rowid")]


def write_nonsense(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"This is no database. " * 500)


def damage_every_page_after_the_schema(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * len(content[8192:])
    path.write_bytes(content)


def move(path: Path, name: str) -> None:
    path.rename(path.with_name(name))


def replace(path: Path) -> None:
    move(path, "old.db")
    path.write_bytes(b"")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "down" / "notes.db"


async def test_what_was_written_is_there_after_reopening(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        assert await database.run(insert("one")) == "one"
    async with Database(path, MIGRATIONS) as database:
        assert await database.run(all_notes) == ["one"]


async def test_jobs_are_done_in_the_order_of_asking(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await asyncio.gather(*(database.run(insert(str(number))) for number in range(500)))
        assert await database.run(all_notes) == [str(number) for number in range(500)]


async def test_what_waits_together_is_committed_together(path: Path) -> None:
    commits: list[str] = []
    may_go_on = threading.Event()

    def hold(db: sqlite3.Connection) -> None:
        db.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
        may_go_on.wait(30)

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


async def test_the_awaiter_goes_on_after_the_commit(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("one"))
        other = sqlite3.connect(path)
        assert other.execute("SELECT text FROM notes").fetchall() == [("one",)]
        other.close()


async def test_a_job_that_raises_leaves_no_trace_and_disturbs_no_other(path: Path) -> None:
    def fails(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO notes VALUES ('half')")
        raise ZeroDivisionError("oops")

    async with Database(path, MIGRATIONS) as database:
        before, failed, after = await asyncio.gather(
            database.run(insert("a")), database.run(fails), database.run(insert("b")), return_exceptions=True
        )
        assert isinstance(failed, ZeroDivisionError)
        assert (before, after) == ("a", "b")
        assert await database.run(all_notes) == ["a", "b"]


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="the system does not tell which files are open")
async def test_what_a_job_may_have_to_undo_lies_in_no_file_beside_the_database(path: Path) -> None:
    def change_much(db: sqlite3.Connection) -> set[str]:
        db.execute("UPDATE notes SET text = text || ' changed'")
        return {str(each.resolve()) for each in OPEN_FILES.iterdir()}

    async with Database(path, MIGRATIONS) as database:
        await asyncio.gather(*(database.run(insert(f"{number} " + "x" * 1000)) for number in range(200)))
        opened = await database.run(change_much)
    assert {name for name in opened if "etilqs" in name} == set()  # as SQLite calls them


async def test_what_sqlite_reports_is_a_store_failure_that_names_the_file(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        results = await asyncio.gather(
            database.run(insert("a")), database.run(insert("a")), database.run(insert("b")), return_exceptions=True
        )
        assert isinstance(results[1], StoreFailed)
        assert str(results[1]) == f"{path}: UNIQUE constraint failed: notes.text"
        assert await database.run(all_notes) == ["a", "b"]


async def test_a_commit_that_fails_fails_everybody_and_the_next_one_works(path: Path) -> None:
    def end_the_transaction(db: sqlite3.Connection) -> None:
        db.execute("ROLLBACK")

    async with Database(path, MIGRATIONS) as database:
        lost, broken = await asyncio.gather(
            database.run(insert("a")), database.run(end_the_transaction), return_exceptions=True
        )
        assert isinstance(broken, StoreFailed)
        assert lost == "a" or isinstance(lost, StoreFailed)  # whether the two met in one group is a matter of luck
        await database.run(insert("b"))
        assert (await database.run(all_notes))[-1] == "b"


async def test_what_there_is_no_room_for_takes_nothing_else_along(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("before"))
        await database.run(lambda db: db.execute("PRAGMA max_page_count=3").fetchall())
        large = [database.run_short(insert(letter * 50_000)) for letter in "ab"]  # on the loop: all in one group
        small = [database.run_short(all_notes), database.run_short(insert("after"))]
        *refused, read, written = await asyncio.gather(*large, *small, return_exceptions=True)
        assert [type(error) for error in refused] == [StoreFull] * 2
        assert (read, written) == (["before"], "after")
        assert await database.run(all_notes) == ["before", "after"]


async def test_a_cancelled_awaiter_does_not_undo_the_work(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        waiting = asyncio.create_task(database.run(insert("a")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await database.run(all_notes) == ["a"]


async def test_what_was_asked_before_the_end_is_done_before_the_end(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        jobs = [asyncio.create_task(database.run(insert(str(number)))) for number in range(50)]
        await asyncio.sleep(0)
    await asyncio.gather(*jobs)
    async with Database(path, MIGRATIONS) as database:
        assert len(await database.run(all_notes)) == 50


async def test_after_the_end_a_job_is_refused_and_does_not_hang(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        pass
    with pytest.raises(StoreFailed, match="is closed"):
        await database.run(all_notes)


@pytest.fixture
def somebodys_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Another connection to the file, in the middle of a commit as a frozen process may be; others soon say that."""
    monkeypatch.setattr("local.core.database.LOCKED_SECONDS", 0.01)
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        yield connection


async def test_opening_waits_for_a_process_in_the_middle_of_a_commit_and_says_so(
    path: Path, somebodys_commit: sqlite3.Connection, caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    opening = asyncio.create_task(Database(path, MIGRATIONS).__aenter__())
    await until(lambda: f"opening waits: {path}: a process is in the middle of a commit" in caplog.text)
    assert not opening.done()
    somebodys_commit.execute("COMMIT")
    database = await asyncio.wait_for(opening, 30)
    assert await database.run(insert("one")) == "one"
    await database.__aexit__(None, None, None)


async def test_an_opening_that_waits_can_be_cancelled(
    path: Path, somebodys_commit: sqlite3.Connection, caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    opening = asyncio.create_task(Database(path, MIGRATIONS).__aenter__())
    await until(lambda: "opening waits" in caplog.text)
    opening.cancel()
    await asyncio.wait([opening], timeout=30)
    assert opening.cancelled()
    assert not [thread for thread in threading.enumerate() if "notes.db" in thread.name]


async def test_an_older_file_gets_the_migrations_it_lacks(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("old"))
    newer = (*MIGRATIONS, "ALTER TABLE notes ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
    async with Database(path, newer) as database:
        assert await database.run(lambda db: tuple(db.execute("SELECT * FROM notes").fetchone())) == ("old", "red")


async def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    broken = (*MIGRATIONS, "CREATE TABLE more (x); CREATE TABLE notes (y)")
    async with Database(path, MIGRATIONS):
        pass
    with pytest.raises(StoreFailed, match="cannot be opened: table notes already exists"):
        await Database(path, broken).__aenter__()
    async with Database(path, MIGRATIONS) as database:
        tables = await database.run(lambda db: db.execute("SELECT name FROM sqlite_master").fetchall())
        assert "more" not in {row["name"] for row in tables}


async def test_a_newer_schema_is_refused_in_words(path: Path) -> None:
    async with Database(path, (*MIGRATIONS, "CREATE TABLE more (x)")):
        pass
    with pytest.raises(StoreFailed) as caught:
        await Database(path, MIGRATIONS).__aenter__()
    assert str(caught.value) == f"{path}: cannot be opened: schema version 2 is newer than this program's 1"


async def test_a_file_that_is_no_database_is_refused_in_words(path: Path) -> None:
    write_nonsense(path)
    with pytest.raises(StoreFailed, match="cannot be opened: file is not a database"):
        await Database(path, MIGRATIONS).__aenter__()


async def test_damage_that_is_met_later_is_a_store_failure_too(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await asyncio.gather(*(database.run(insert(f"{number:0500}")) for number in range(200)))
    damage_every_page_after_the_schema(path)
    async with Database(path, MIGRATIONS) as database:
        with pytest.raises(StoreFailed, match="malformed"):
            await database.run(all_notes)


async def test_a_folder_that_cannot_be_made_is_a_store_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreFailed, match="cannot be opened"):
        await Database(tmp_path / "file" / "notes.db", MIGRATIONS).__aenter__()


async def test_what_nobody_waits_for_is_stored_with_the_next_job(tmp_path: Path) -> None:
    async with Database(tmp_path / "x.db", ["CREATE TABLE t (a)"]) as database:
        noted = database.note(lambda db: db.execute("INSERT INTO t VALUES (1)"))
        assert await database.run(lambda db: db.execute("SELECT count(*) FROM t").fetchone()[0]) == 1
        await noted


async def test_what_was_noted_last_is_stored_before_the_file_is_closed(tmp_path: Path) -> None:
    async with Database(tmp_path / "x.db", ["CREATE TABLE t (a)"]) as database:
        database.note(lambda db: db.execute("INSERT INTO t VALUES (1)"))
    async with Database(tmp_path / "x.db", ["CREATE TABLE t (a)"]) as database:
        assert await database.run(lambda db: db.execute("SELECT count(*) FROM t").fetchone()[0]) == 1


async def test_a_note_that_fails_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Database(tmp_path / "x.db", ["CREATE TABLE t (a)"]) as database:
        noted = database.note(lambda db: db.execute("INSERT INTO nowhere VALUES (1)"))
        await asyncio.wait([noted])
    assert "no such table: nowhere" in caplog.text


def synchronous(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA synchronous").fetchone()[0])


async def test_an_unsynced_commit_is_made_but_not_waited_for_and_the_next_one_is(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        assert await database.run_unsynced(insert("one")) == "one"
        with closing(sqlite3.connect(path)) as other:  # what a process that comes after a kill -9 finds
            assert [text for (text,) in other.execute("SELECT * FROM notes")] == ["one"]
        assert await database.run_unsynced(synchronous) == NORMAL
        assert await asyncio.gather(database.run_unsynced(synchronous), database.run_short(synchronous)) == [FULL, FULL]


async def test_an_unsynced_commit_that_fails_leaves_no_trace(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("one"))
        with pytest.raises(StoreFailed, match="UNIQUE"):
            await database.run_unsynced(insert("one"))
        assert await database.run(all_notes) == ["one"]


async def test_a_file_that_was_moved_away_takes_nothing_until_it_is_back(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("one"))
        move(path.parent, "elsewhere")
        with pytest.raises(StoreGone, match=r"notes\.db is gone"):
            await database.run(insert("two"))
        with pytest.raises(StoreGone):
            await database.run_short(insert("three"))
        move(path.parent.with_name("elsewhere"), path.parent.name)
        assert await database.run(all_notes) == ["one"]
        await database.run(insert("four"))


async def test_a_file_that_was_replaced_is_left_to_whoever_opens_it_next(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        await database.run(insert("one"))
        replace(path)
        with pytest.raises(StoreReplaced, match="was replaced"):
            await database.run(insert("two"))


def thread_of(db: sqlite3.Connection) -> int:
    return threading.get_ident()


async def test_what_is_short_is_committed_on_the_loop_unless_commits_are_slow(
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


async def test_what_is_short_is_done_after_what_was_noted_before(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        database.note(insert("one"))
        slow = database.run(insert("two"))
        await asyncio.gather(slow, database.run_short(insert("three")))
        assert await database.run_short(all_notes) == ["one", "two", "three"]


async def test_another_process_in_the_way_of_what_is_short_does_not_hold_up_the_loop(path: Path) -> None:
    async with Database(path, MIGRATIONS) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            stored = asyncio.create_task(database.run_short(insert("one")))
            turns_of_the_loop = 0
            while turns_of_the_loop < 50:
                await asyncio.sleep(0)
                turns_of_the_loop += 1
            assert not stored.done()
            other.execute("COMMIT")
        assert await stored == "one"
