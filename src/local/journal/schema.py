"""The journal's tables, the checksum column of each, and the state of the journal."""

from __future__ import annotations

import hashlib
import heapq
import json
import logging
import os
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict

from local.core.errors import StoreDamaged, StoreGone

# The journal's content as plain values: it knows neither the bus nor the protocol.


@dataclass(frozen=True, slots=True)
class Entry:
    """One message to be stored: the header fields by which it is found, and its `frame` as it was sent.

    The store knows only one thing about the frame: the payload follows the last NUL. `sent_at` is seconds since 1970.
    """

    subject: str
    envelope_id: str
    sender: str
    instance: str
    seq: int
    correlation_id: str
    session_id: str | None
    sent_at: float
    frame: bytes


class Appended(NamedTuple):
    """The result of appending an entry: its number, and whether it is new. It is not new if its envelope id was stored
    before, because the publisher had sent it again.
    """

    number: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """One message in the journal. The frame of a redacted one ends where its payload began.

    `committed_at` is in seconds since 1970.
    """

    number: int
    committed_at: float
    redacted: bool
    entry: Entry


class Header(NamedTuple):
    """The part of an entry that is needed to deliver it later."""

    number: int
    subject: str
    envelope_id: str
    session_id: str | None

    @property
    def lane(self) -> str:
        """The key of entries that are given in order: the session, or the entry's own id without one."""
        return self.session_id or self.envelope_id


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
    """Write a row whose keys are new; returns its checksum. `put` takes a third more, because it prepares for an undo
    [m].
    """
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
    """The extent of a journal. `changes` counts everything that must not be lost: appends, registrations, redactions,
    removals.

    Numbers from `first_number` to `last_number` exist or are known to be lost. `digest` covers the checksums of all
    entries ever appended, so that another file with the same counts is noticed. With `consumers_in_doubt` damage has
    removed consumers, and every consumer that registers gets all messages.
    """

    changes: int = 0
    first_number: int = 1
    last_number: int = 0
    consumers_in_doubt: bool = False
    digest: bytes = bytes(DIGEST_BYTES)

    def changed(self) -> Self:
        """Return the state after one change."""
        return self._replace(changes=self.changes + 1)

    def appended(self, seal: bytes) -> Self:
        """Return the state after one more entry, with the checksum `seal`."""
        digest = hashlib.blake2b(self.digest + seal, digest_size=DIGEST_BYTES).digest()
        return self._replace(changes=self.changes + 1, last_number=self.last_number + 1, digest=digest)


def read_state(db: sqlite3.Connection) -> JournalState:
    """Raises `StoreDamaged` when the row is missing or does not match its checksum."""
    for _, changes, first_number, last_number, consumers_in_doubt, digest in rows(db, "state"):
        return JournalState(changes, first_number, last_number, bool(consumers_in_doubt), digest)
    raise StoreDamaged("journal: the row with its state is missing")


def write_state(db: sqlite3.Connection, state: JournalState) -> None:
    """Put `state` in the place of the one before."""
    put(
        db,
        "state",
        (1, state.changes, state.first_number, state.last_number, int(state.consumers_in_doubt), state.digest),
    )


# The entries of a journal in SQL, and which of them a reader or a consumer asks for. In the caller's transaction.

SESSION, QUERY, ENVELOPE = "session", "query", "envelope"  # the kinds of a tombstone
_COLUMNS = {SESSION: "session_id", QUERY: "correlation_id", ENVELOPE: "envelope_id"}


def append(db: sqlite3.Connection, entries: Sequence[Entry], now: float) -> list[Appended]:
    """Number and store entries; one whose envelope id is known keeps its number, one with a tombstone no payload.

    Some ids can be computed before the message is there, as that of an answer from its query's. A message on another
    subject that has taken such an id does not keep the rightful one out.
    """
    before = state = read_state(db)
    appended: list[Appended] = []
    for entry in entries:
        known = _with_id(db, entry.envelope_id)
        if known is not None and known[1] != entry.subject:
            entry = replace(entry, envelope_id=f"{entry.envelope_id} {entry.subject}")
            known = _with_id(db, entry.envelope_id)
        if known is not None:
            appended.append(Appended(known[0], is_new=False))
            continue
        is_redacted = _is_buried(db, entry)
        stored = Stored(state.last_number + 1, float(now), is_redacted, entry)
        state = state.appended(add(db, "entries", _row_of(stored)))
        appended.append(Appended(state.last_number, is_new=True))
    if state != before:
        write_state(db, state)
    return appended


def _with_id(db: sqlite3.Connection, envelope_id: str) -> tuple[int, str] | None:
    """Return the number and the subject of the entry with an id."""
    known: tuple[int, str] | None = db.execute(
        "SELECT number, subject FROM entries WHERE envelope_id = ?", (envelope_id,)
    ).fetchone()
    return known


def read(db: sqlite3.Connection, where: str, parameters: Sequence[Any]) -> Iterator[Stored]:
    """The entries that SQL selects. Raises `StoreDamaged` for one that does not match its checksum."""
    for number, committed_at, redacted, subject, envelope_id, *rest in rows(db, "entries", where, parameters):
        yield Stored(number, committed_at, bool(redacted), Entry(subject, envelope_id, *rest))


def mentioning(db: sqlite3.Connection, text: str, after: int, up_to: int) -> list[Stored]:
    """Return the entries of a range, its end included, whose payload contains a text."""
    condition = "number > ? AND number <= ? AND redacted = 0 AND instr(frame, ?) ORDER BY number"
    return list(read(db, condition, (after, up_to, text.encode())))


def redact(db: sqlite3.Connection, kind: str, identifier: str) -> int:
    """Remove the payloads of a session, a query or an envelope; returns their number.

    Tombstones remain: a salvage respects them, and they also apply to later entries of the same queries or envelope. A
    session may continue.
    """
    state = read_state(db)
    put(db, "tombstones", (kind, identifier, state.last_number))
    if kind == SESSION:
        sql = "SELECT DISTINCT correlation_id FROM entries WHERE session_id = ? AND redacted = 0"
        for (query_id,) in db.execute(sql, (identifier,)).fetchall():
            put(db, "tombstones", (QUERY, query_id, state.last_number))
    write_state(db, state.changed())
    return bury(db, kind, identifier, state.last_number)


def bury(db: sqlite3.Connection, kind: str, identifier: str, up_to: int) -> int:
    """Carry out a tombstone for all entries up to a number."""
    condition = f"{_COLUMNS[kind]} = ? AND number <= ? AND redacted = 0"
    numbers = db.execute(f"SELECT number FROM entries WHERE {condition}", (identifier, up_to)).fetchall()
    for (number,) in numbers:
        for stored in read(db, "number = ?", (number,)):
            put_entry(db, Stored(number, stored.committed_at, True, stored.entry))
    return len(numbers)


def put_entry(db: sqlite3.Connection, stored: Stored) -> bytes:
    """Write a row, over the one with the same number; returns its checksum."""
    return put(db, "entries", _row_of(stored))


def _row_of(stored: Stored) -> tuple[Any, ...]:
    """The values of a row but its checksum, the payload left out if it is redacted."""
    entry = stored.entry
    frame = entry.frame[: entry.frame.rfind(b"\0") + 1] if stored.redacted else entry.frame
    return (
        stored.number, stored.committed_at, int(stored.redacted), entry.subject, entry.envelope_id, entry.sender,
        entry.instance, entry.seq, entry.correlation_id, entry.session_id, float(entry.sent_at), frame,
    )  # fmt: skip


def _is_buried(db: sqlite3.Connection, entry: Entry) -> bool:
    keys = (ENVELOPE, entry.envelope_id, QUERY, entry.correlation_id)
    return any(True for _ in rows(db, "tombstones", "(kind = ? AND id = ?) OR (kind = ? AND id = ?)", keys))


class Filters(TypedDict, total=False):
    """The conditions of a search of the journal: entries match everything given.

    A subject that ends in a dot means its family. `since` (included) and `until` (not) are times of commit, in seconds
    since 1970.
    """

    after: int  # only higher numbers
    before: int | None  # only lower numbers; without `after` the highest first
    subjects: Sequence[str]
    session_id: str | None
    correlation_id: str | None
    correlation_ids: Sequence[str]
    sender: str | None
    since: float | None
    until: float | None


def where(filters: Filters, limit: int) -> tuple[str, list[Any]]:
    """SQL behind WHERE for at most `limit` entries in order, and its parameters."""
    clause, subjects = subject_clause(filters.get("subjects", ()))
    conditions = {
        "number < ?": filters.get("before"),
        "session_id = ?": filters.get("session_id"),
        "correlation_id = ?": filters.get("correlation_id"),
        "sender = ?": filters.get("sender"),
        "committed_at >= ?": filters.get("since"),
        "committed_at < ?": filters.get("until"),
    }
    used = {sql: value for sql, value in conditions.items() if value is not None}
    queries = filters.get("correlation_ids", ())
    among = [f"correlation_id IN ({', '.join('?' * len(queries))})"] if queries else []
    if queries:  # they are found by that index, and not by that of the subjects
        clause = clause.replace("subject ", "+subject ")
    sql = " AND ".join(["number > ?", clause, *used, *among])
    order = "DESC" if filters.get("before") is not None and not filters.get("after") else "ASC"
    return f"{sql} ORDER BY number {order} LIMIT ?", [
        filters.get("after", 0),
        *subjects,
        *used.values(),
        *queries,
        limit,
    ]


def subject_clause(subjects: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """SQL for "any of these subjects or families", and its parameters; without subjects it is true."""
    clauses, parameters = [], []
    for subject in subjects:
        if subject.endswith("."):
            clauses.append("subject >= ? AND subject < ?")
            parameters += [subject, _end_of(subject)]
        else:
            clauses.append("subject = ?")
            parameters.append(subject)
    return f"({' OR '.join(clauses) or '1'})", tuple(parameters)


def of_subjects(db: sqlite3.Connection, columns: str, subjects: Sequence[str], above: int) -> Iterator[tuple[Any, ...]]:
    """`columns` (the number first) of the entries above a number, in order, read as far as the caller goes.

    It costs nothing how many entries of other subjects lie between: each subject is followed in its index.
    """
    if not subjects:
        return db.execute(f"SELECT {columns} FROM entries WHERE number > ? ORDER BY number", (above,))
    sql = f"SELECT {columns} FROM entries WHERE subject = ? AND number > ? ORDER BY number"
    return heapq.merge(*(db.execute(sql, (each, above)) for each in _whole(db, subjects)), key=itemgetter(0))


def _whole(db: sqlite3.Connection, subjects: Sequence[str]) -> set[str]:
    """The subjects that there are entries of in place of families."""
    found = {subject for subject in subjects if not subject.endswith(".")}
    for family in set(subjects) - found:
        subject: str | None = family
        while subject is not None:
            found.add(subject)
            sql = "SELECT MIN(subject) FROM entries WHERE subject > ? AND subject < ?"
            (subject,) = db.execute(sql, (subject, _end_of(family))).fetchone()
    return found


def _end_of(family: str) -> str:
    return family[:-1] + "/"  # "/" comes right after "."


# The high-water mark: what a journal has acknowledged, synced in a separate small file, so that a lost tail is noticed.

log = logging.getLogger(__name__)

SLOT_BYTES = 4096
_MAGIC = b"L2MARK\0\1"
_FIELDS = struct.Struct(f"<{len(_MAGIC)}sQQQ?{DIGEST_BYTES}s")
_CHECKSUM_BYTES = 8


class HighWaterMark:
    """The high-water mark, a file open for writing; use as a context manager. Raises `StoreDamaged` when neither slot
    is valid."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._slot, self.state = _newest(path)
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def advance(self, state: JournalState) -> None:
        """Note that all of `state` may be acknowledged; it is on the disk when this returns. Raises `OSError`."""
        slot = 1 - self._slot  # never over the one that counts
        self._file.seek(slot * SLOT_BYTES)
        self._file.write(_packed(state))
        getattr(os, "fdatasync", os.fsync)(self._file.fileno())
        self._slot, self.state = slot, state

    def has_its_name(self) -> bool:
        """Whether the next start would find the file: it was neither removed nor replaced."""
        try:
            return os.path.samestat(self._path.stat(), self._opened)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def make_anew(self) -> None:
        """Write one with this state under its name: a start without it, or with an older one, would take a sound
        journal for a damaged one. Raises `OSError`, and `StoreGone` if its folder is missing.
        """
        try:
            create_mark(self._path, self.state)
        except (FileNotFoundError, NotADirectoryError):
            raise StoreGone(self._path) from None
        log.warning("%s was removed or replaced while the system runs: it is created again", self._path)
        self._file.close()
        self._open()
        self._slot = 0

    def _open(self) -> None:
        self._file = self._path.open("r+b", buffering=0)
        self._opened = os.fstat(self._file.fileno())


def mark_path(path: Path) -> Path:
    """The high-water mark of the journal at `path`."""
    return path.with_name(path.name + ".mark")


def create_mark(path: Path, state: JournalState) -> None:
    """Write a new mark at `path`, whole or not at all."""
    half_made = path.with_name(path.name + ".new")
    with half_made.open("wb") as file:
        file.write(_packed(state).ljust(SLOT_BYTES, b"\0") * 2)
        file.flush()
        os.fsync(file.fileno())
    half_made.replace(path)
    sync_folder(path.parent)


def read_mark(path: Path) -> JournalState | None:
    """Return the content of the mark at `path`; None if there is none or neither slot is valid."""
    try:
        return _newest(path)[1]
    except (FileNotFoundError, StoreDamaged):
        return None


def sync_folder(folder: Path) -> None:
    """Have the names in `folder` on the disk; where folders cannot be synced, that is the system's business."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _newest(path: Path) -> tuple[int, JournalState]:
    content = path.read_bytes()
    found = [
        (slot, state)
        for slot in (0, 1)
        if (state := _unpacked(content[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES])) is not None
    ]
    if not found:
        raise StoreDamaged(f"{path}: neither slot of the high-water mark is valid")
    return max(found, key=lambda pair: pair[1].changes)


def _packed(state: JournalState) -> bytes:
    body = _FIELDS.pack(_MAGIC, *state)
    return body + hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


def _unpacked(slot: bytes) -> JournalState | None:
    body = slot[: _FIELDS.size]
    checksum = slot[_FIELDS.size : _FIELDS.size + _CHECKSUM_BYTES]
    if len(body) < _FIELDS.size or hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest() != checksum:
        return None
    magic, *fields = _FIELDS.unpack(body)
    return JournalState(*fields) if magic == _MAGIC else None
