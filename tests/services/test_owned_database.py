"""A file that belongs to whoever opened it last, and from which deleted things are gone for good."""

import sqlite3
import threading
from pathlib import Path

import pytest

from local.core.database import OwnedDatabase
from local.core.errors import StoreFailed, StoreFenced

MIGRATIONS = ("CREATE TABLE notes (text TEXT NOT NULL)",)
SECRET = "a secret " * 1000


def insert(db: sqlite3.Connection) -> object:
    return db.execute("INSERT INTO notes VALUES (?)", (SECRET,))


def delete(db: sqlite3.Connection) -> object:
    return db.execute("DELETE FROM notes")


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "notes.db"


async def test_whoever_opened_it_before_may_read_but_neither_write_nor_erase(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS) as old, OwnedDatabase(path, MIGRATIONS) as new:
        await new.write(insert)
        for attempt in (old.write(insert), old.erase(delete)):
            with pytest.raises(StoreFenced, match="a newer process has opened it"):
                await attempt
        assert await old.run(lambda db: db.execute("SELECT count(*) FROM notes").fetchone()[0]) == 1


async def test_roles_are_owned_apart_from_each_other(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS, "A") as first, OwnedDatabase(path, MIGRATIONS, "B") as second:
        await first.write(insert)
        await second.write(insert)


async def test_what_is_erased_is_in_no_file_any_more(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS) as database:
        await database.write(insert)
        assert b"a secret" in contents(path.parent)
        await database.erase(delete)
        assert b"a secret" not in contents(path.parent)


async def test_what_a_slow_reader_keeps_in_the_log_goes_with_the_next_commit(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS) as database:
        await database.run(lambda db: db.execute("PRAGMA busy_timeout=1"))
        await database.write(insert)
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM notes").fetchall()
        await database.erase(delete)
        assert b"a secret" in contents(path.parent)
        reader.close()
        await database.write(delete)
        assert b"a secret" not in contents(path.parent)


async def test_one_that_cannot_be_taken_over_is_closed_again(path: Path) -> None:
    async with OwnedDatabase(path, MIGRATIONS):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE ownership")
        connection.execute("CREATE VIEW ownership AS SELECT 1")
    connection.close()
    database = OwnedDatabase(path, MIGRATIONS)
    with pytest.raises(StoreFailed, match="ownership"):
        await database.__aenter__()
    assert not [thread for thread in threading.enumerate() if "notes.db" in thread.name]
