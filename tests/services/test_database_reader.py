"""Reading beside the owner of a database file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from local.errors import StoreFailed
from local.services.database import Database
from local.services.database_reader import DatabaseReader


def count(db: sqlite3.Connection) -> int:
    (number,) = db.execute("SELECT count(*) FROM notes").fetchone()
    return int(number)


async def test_a_read_sees_what_is_committed_and_waits_for_nobody(tmp_path: Path) -> None:
    path, is_writing, may_end = tmp_path / "notes #1.db", threading.Event(), threading.Event()

    def slow(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO notes VALUES (2)")
        is_writing.set()
        may_end.wait(10)

    async with Database(path, ("CREATE TABLE notes (number); INSERT INTO notes VALUES (1)",)) as database:
        reader = DatabaseReader(path)
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
        reader.read(count)
    reader.close()
    assert not (tmp_path / "none.db").exists()
