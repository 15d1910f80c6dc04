"""Which calls of one tool have begun, and how they ended, in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from local.services.owned_database import OwnedDatabase

KEPT_SECONDS = 30 * 24 * 3600.0
FORGOTTEN = ""  # in the place of an outcome

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
    """
    DROP TABLE owner;
    ALTER TABLE effects ADD COLUMN query_id TEXT;
    ALTER TABLE effects ADD COLUMN session_id TEXT;
    CREATE INDEX effects_by_query ON effects (query_id);
    CREATE INDEX effects_by_session ON effects (session_id);
    """,
)


@dataclass(frozen=True, slots=True)
class EffectCall:
    """One call of the tool: `key` is the same for whoever repeats it, `asked` says what for. It belongs to a query, and
    that to a session."""

    key: str
    asked: str
    query_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class StoredEffect:
    """One call on record. `asked` says what for; `outcome` how it ended: `FORGOTTEN` if that was deleted, None if
    nobody knows."""

    asked: str
    outcome: str | None


class EffectStore(OwnedDatabase):
    """Use as `async with`. Whoever opened the file last is its owner; what began 30 days before that is forgotten.

    Every coroutine returns after its commit; raises `StoreFailed`, `StoreFull` where the disk is full.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970."""
        super().__init__(path, _MIGRATIONS)
        self._clock = clock

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.note(self._drop_old)
        return self

    async def begin(self, call: EffectCall) -> StoredEffect | None:
        """Note that a call begins, unless it is on record: then return what is. Raises `StoreFenced` for a process that
        is not the owner any more."""

        def work(db: sqlite3.Connection) -> StoredEffect | None:
            row = db.execute("SELECT asked, outcome FROM effects WHERE key = ?", (call.key,)).fetchone()
            if row is not None:
                return StoredEffect(row["asked"], row["outcome"])
            sql = "INSERT INTO effects (key, asked, begun_at, query_id, session_id) VALUES (?, ?, ?, ?, ?)"
            db.execute(sql, (call.key, call.asked, self._clock(), call.query_id, call.session_id))
            return None

        return await self.write(work)

    async def end(self, key: str, outcome: str) -> str:
        """Note how a call ended, unless that is on record; returns what is. Of one that was forgotten nothing is kept.
        Open to former owners, too: what their last run did is worth knowing."""

        def work(db: sqlite3.Connection) -> str:
            sql = "UPDATE effects SET outcome = coalesce(outcome, ?) WHERE key = ? RETURNING outcome"
            rows = db.execute(sql, (outcome, key)).fetchall()
            kept = rows[0]["outcome"] if rows else None
            return str(kept or outcome)

        return await self.run(work)

    async def forget_session(self, session_id: str) -> int:
        """Remove how the calls of a session ended, for good; that they began stays. Returns how many there were."""
        return await self._forget("session_id", session_id)

    async def forget_query(self, query_id: str) -> int:
        """Remove how the calls of a query ended, for good; that they began stays. Returns how many there were."""
        return await self._forget("query_id", query_id)

    async def _forget(self, what: str, key: str) -> int:
        """Forget ended and running calls: what the latter record afterwards is not kept."""
        sql = f"UPDATE effects SET outcome = ? WHERE {what} = ?"
        return await self.erase(lambda db: db.execute(sql, (FORGOTTEN, key)).rowcount)

    def _drop_old(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM effects WHERE begun_at < ?", (self._clock() - KEPT_SECONDS,))
