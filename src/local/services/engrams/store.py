"""The truth about the engrams: one SQLite file, written by its owner alone."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

from local.services.engrams.engram import Engram, Origin
from local.services.owned_database import OwnedDatabase
from local.services.sqlite_file import store_failure

FILE_NAME = "engrams.db"  # in the engrams' directory
MIGRATIONS = (
    """
    CREATE TABLE engrams (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        engram_id TEXT NOT NULL UNIQUE,
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        query TEXT NOT NULL,
        answer TEXT NOT NULL,
        origin TEXT NOT NULL,
        asked_at REAL NOT NULL,
        language TEXT NOT NULL,
        searchable INTEGER NOT NULL,
        embedded INTEGER NOT NULL DEFAULT 0,
        revision INTEGER NOT NULL DEFAULT 0,
        pinned INTEGER NOT NULL DEFAULT 0,
        score REAL,
        sentiment INTEGER,
        rated_at REAL,
        winner TEXT,
        superseded_by TEXT,
        recalled TEXT NOT NULL,
        classified INTEGER NOT NULL DEFAULT 0,
        intent TEXT,
        entities TEXT NOT NULL DEFAULT '[]',
        UNIQUE (query_id, respondent_id)
    );
    CREATE INDEX engrams_by_user ON engrams (user_id, asked_at);
    CREATE INDEX engrams_by_session ON engrams (session_id, number);
    CREATE INDEX engrams_not_embedded ON engrams (number) WHERE embedded = 0 AND searchable;
    CREATE INDEX engrams_not_classified ON engrams (number) WHERE classified = 0 AND searchable;
    CREATE INDEX engrams_by_language ON engrams (language) WHERE searchable;
    CREATE INDEX engrams_pinned ON engrams (user_id) WHERE pinned;
    CREATE TABLE tombstones (
        query_id TEXT PRIMARY KEY,
        deleted_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE session_tombstones (
        session_id TEXT PRIMARY KEY,
        deleted_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE deletions (
        engram_id TEXT PRIMARY KEY,
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        redacted INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE changes (
        number INTEGER NOT NULL REFERENCES engrams ON DELETE CASCADE,
        at REAL NOT NULL,
        what TEXT NOT NULL,
        value TEXT
    );
    CREATE INDEX changes_by_engram ON changes (number);
    CREATE TABLE facts (
        fact_id INTEGER PRIMARY KEY AUTOINCREMENT,
        user_id TEXT NOT NULL,
        number INTEGER NOT NULL REFERENCES engrams ON DELETE CASCADE,
        slot TEXT NOT NULL,
        slot_key TEXT NOT NULL,
        value TEXT NOT NULL,
        stated_at REAL NOT NULL,
        superseded_by INTEGER REFERENCES facts ON DELETE SET NULL,
        superseded_at REAL,
        UNIQUE (number, slot_key, value)
    );
    CREATE INDEX facts_by_slot ON facts (user_id, slot_key);
    CREATE INDEX facts_by_successor ON facts (superseded_by);
    CREATE VIRTUAL TABLE english USING fts5 (exchange, context, tokenize = 'porter unicode61 remove_diacritics 2');
    CREATE VIRTUAL TABLE other USING fts5 (exchange, context, tokenize = 'unicode61 remove_diacritics 2');
    CREATE TABLE vectors (
        number INTEGER PRIMARY KEY REFERENCES engrams ON DELETE CASCADE,
        key TEXT NOT NULL UNIQUE,
        vector BLOB NOT NULL
    );
    CREATE TABLE vector_index (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        model TEXT NOT NULL DEFAULT '',
        generation TEXT NOT NULL DEFAULT '',
        is_opening INTEGER NOT NULL DEFAULT 0,
        deletions INTEGER NOT NULL DEFAULT 0,
        deletions_built INTEGER NOT NULL DEFAULT 0
    );
    INSERT INTO vector_index (id) VALUES (1);
    """,
    "CREATE INDEX engrams_unparsed ON engrams (number) WHERE classified = 2 AND searchable",
    """
    ALTER TABLE facts ADD COLUMN certain INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE facts ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE facts ADD COLUMN retracted_in INTEGER REFERENCES engrams ON DELETE SET NULL;
    CREATE INDEX facts_by_retraction ON facts (retracted_in) WHERE retracted_in IS NOT NULL;
    CREATE INDEX engrams_by_successor ON engrams (superseded_by) WHERE superseded_by IS NOT NULL;
    """,
    "CREATE INDEX engrams_rated ON engrams (user_id) WHERE sentiment IS NOT NULL",
    """
    ALTER TABLE vector_index DROP COLUMN generation;
    ALTER TABLE vector_index DROP COLUMN is_opening;
    ALTER TABLE vector_index DROP COLUMN deletions;
    ALTER TABLE vector_index DROP COLUMN deletions_built;
    """,
    """
    ALTER TABLE engrams ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0;
    UPDATE engrams SET tainted = 1
        WHERE session_id IN (SELECT session_id FROM engrams WHERE origin IN ('web', 'tool'));
    """,
    """
    ALTER TABLE engrams ADD COLUMN note_of TEXT;
    CREATE INDEX engrams_noted ON engrams (user_id) WHERE note_of IS NOT NULL;
    CREATE INDEX engrams_by_note ON engrams (note_of) WHERE note_of IS NOT NULL;
    """,
    """
    CREATE TABLE early_ratings (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        sentiment INTEGER,
        rated_at REAL NOT NULL,
        kept_at REAL NOT NULL,
        PRIMARY KEY (query_id, respondent_id)
    ) WITHOUT ROWID;
    """,
    "ALTER TABLE facts ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 1",
)


def stored_engram(row: sqlite3.Row) -> Engram:
    """An engram from a row of its table."""
    return Engram(
        engram_id=row["engram_id"], query_id=row["query_id"], respondent_id=row["respondent_id"],
        session_id=row["session_id"], user_id=row["user_id"], query=row["query"], answer=row["answer"],
        origin=Origin(row["origin"]), asked_at=row["asked_at"], pinned=bool(row["pinned"]), score=row["score"],
        sentiment=row["sentiment"], winner=row["winner"], superseded_by=row["superseded_by"],
        recalled=_listed(row["recalled"]), intent=row["intent"], entities=_listed(row["entities"]),
        tainted=bool(row["tainted"]), note_of=row["note_of"],
    )  # fmt: skip


def _listed(column: str) -> tuple[str, ...]:
    return () if column == "[]" else tuple(json.loads(column))  # most are empty, and a search reads a hundred


T = TypeVar("T")


class Reader:
    """Reads in threads, one read at a time. The file has to exist; close it before its `Database`."""

    def __init__(self, path: Path) -> None:
        """Raises `StoreFailed`."""
        self._path = path
        self._free = threading.Lock()
        try:
            self._connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
            self._connection.row_factory = sqlite3.Row
        except sqlite3.Error as error:
            raise store_failure(path, error) from None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`; all it reads is of one moment. Raises `StoreFailed`."""
        return await asyncio.to_thread(self._run, work)

    async def close(self) -> None:
        """Wait for reads under way and end."""
        await asyncio.to_thread(self._close)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._free:
            try:
                self._connection.execute("BEGIN")
                try:
                    return work(self._connection)
                finally:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise store_failure(self._path, error) from None

    def _close(self) -> None:
        with self._free:
            self._connection.close()


class EngramStore:
    """Use as `async with`. Whoever opened the file last is its owner: nobody else may write.

    Raises `StoreFailed`, `StoreFull` where the disk is full, and `StoreFenced` in a process that is not the owner.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._database = OwnedDatabase(self._path, MIGRATIONS)
        self.changed = asyncio.Event()  # set by every write, for one that wants to know

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        try:
            self._reader = Reader(self._path)
        except BaseException:
            await self._database.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._reader.close()
        await self._database.__aexit__(*error)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, beside whatever is being written."""
        return await self._reader.run(work)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after its commit."""
        value = await self._database.write(work)
        self.changed.set()
        return value

    async def write_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, in the commit of whatever else is written within a twentieth of a second."""
        value = await self._database.write_with_others(work)
        self.changed.set()
        return value

    async def erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` once what it deletes is in no file any more, the write-ahead log included."""
        value = await self._database.erase(work)
        self.changed.set()
        return value
