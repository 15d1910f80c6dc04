"""The usage, in a table beside the journal that is updated as messages come, so that the journal need not be read
again.

Problem: usage is in the recorded answers, and reading them all takes seconds once there are many. Idea: one small row
for each counted message, under its number in the journal, and the position up to which the journal was read, written in
one transaction. So a crash loses nothing and counts nothing twice, and a deletion removes only its own rows.

The table can be deleted at any time: it is counted again from the journal if the file is missing or broken, or belongs
to another journal. If the file cannot be written, the table is in memory for this process.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from local.core.database import check_writable, migrate
from local.core.errors import StoreFailed
from local.queries.record import UsageKey, UsageLedger, UsageSum

log = logging.getLogger(__name__)

FILE_NAME = "usage.db"  # in the data directory
MIGRATIONS = (
    """
    CREATE TABLE used (
        number INTEGER PRIMARY KEY,
        query_id TEXT NOT NULL,
        day TEXT NOT NULL,
        user_id TEXT,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        model TEXT NOT NULL,
        run TEXT NOT NULL,
        answers INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        seconds REAL NOT NULL
    );
    CREATE INDEX used_by_query ON used (query_id);
    CREATE INDEX used_by_session ON used (session);
    CREATE TABLE jobs (run TEXT PRIMARY KEY, job TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE place (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, envelope_id TEXT NOT NULL);
    """,
    "ALTER TABLE used ADD COLUMN server TEXT NOT NULL DEFAULT ''",
)
_COLUMNS = ("day", "user_id", "agent", "session", "model", "run", "server")  # in the order of `UsageKey`
_NUMBERS = ("answers", "calls", "prompt_tokens", "completion_tokens", "seconds")
_INSERT = (
    f"INSERT OR REPLACE INTO used (number, query_id, {', '.join((*_COLUMNS, *_NUMBERS))})"
    f" VALUES ({', '.join('?' * (2 + len(_COLUMNS) + len(_NUMBERS)))})"
)
_SUMS = ", ".join(f"SUM({name})" for name in _NUMBERS)


class Place(NamedTuple):
    """The last message that was counted: its number in the journal and its envelope's id; 0 before the first."""

    number: int = 0
    envelope_id: str = ""


class Counted(NamedTuple):
    """One recorded message as `/usage` counts it: its usage, the job of a run, or the session or query that was deleted
    at that time. A message without these only moves the position.
    """

    place: Place
    query_id: str = ""
    used: tuple[UsageKey, UsageSum] | None = None
    job: tuple[str, str] | None = None
    deleted_session: str = ""
    deleted_query: str = ""


class UsageTable:
    """The usage of every message that was counted, in a SQLite file or, without a path, in memory. Raises
    `sqlite3.Error`. Threads wait for each other, also one that is left to itself when its caller is cancelled: SQLite
    crashes where a connection is closed while another thread reads from it."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")  # rows lost in a power failure are read again
            self._db.execute("PRAGMA secure_delete=ON")
            migrate(self._db, MIGRATIONS)
            check_writable(self._db)
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def opened(cls, path: Path) -> Self:
        """The table in that file, or the one `in_place_of` it."""
        try:
            return cls(path)
        except (sqlite3.Error, StoreFailed) as error:
            return cls.in_place_of(path, error)

    @classmethod
    def in_place_of(cls, path: Path, error: Exception) -> Self:
        """An empty table after that error: in the place of a broken file, or in memory where nothing can be written."""
        if not isinstance(error, sqlite3.OperationalError):
            log.warning("%s is made again from the journal: %s", path, error)
            try:
                for end in ("", "-wal", "-shm"):
                    path.with_name(path.name + end).unlink(missing_ok=True)
                return cls(path)
            except (sqlite3.Error, OSError) as again:
                error = again
        log.warning("%s cannot be used: %s; what was used is counted in memory", path, error)
        return cls(None)

    def close(self) -> None:
        """Close the file. Later requests fail with `sqlite3.ProgrammingError`."""
        with self._lock:
            self._db.close()

    def place(self) -> Place:
        """Return the position up to which the journal was counted."""
        with self._lock:
            found = self._db.execute("SELECT number, envelope_id FROM place").fetchone()
        return Place() if found is None else Place(*found)

    def count(self, messages: Iterable[Counted]) -> None:
        """Take in some messages, in order, in one transaction."""
        with self._transaction():
            place = None
            for each in messages:
                self._count(each)
                place = each.place
            if place is not None:
                self._db.execute("INSERT OR REPLACE INTO place VALUES (1, ?, ?)", place)

    def clear(self) -> None:
        """Forget everything."""
        with self._transaction():
            for table in ("used", "jobs", "place"):
                self._db.execute(f"DELETE FROM {table}")

    def ledger(self, by: Sequence[str], user_id: str | None, since: str, until: str) -> UsageLedger:
        """Return the usage of that user, or of all, from one day on and up to another, in sums by model and by some of
        day, user, agent, session, server and job.
        """
        wanted = {"model", *({"user": "user_id", "job": "run"}.get(name, name) for name in by)}
        columns = [name if name in wanted else "NULL" if name == "user_id" else "''" for name in _COLUMNS]
        sql = f"SELECT {', '.join(columns)}, {_SUMS} FROM used WHERE day BETWEEN ? AND ? AND (? IS NULL OR user_id = ?)"
        ledger = UsageLedger()
        grouped = ", ".join(name for name in _COLUMNS if name in wanted)
        with self._lock:
            for row in self._db.execute(f"{sql} GROUP BY {grouped}", (since, until, user_id, user_id)):
                ledger.add(UsageKey(*row[: len(_COLUMNS)]), UsageSum(*row[len(_COLUMNS) :]))
            for run, job in self._db.execute("SELECT run, job FROM jobs") if "job" in by else ():
                ledger.name_job(run, job)
        return ledger

    def _count(self, each: Counted) -> None:
        if each.used is not None:
            key, used = each.used
            row = (each.place.number, each.query_id, *key)
            sums = (used.answers, used.calls, used.prompt_tokens, used.completion_tokens, used.seconds)
            self._db.execute(_INSERT, (*row, *sums))
        if each.job is not None:
            self._db.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?)", each.job)
        if each.deleted_session:
            self._db.execute("DELETE FROM used WHERE session = ?", (each.deleted_session,))
        if each.deleted_query:
            self._db.execute("DELETE FROM used WHERE query_id = ?", (each.deleted_query,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
