"""Reading beside the owner of a database file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from local.core.database import Database, DatabaseReader
from local.core.errors import StoreFailed


async def test_a_read_sees_what_is_committed_changes_nothing_and_waits_for_nobody(tmp_path: Path) -> None:
    is_writing, may_end = threading.Event(), threading.Event()

    def slow(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO notes VALUES ('two')")
        is_writing.set()
        may_end.wait(30)

    def count(db: sqlite3.Connection) -> int:
        return len(db.execute("SELECT text FROM notes").fetchall())

    path = tmp_path / "notes #1.db"
    async with Database(path, ("CREATE TABLE notes (text)",)) as database:
        reader = DatabaseReader(path)
        await database.run(lambda db: db.execute("INSERT INTO notes VALUES ('one')"))
        writing = asyncio.create_task(database.run(slow))
        await asyncio.to_thread(is_writing.wait, 10)
        assert reader.read(count) == 1
        may_end.set()
        await writing
        assert reader.read(count) == 2
        with pytest.raises(StoreFailed, match="readonly"):
            reader.read(lambda db: db.execute("DELETE FROM notes"))
        reader.close()


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    reader = DatabaseReader(tmp_path / "none.db")
    with pytest.raises(StoreFailed):
        reader.read(lambda db: db.execute("SELECT 1"))
    reader.close()
    assert list(tmp_path.iterdir()) == []
