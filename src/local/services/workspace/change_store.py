"""What tools have changed in workspaces, and which files hold words of strangers, in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from local.services.owned_database import OwnedDatabase

_MIGRATIONS = (
    """
    CREATE TABLE changes (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        root TEXT NOT NULL, path TEXT NOT NULL, tool TEXT NOT NULL,
        call_id TEXT NOT NULL, query_id TEXT NOT NULL, session_id TEXT NOT NULL,
        before TEXT, after TEXT, mode INTEGER NOT NULL, folders INTEGER NOT NULL, part TEXT NOT NULL,
        was_tainted INTEGER NOT NULL, is_tainted INTEGER NOT NULL,
        state TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE INDEX changes_by_call ON changes (call_id);
    CREATE INDEX changes_by_query ON changes (query_id);
    CREATE INDEX changes_by_session ON changes (session_id);
    CREATE TABLE tainted_files (root TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (root, path)) WITHOUT ROWID;
    CREATE TABLE tainted_contents (digest TEXT PRIMARY KEY) WITHOUT ROWID;
    """,
)
_COLUMNS = (
    "root, path, tool, call_id, query_id, session_id, before, after, mode, folders, part, was_tainted, is_tainted,"
    " state, at"
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that one call has changed. `before` and `after` are the SHA-256 of what it held, None where there was
    nothing of that name; `mode` are its permissions before, `folders` how many folders were made on the way to it,
    `part` the name under which it is half written, `at` seconds since 1970."""

    root: str
    path: str
    tool: str
    call_id: str
    query_id: str
    session_id: str
    before: str | None
    after: str | None
    mode: int
    folders: int
    part: str
    was_tainted: bool
    is_tainted: bool
    at: float = 0.0
    state: Literal["begun", "done", "undone"] = "begun"
    number: int = 0


@dataclass(frozen=True, slots=True)
class ChangeSelection:
    """Which changes: of a call, of a query, from one time on up to another, or all of them, the latest first."""

    call_id: str | None = None
    query_id: str | None = None
    since: float | None = None
    until: float | None = None
    limit: int = 1000


class ChangeStore(OwnedDatabase):
    """Use as `async with`. Every coroutine returns after its commit; raises `StoreFailed`, `StoreFull` where the disk
    is full, `StoreFenced` in a process that another one has replaced."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970."""
        super().__init__(path, _MIGRATIONS)
        self.clock = clock

    async def begin(self, change: FileChange) -> FileChange:
        """Note what is about to be changed; returns it with its number and time."""
        noted = replace(change, at=self.clock())
        values = [getattr(noted, name) for name in _COLUMNS.split(", ")]
        sql = f"INSERT INTO changes ({_COLUMNS}) VALUES ({', '.join('?' * len(values))})"
        number = await self.write(lambda db: db.execute(sql, values).lastrowid)
        return replace(noted, number=number or 0)

    async def end(self, change: FileChange) -> None:
        """Note that a change was made, and whose words the file holds now."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE changes SET state = 'done' WHERE number = ?", (change.number,))
            _mark(db, change, is_tainted=change.is_tainted, digest=change.after)

        await self.write(work)

    async def drop(self, change: FileChange) -> None:
        """Forget one that was not made."""
        await self.write(lambda db: db.execute("DELETE FROM changes WHERE number = ?", (change.number,)))

    async def undone(self, changes: Sequence[FileChange]) -> None:
        """Note that changes of one file were undone; the first was made first."""

        def work(db: sqlite3.Connection) -> None:
            for change in changes:
                db.execute("UPDATE changes SET state = 'undone' WHERE number = ?", (change.number,))
            _mark(db, changes[0], is_tainted=changes[0].was_tainted, digest=changes[0].before)

        await self.write(work)

    async def unfinished(self, root: str) -> list[FileChange]:
        """The changes of a workspace that a killed process has begun and not ended."""
        sql = "SELECT * FROM changes WHERE state = 'begun' AND root = ? ORDER BY number"
        return await self.run(lambda db: [_change(row) for row in db.execute(sql, (root,))])

    async def select(self, selection: ChangeSelection) -> list[FileChange]:
        """The changes that were made, the latest first, the undone ones included."""
        wanted = {
            "call_id = ?": selection.call_id,
            "query_id = ?": selection.query_id,
            "at >= ?": selection.since,
            "at < ?": selection.until,
        }
        asked = {clause: value for clause, value in wanted.items() if value is not None}
        where = " AND ".join(["state != 'begun'", *asked])
        sql = f"SELECT * FROM changes WHERE {where} ORDER BY number DESC LIMIT ?"
        values = (*asked.values(), selection.limit)
        return await self.run(lambda db: [_change(row) for row in db.execute(sql, values)])

    async def tainted(self, root: str, paths: Collection[str], digests: Collection[str] = ()) -> bool:
        """Whether one of those files, or content of one of those digests, holds words of strangers."""

        def work(db: sqlite3.Connection) -> bool:
            known = "SELECT 1 FROM tainted_contents WHERE digest = ?"
            if any(db.execute(known, (digest,)).fetchone() for digest in digests):
                return True
            marked = {row["path"] for row in db.execute("SELECT path FROM tainted_files WHERE root = ?", (root,))}
            return not marked.isdisjoint(paths)

        return await self.run_short(work)

    async def forget(self, *, session_id: str | None = None, query_id: str | None = None) -> None:
        """Remove for good what was noted of a session or of a query; whose words a file holds stays."""
        column, key = ("session_id", session_id) if session_id is not None else ("query_id", query_id)
        await self.erase(lambda db: db.execute(f"DELETE FROM changes WHERE {column} = ?", (key,)).rowcount)

    async def forget_before(self, at: float) -> None:
        """Remove what was noted before a time."""
        await self.erase(lambda db: db.execute("DELETE FROM changes WHERE at < ?", (at,)).rowcount)

    async def forget_oldest(self) -> int:
        """Remove the oldest twentieth of the changes; returns how many those were."""
        oldest = "SELECT number FROM changes ORDER BY number LIMIT (SELECT 1 + count(*) / 20 FROM changes)"
        return await self.erase(lambda db: db.execute(f"DELETE FROM changes WHERE number IN ({oldest})").rowcount)

    async def contents(self) -> set[str]:
        """The digests that changes refer to."""
        sql = "SELECT before, after FROM changes"
        return await self.run(lambda db: {each for row in db.execute(sql) for each in row if each is not None})


def _mark(db: sqlite3.Connection, change: FileChange, *, is_tainted: bool, digest: str | None) -> None:
    """A file, and the folders that were made for it: what is in their names, is seen in lists."""
    sql = "INSERT OR IGNORE INTO" if is_tainted else "DELETE FROM"
    where = "VALUES (?, ?)" if is_tainted else "WHERE root = ? AND path = ?"
    folders = list(PurePosixPath(change.path).parents)[: change.folders]
    db.executemany(f"{sql} tainted_files {where}", [(change.root, str(path)) for path in (change.path, *folders)])
    if is_tainted and digest is not None:
        db.execute("INSERT OR IGNORE INTO tainted_contents VALUES (?)", (digest,))


def _change(row: sqlite3.Row) -> FileChange:
    fields = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row iterates over its values
    return FileChange(**{**fields, "was_tainted": bool(row["was_tainted"]), "is_tainted": bool(row["is_tainted"])})
