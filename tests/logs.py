"""A journal's log in memory, with one fault at a time, one in a shared file, and the two kinds of stores."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from local.core.errors import StoreFenced, StoreUnwritable
from local.journal.replicated import ReplicatedJournalStore
from local.journal.store import JournalStore


class MemoryLog:
    """It outlives the stores that use it, as an engine on other machines does."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.is_away = False
        self.was_asked_while_away = asyncio.Event()
        self.loses_answers = False
        self.has_lost_an_answer = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        self._answer()
        yield len(self.records)

    async def append(self, record: bytes, after: int) -> int:
        self._answer()
        if after == len(self.records):
            self.records.append(record)
        if self.records[after] != record:
            raise StoreFenced(f"position {after + 1} is another owner's")
        if self.loses_answers:
            self.has_lost_an_answer.set()
            raise StoreUnwritable("the answer was lost")
        return after + 1

    async def read(self, after: int) -> AsyncIterator[tuple[int, bytes]]:
        self._answer()
        for position, record in enumerate(self.records[after:], after + 1):
            yield position, record

    def _answer(self) -> None:
        if self.is_away:
            self.was_asked_while_away.set()
            raise StoreUnwritable("the log has no leader")


OpenStore = Callable[..., JournalStore]
ONE_MACHINE, LOG = "one machine", "log"


def make_open_store(kind: str) -> OpenStore:
    """Return what makes the store of the journal at a path: on one machine, or over a log that stays in memory."""
    logs = defaultdict[Path, MemoryLog](MemoryLog)

    def replicated(path: Path, **more: Any) -> JournalStore:
        return ReplicatedJournalStore(path, logs[path], **more)

    return JournalStore if kind == ONE_MACHINE else replicated


class SharedFileLog:
    """A second engine: a table that every owner reaches, as in a database server. Its one statement appends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._connected() as db:
            db.execute("CREATE TABLE IF NOT EXISTS records (position INTEGER PRIMARY KEY, record BLOB NOT NULL)")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        with self._connected() as db:
            last = self._last(db)
        yield last

    async def append(self, record: bytes, after: int) -> int:
        with self._connected() as db:
            last = "(SELECT COALESCE(MAX(position), 0) FROM records)"
            db.execute(f"INSERT INTO records SELECT ?, ? WHERE {last} = ?", (after + 1, record, after))
            found = db.execute("SELECT record FROM records WHERE position = ?", (after + 1,)).fetchone()
        if found != (record,):
            raise StoreFenced(f"position {after + 1} is another owner's")
        return after + 1

    async def read(self, after: int) -> AsyncIterator[tuple[int, bytes]]:
        with self._connected() as db:
            last = self._last(db)
            found = db.execute("SELECT position, record FROM records WHERE position BETWEEN ? AND ?", (after + 1, last))
            for position, record in found:
                yield position, record

    def _connected(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self._path, isolation_level=None))

    def _last(self, db: sqlite3.Connection) -> int:
        return int(db.execute("SELECT COALESCE(MAX(position), 0) FROM records").fetchone()[0])
