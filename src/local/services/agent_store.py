"""The agents of each session, their tasks and what they tell each other, in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from local.services.owned_database import OwnedDatabase

KEPT_SECONDS = 30 * 24 * 3600.0

_MIGRATIONS = (
    """
    CREATE TABLE records (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        tree TEXT NOT NULL,
        body TEXT NOT NULL,
        number INTEGER NOT NULL,
        changed_at REAL NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;
    CREATE INDEX records_by_tree ON records (tree);
    """,
)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One thing that is kept: of a `kind`, under an `id`, of the session whose `tree` it belongs to; `body` is JSON."""

    kind: str
    id: str
    tree: str
    body: str


class AgentStore(OwnedDatabase):
    """Use as `async with`. Whoever opened the file last is its owner; a session of which nothing has changed for 30
    days is forgotten then. Every coroutine returns after its commit; raises `StoreFailed`, `StoreFenced`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _MIGRATIONS)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.erase(self._drop_old)
        return self

    async def all(self) -> list[StoredRecord]:
        """Everything, in the order in which it was first kept."""
        sql = "SELECT kind, id, tree, body FROM records ORDER BY number"
        return await self.run(lambda db: [StoredRecord(**dict(row)) for row in db.execute(sql)])

    async def keep(self, records: Sequence[StoredRecord]) -> None:
        """Store these, in one commit; each takes the place of an earlier one of its kind and id."""
        now = time.time()
        sql = (
            "INSERT INTO records VALUES (?, ?, ?, ?, (SELECT 1 + coalesce(max(number), 0) FROM records), ?)"
            " ON CONFLICT DO UPDATE SET body = excluded.body, changed_at = excluded.changed_at"
        )
        rows = [(each.kind, each.id, each.tree, each.body, now) for each in records]
        await self.write(lambda db: db.executemany(sql, rows).rowcount)

    async def forget(self, tree: str) -> None:
        """Remove for good what belongs to a session."""
        await self.erase(lambda db: db.execute("DELETE FROM records WHERE tree = ?", (tree,)).rowcount)

    def _drop_old(self, db: sqlite3.Connection) -> None:
        sql = "DELETE FROM records WHERE tree IN (SELECT tree FROM records GROUP BY tree HAVING max(changed_at) < ?)"
        db.execute(sql, (time.time() - KEPT_SECONDS,))
