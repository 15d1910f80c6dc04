"""The journal's tables, the checksum that the last column of each holds over the others, and how far it has come."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Self

from local.errors import StoreDamaged

FILE_NAME = "journal.db"  # in the data directory
MIGRATIONS = (
    """
    CREATE TABLE state (
        id INTEGER PRIMARY KEY,
        changes INTEGER NOT NULL,
        first_number INTEGER NOT NULL,
        last_number INTEGER NOT NULL,
        consumers_in_doubt INTEGER NOT NULL,
        digest BLOB NOT NULL,
        checksum BLOB NOT NULL
    );
    CREATE TABLE entries (
        number INTEGER PRIMARY KEY,
        committed_at REAL NOT NULL,
        redacted INTEGER NOT NULL,
        subject TEXT NOT NULL,
        envelope_id TEXT NOT NULL UNIQUE,
        sender TEXT NOT NULL,
        instance TEXT NOT NULL,
        seq INTEGER NOT NULL,
        correlation_id TEXT NOT NULL,
        session_id TEXT,
        sent_at REAL NOT NULL,
        frame BLOB NOT NULL,
        checksum BLOB NOT NULL
    );
    CREATE INDEX entries_by_time ON entries (committed_at);
    CREATE INDEX entries_by_subject ON entries (subject);
    CREATE INDEX entries_by_sender ON entries (sender, instance, subject, seq);
    CREATE INDEX entries_by_correlation ON entries (correlation_id);
    CREATE INDEX entries_by_session ON entries (session_id) WHERE session_id IS NOT NULL;
    CREATE TABLE consumers (
        name TEXT PRIMARY KEY,
        subjects TEXT NOT NULL,
        floor INTEGER NOT NULL,
        checksum BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE deliveries (
        consumer TEXT NOT NULL,
        number INTEGER NOT NULL,
        acknowledged INTEGER NOT NULL,
        deaths INTEGER NOT NULL,
        deaths_alone INTEGER NOT NULL,
        parked TEXT,
        checksum BLOB NOT NULL,
        PRIMARY KEY (consumer, number)
    ) WITHOUT ROWID;
    CREATE TABLE servers (
        consumer TEXT PRIMARY KEY,
        served_by TEXT,
        fenced TEXT NOT NULL,
        checksum BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE tombstones (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        up_to INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;
    CREATE TABLE gaps (
        first INTEGER PRIMARY KEY,
        last INTEGER NOT NULL,
        checksum BLOB NOT NULL
    );
    """,
)
COLUMNS = {
    "state": "id, changes, first_number, last_number, consumers_in_doubt, digest, checksum",
    "entries": "number, committed_at, redacted, subject, envelope_id, sender, instance, seq, correlation_id,"
    " session_id, sent_at, frame, checksum",
    "consumers": "name, subjects, floor, checksum",
    "deliveries": "consumer, number, acknowledged, deaths, deaths_alone, parked, checksum",
    "servers": "consumer, served_by, fenced, checksum",
    "tombstones": "kind, id, up_to, checksum",
    "gaps": "first, last, checksum",
}
_ADD = {
    table: f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(columns.split(',')))})"
    for table, columns in COLUMNS.items()
}
_PUT = {table: sql.replace("INSERT", "INSERT OR REPLACE") for table, sql in _ADD.items()}


def checksum(values: Iterable[Any]) -> bytes:
    """Eight bytes of BLAKE2b over the values of a row: in the standard library, and 1 µs for 1 kB.

    A 32-bit CRC finds a single flipped bit as surely, but lets one damaged page in 4 billion pass.
    """
    plain: list[Any] = []
    blobs: list[bytes] = []
    for value in values:
        (blobs if isinstance(value, bytes) else plain).append(value)
    digest = hashlib.blake2b(json.dumps(plain).encode(), digest_size=8)
    for blob in blobs:
        digest.update(blob)
    return digest.digest()


def is_sound(row: Sequence[Any]) -> bool:
    """Whether a row, read with all its `COLUMNS`, matches its checksum."""
    return bool(checksum(row[:-1]) == row[-1])


def put(db: sqlite3.Connection, table: str, values: Sequence[Any]) -> bytes:
    """Write a row, over the one with the same key if there is one; returns its checksum."""
    return _write(db, _PUT[table], values)


def add(db: sqlite3.Connection, table: str, values: Sequence[Any]) -> bytes:
    """Write a row whose keys are new; returns its checksum. `put` takes a third more, as it makes ready to undo [m]."""
    return _write(db, _ADD[table], values)


def _write(db: sqlite3.Connection, sql: str, values: Sequence[Any]) -> bytes:
    seal = checksum(values)
    db.execute(sql, (*values, seal))
    return seal


def rows(
    db: sqlite3.Connection, table: str, where: str = "1", parameters: Sequence[Any] = ()
) -> Iterator[tuple[Any, ...]]:
    """The values of the rows that SQL selects, checksums verified and left out. Raises `StoreDamaged`."""
    with closing(db.execute(f"SELECT {COLUMNS[table]} FROM {table} WHERE {where}", parameters)) as found:
        for row in found:
            if not is_sound(row):
                raise StoreDamaged(f"journal: row {row[0]!a} of {table} does not match its checksum")
            yield tuple(row[:-1])


DIGEST_BYTES = 16


class JournalState(NamedTuple):
    """`changes` counts all that must not be lost: appends, registrations, redactions, removals.

    Numbers from `first_number` to `last_number` are there or known to be lost. `digest` runs over the checksums of all
    that was ever appended: another file with the same counts is noticed by it. With `consumers_in_doubt` damage has
    taken consumers, and whoever registers is to get everything there is.
    """

    changes: int = 0
    first_number: int = 1
    last_number: int = 0
    consumers_in_doubt: bool = False
    digest: bytes = bytes(DIGEST_BYTES)

    def changed(self) -> Self:
        """One change later."""
        return self._replace(changes=self.changes + 1)

    def appended(self, seal: bytes) -> Self:
        """One entry later, of which `seal` is the checksum."""
        digest = hashlib.blake2b(self.digest + seal, digest_size=DIGEST_BYTES).digest()
        return self._replace(changes=self.changes + 1, last_number=self.last_number + 1, digest=digest)


def read_state(db: sqlite3.Connection) -> JournalState:
    """Raises `StoreDamaged` when the row is missing or does not match its checksum."""
    for _, changes, first_number, last_number, consumers_in_doubt, digest in rows(db, "state"):
        return JournalState(changes, first_number, last_number, bool(consumers_in_doubt), digest)
    raise StoreDamaged("journal: the row that says how far it has come is missing")


def write_state(db: sqlite3.Connection, state: JournalState) -> None:
    """Put `state` in the place of the one before."""
    put(
        db,
        "state",
        (1, state.changes, state.first_number, state.last_number, int(state.consumers_in_doubt), state.digest),
    )
