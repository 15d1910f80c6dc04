"""Which calls of one tool have begun, and how they ended, in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from local.errors import StoreFenced
from local.services.database import Database

KEPT_SECONDS = 30 * 24 * 3600.0

_MIGRATIONS = (
    """
    CREATE TABLE owner (token TEXT NOT NULL);
    CREATE TABLE effects (
        key TEXT PRIMARY KEY,
        asked TEXT NOT NULL,
        outcome TEXT,
        begun_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX effects_by_age ON effects (begun_at);
    """,
)


@dataclass(frozen=True, slots=True)
class StoredEffect:
    """One call on record. `asked` says what for; `outcome` how it ended, None if nobody knows that."""

    asked: str
    outcome: str | None


class EffectStore:
    """Use as `async with`. Whoever opened the file last is its owner; what began 30 days before that is forgotten.

    Every coroutine returns after its commit; raises `StoreFailed`, `StoreFull` where the disk is full.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970."""
        self._path, self._clock = path, clock
        self._database = Database(path, _MIGRATIONS)
        self._token = uuid.uuid4().hex

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        try:
            await self._database.run(self._take_over)
        except BaseException:
            await self._database.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._database.__aexit__(kind, error, trace)

    async def begin(self, key: str, asked: str) -> StoredEffect | None:
        """Note that a call begins, unless it is on record: then return what is. Raises `StoreFenced` for a process that
        is not the owner any more."""

        def work(db: sqlite3.Connection) -> StoredEffect | None:
            self._check_owner(db)
            row = db.execute("SELECT asked, outcome FROM effects WHERE key = ?", (key,)).fetchone()
            if row is not None:
                return StoredEffect(row["asked"], row["outcome"])
            db.execute("INSERT INTO effects (key, asked, begun_at) VALUES (?, ?, ?)", (key, asked, self._clock()))
            return None

        return await self._database.run(work)

    async def end(self, key: str, outcome: str) -> str:
        """Note how a call ended, unless that is on record; returns what is. Open to former owners, too: what their last
        run did is worth knowing."""

        def work(db: sqlite3.Connection) -> str:
            sql = "UPDATE effects SET outcome = coalesce(outcome, ?) WHERE key = ? RETURNING outcome"
            rows = db.execute(sql, (outcome, key)).fetchall()
            return str(rows[0]["outcome"]) if rows else outcome

        return await self._database.run(work)

    def _take_over(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM owner")
        db.execute("INSERT INTO owner VALUES (?)", (self._token,))
        db.execute("DELETE FROM effects WHERE begun_at < ?", (self._clock() - KEPT_SECONDS,))

    def _check_owner(self, db: sqlite3.Connection) -> None:
        if db.execute("SELECT token FROM owner").fetchone()["token"] != self._token:
            raise StoreFenced(f"{self._path}: a newer process has opened it; this one may begin nothing any more")
