"""What was asked for leave, what was decided of it, and what is remembered for a conversation, in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from local.services.owned_database import OwnedDatabase

KEPT_SECONDS = 30 * 24 * 3600.0
KEPT_ROWS = 10_000

_MIGRATIONS = (
    """
    CREATE TABLE approvals (
        key TEXT PRIMARY KEY,
        query_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        user_id TEXT,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        body TEXT,
        asked_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        decision TEXT,
        decided_by TEXT,
        answer TEXT,
        decided_at REAL,
        is_told INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX approvals_by_session ON approvals (session_id);
    CREATE INDEX approvals_by_query ON approvals (query_id);
    CREATE TABLE remembered (
        leave_id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        user_id TEXT,
        query_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        scope TEXT NOT NULL,
        is_tainted INTEGER NOT NULL,
        decided_at REAL NOT NULL,
        UNIQUE (session_id, tool, digest)
    );
    """,
    "ALTER TABLE approvals ADD COLUMN mode TEXT;",
)


@dataclass(frozen=True, slots=True)
class StoredApproval:
    """One question. `body` is the message that asks it, None once it is decided; `digest` is of the arguments; `mode`
    how the rest of a turn runs whose plan was approved. Times are seconds since 1970."""

    key: str
    query_id: str
    session_id: str
    user_id: str | None
    tool: str
    digest: str
    body: str | None
    asked_at: float
    expires_at: float
    decision: str | None = None
    decided_by: str | None = None
    answer: str | None = None
    decided_at: float | None = None
    is_told: bool = False
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class StoredLeave:
    """What is allowed for a whole session: calls of a tool with the `scope`, arguments as JSON, of that `digest`."""

    leave_id: int
    session_id: str
    user_id: str | None
    query_id: str
    tool: str
    digest: str
    scope: str
    is_tainted: bool
    decided_at: float


class ApprovalStore(OwnedDatabase):
    """Use as `async with`. Whoever opened the file last is its owner; what was asked 30 days before that is forgotten.

    Every coroutine returns after its commit; raises `StoreFailed`, `StoreFull`, `StoreFenced`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _MIGRATIONS)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.write(self._drop_old)
        return self

    async def all(self) -> list[StoredApproval]:
        """Every question, the oldest first; the latest 10,000 are kept."""

        def work(db: sqlite3.Connection) -> list[StoredApproval]:
            return [_approval(row) for row in db.execute("SELECT * FROM approvals ORDER BY asked_at")]

        return await self.run(work)

    async def remembered(self) -> list[StoredLeave]:
        """What is allowed for whole sessions, the oldest first."""

        def work(db: sqlite3.Connection) -> list[StoredLeave]:
            return [_leave(row) for row in db.execute("SELECT * FROM remembered ORDER BY leave_id")]

        return await self.run(work)

    async def ask(self, approval: StoredApproval) -> None:
        """Note a question that is new."""
        sql = (
            "INSERT INTO approvals (key, query_id, session_id, user_id, tool, digest, body, asked_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        fields = (
            approval.key, approval.query_id, approval.session_id, approval.user_id, approval.tool, approval.digest,
            approval.body, approval.asked_at, approval.expires_at,
        )  # fmt: skip
        await self.write(lambda db: db.execute(sql, fields).rowcount)

    async def decide(self, decided: StoredApproval, leave: StoredLeave | None = None) -> StoredLeave | None:
        """Note what was decided, unless something was before, and what is remembered of it; returns that under its
        id. Nothing is kept of the arguments of a question that is decided."""
        sql = (
            "UPDATE approvals SET decision = ?, decided_by = ?, answer = ?, decided_at = ?, mode = ?, body = NULL"
            " WHERE key = ? AND decision IS NULL"
        )
        told = (decided.decision, decided.decided_by, decided.answer, decided.decided_at, decided.mode)
        fields = (*told, decided.key)

        def work(db: sqlite3.Connection) -> StoredLeave | None:
            db.execute(sql, fields)
            return None if leave is None else _remember(db, leave)

        return await self.write(work)

    async def told(self, key: str) -> None:
        """Everybody can know what was decided."""
        await self.write(lambda db: db.execute("UPDATE approvals SET is_told = 1 WHERE key = ?", (key,)).rowcount)

    async def take_back(self, leave_id: int) -> None:
        """Remember that no more."""
        await self.write(lambda db: db.execute("DELETE FROM remembered WHERE leave_id = ?", (leave_id,)).rowcount)

    async def forget(self, column: str, value: str) -> None:
        """Remove for good what belongs to a session or a query: `column` is session_id or query_id."""

        def work(db: sqlite3.Connection) -> None:
            for table in ("approvals", "remembered"):
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (value,))

        await self.erase(work)

    def _drop_old(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM approvals WHERE asked_at < ?", (time.time() - KEPT_SECONDS,))
        db.execute(
            "DELETE FROM approvals WHERE key IN (SELECT key FROM approvals ORDER BY asked_at DESC LIMIT -1 OFFSET ?)",
            (KEPT_ROWS,),
        )


def _remember(db: sqlite3.Connection, leave: StoredLeave) -> StoredLeave:
    sql = (
        "INSERT INTO remembered (session_id, user_id, query_id, tool, digest, scope, is_tainted, decided_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET is_tainted = max(is_tainted, excluded.is_tainted)"
        " RETURNING *"
    )
    fields = (
        leave.session_id, leave.user_id, leave.query_id, leave.tool, leave.digest, leave.scope, leave.is_tainted,
        leave.decided_at,
    )  # fmt: skip
    return _leave(db.execute(sql, fields).fetchall()[0])


def _approval(row: sqlite3.Row) -> StoredApproval:
    return StoredApproval(**{**dict(row), "is_told": bool(row["is_told"])})


def _leave(row: sqlite3.Row) -> StoredLeave:
    return StoredLeave(**{**dict(row), "is_tainted": bool(row["is_tainted"])})
