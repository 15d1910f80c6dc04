"""A database file that belongs to whoever opened it last, and from which deleted things are gone; others read it."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from local.errors import StoreFenced
from local.services.database import Database
from local.services.sqlite_file import store_failure

T = TypeVar("T")
_OWNERS = "CREATE TABLE IF NOT EXISTS ownership (role TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID"


class OwnedDatabase(Database):
    """The owner alone may `write` and `erase`; others, whose place it has taken because they were taken for dead, get
    `StoreFenced`. `run` is open to all who have the file open. Roles are owned apart from each other."""

    def __init__(self, path: Path, migrations: Sequence[str], role: str = "owner") -> None:
        super().__init__(path, migrations, self._wipe_log)
        self._role, self._token = role, uuid.uuid4().hex
        self._is_log_to_be_wiped = True  # what a killed process had deleted may still be in it

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after its commit."""
        return await self.run(self._owned(work))

    async def write_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, in the commit of whatever else is done within a twentieth of a second."""
        return await self.run_with_others(self._owned(work))

    async def write_short(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, for what takes no longer than a commit does."""
        return await self.run_short(self._owned(work))

    async def write_unsynced(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after a commit that is not on the disk yet, as `run_unsynced` does."""
        return await self.run_unsynced(self._owned(work))

    async def erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` once what it deletes is in no file any more, the write-ahead log included."""

        def wiped(db: sqlite3.Connection) -> T:
            self._is_log_to_be_wiped = True
            return work(db)

        return await self.write(wiped)

    def _wipe_log(self, db: sqlite3.Connection) -> None:
        if self._is_log_to_be_wiped:
            busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._is_log_to_be_wiped = bool(busy)  # by a reader that is slow: the next commit tries again

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_OWNERS)
        connection.execute("INSERT OR REPLACE INTO ownership VALUES (?, ?)", (self._role, self._token))
        connection.execute("COMMIT")
        self._wipe_log(connection)

    def _owned(self, work: Callable[[sqlite3.Connection], T]) -> Callable[[sqlite3.Connection], T]:
        def owned(db: sqlite3.Connection) -> T:
            sql = "SELECT 1 FROM ownership WHERE role = ? AND token = ?"
            if db.execute(sql, (self._role, self._token)).fetchone() is None:
                raise StoreFenced(f"{self._path}: a newer process has opened it; this one may write nothing any more")
            return work(db)

        return owned


class DatabaseReader:
    """Sees what is committed, and can change nothing. For a few rows, which are there before a thread has begun: it
    reads in the caller's thread, and never waits for a lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which sees one state of the file. Raises `StoreFailed`."""
        try:
            if self._connection is None:
                self._connection = self._open()
            self._connection.execute("BEGIN")
            try:
                return work(self._connection)
            finally:
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise store_failure(self._path, error, what="cannot be read: ") from None

    def close(self) -> None:
        """Give up the connection."""
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        uri = f"{self._path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)
        connection.row_factory = sqlite3.Row
        return connection


async def read_apart(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return `work(connection)` as `DatabaseReader` reads, in a thread: for more than a few rows. Raises
    `StoreFailed`."""

    def done() -> T:
        with closing(DatabaseReader(path)) as reader:
            return reader.read(work)

    return await asyncio.to_thread(done)
