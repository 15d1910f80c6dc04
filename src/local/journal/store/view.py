"""A look at the journal from outside, whether its owner runs or not. Reads only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self, Unpack

from local.errors import NotOnRecord, StoreDamaged, StoreFailed
from local.journal.store.entries import Filters, read, where
from local.journal.store.entry import Stored
from local.journal.store.schema import MIGRATIONS
from local.services.sqlite_file import connect_read_only, naming_damage, store_failure

LAST_CHARACTER = "\U0010ffff"
SLICE = 100  # entries read at once: of up to 1 MiB each


class SessionSpan(NamedTuple):
    """A session's entries: how many, and the time of commit of the first and the last, in seconds since 1970."""

    session_id: str
    messages: int
    first_at: float
    last_at: float


class DeadLetterRecord(NamedTuple):
    """A dead letter: a message that a consumer is given no more, and why. Times are seconds since 1970."""

    number: int
    committed_at: float
    consumer: str
    subject: str
    query_id: str
    reason: str


class Extent(NamedTuple):
    """All of a journal. Without entries the numbers are 0. `size` is in bytes, what is still in the WAL included."""

    entries: int
    first_number: int
    last_number: int
    size: int


class JournalView:
    """Use as `with`. Between two calls nothing is held that could keep the owner from emptying its WAL.

    Raises `NotOnRecord` where there is no journal; `StoreDamaged` for damage, with the number of the entry and what to
    do; `StoreFailed` for what else keeps it from being read, a newer schema included.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if not self._path.exists():
            raise NotOnRecord(f"{self._path}: no journal; the first start of a system on this data directory makes it")
        with ExitStack() as stack, self._reporting():
            self._db = stack.enter_context(connect_read_only(self._path))
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > len(MIGRATIONS):
                raise StoreFailed(f"{self._path}: schema version {version} is newer than this program")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def read(self, *, limit: int, **filters: Unpack[Filters]) -> list[Stored]:
        """At most `limit` entries, in order, that match everything given."""
        sql, parameters = where(filters, limit)
        with self._reporting():
            return list(read(self._db, sql, parameters))

    def read_all(self, **filters: Unpack[Filters]) -> Iterator[Stored]:
        """All entries that match, a slice at a time, up to what is there when the last slice is read."""
        found = self.read(limit=SLICE, **filters)
        while found:
            yield from found
            filters["after"] = found[-1].number
            found = self.read(limit=SLICE, **filters)

    def sessions(self) -> list[SessionSpan]:
        """Every session, the one that began first before the others."""
        with self._reporting():
            return [
                SessionSpan(*row)
                for row in self._db.execute(
                    "SELECT s.session_id, s.messages, first.committed_at, last.committed_at FROM (SELECT session_id,"
                    " COUNT(*) messages, MIN(number) low, MAX(number) high FROM entries WHERE session_id IS NOT NULL"
                    " GROUP BY session_id) s JOIN entries first ON first.number = s.low"
                    " JOIN entries last ON last.number = s.high ORDER BY s.low"
                ).fetchall()
            ]

    def ids(self, beginning: str, *, most: int) -> list[str]:
        """At most so many of the ids of sessions and queries that begin like this, in order."""
        found: set[str] = set()
        with self._reporting():
            for column in ("session_id", "correlation_id"):
                sql = f"SELECT DISTINCT {column} FROM entries WHERE {column} >= ? AND {column} < ? ORDER BY 1 LIMIT ?"
                found |= {row[0] for row in self._db.execute(sql, (beginning, beginning + LAST_CHARACTER, most))}
        return sorted(found)[:most]

    def dead_letters(self) -> list[DeadLetterRecord]:
        """Every message that some consumer has been given up with, in order; not those that are too old to be kept."""
        with self._reporting():
            sql = (
                "SELECT d.number, e.committed_at, d.consumer, e.subject, e.correlation_id, d.parked FROM deliveries d"
                " JOIN entries e ON e.number = d.number WHERE d.parked != '' ORDER BY d.number, d.consumer"
            )
            return [DeadLetterRecord(*row) for row in self._db.execute(sql).fetchall()]

    def count(self) -> Extent:
        """How much there is."""
        with self._reporting():
            sql = "SELECT COUNT(*), COALESCE(MIN(number), 0), COALESCE(MAX(number), 0) FROM entries"
            entries, first, last = self._db.execute(sql).fetchone()
            files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
            return Extent(entries, first, last, sum(file.stat().st_size for file in files if file.exists()))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            with naming_damage():
                yield
        except StoreDamaged as error:
            what = "stop the system and start it again: what is sound is kept, the rest is reported"
            raise StoreDamaged(f"{self._path}: {error}; {what}") from None
        except (sqlite3.Error, OSError) as error:
            raise store_failure(self._path, error) from None
