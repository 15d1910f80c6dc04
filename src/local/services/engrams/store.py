"""The truth about the engrams: one SQLite file, written by its owner alone."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from local.errors import StoreFenced
from local.services.database import Database
from local.services.engrams.reader import Reader
from local.services.engrams.schema import FILE_NAME, MIGRATIONS

T = TypeVar("T")


class EngramStore:
    """Use as `async with`. Whoever opened the file last is its owner: nobody else may write.

    Raises `StoreFailed`, `StoreFull` where the disk is full, and `StoreFenced` in a process that is not the owner.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._database = Database(self._path, MIGRATIONS, self._wipe_log)
        self._token = uuid.uuid4().hex
        self._is_log_to_be_wiped = True  # what a killed process had deleted may still be in it

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        try:
            await self._database.run(self._take_over)
            self._reader = Reader(self._path)
        except BaseException:
            await self._database.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.close()
        await self._database.__aexit__(kind, error, trace)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, beside whatever is being written."""
        return await self._reader.run(work)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after its commit."""

        def owned(db: sqlite3.Connection) -> T:
            self._check_owner(db)
            return work(db)

        return await self._database.run(owned)

    async def erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, and afterwards what `work` has deleted is in no file, the write-ahead log included."""

        def wiped(db: sqlite3.Connection) -> T:
            self._is_log_to_be_wiped = True
            return work(db)

        return await self.write(wiped)

    def _wipe_log(self, db: sqlite3.Connection) -> None:
        if self._is_log_to_be_wiped:
            busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._is_log_to_be_wiped = bool(busy)  # by a reader that is slow: the next commit tries again

    def _take_over(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM owner")
        db.execute("INSERT INTO owner VALUES (?)", (self._token,))

    def _check_owner(self, db: sqlite3.Connection) -> None:
        if db.execute("SELECT token FROM owner").fetchone()["token"] != self._token:
            raise StoreFenced(f"{self._path}: a newer process has opened it; this one may write nothing any more")
