"""The entries of a journal in SQL, and which of them a reader or a consumer asks for. In the caller's transaction."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, TypedDict

from local.journal.store.entry import Appended, Entry, Stored
from local.journal.store.schema import add, put, read_state, rows, write_state

SESSION, QUERY, ENVELOPE = "session", "query", "envelope"  # the kinds of a tombstone
_COLUMNS = {SESSION: "session_id", QUERY: "correlation_id", ENVELOPE: "envelope_id"}


def append(db: sqlite3.Connection, entries: Sequence[Entry], now: float) -> list[Appended]:
    """Number and store entries; one whose envelope id is known keeps its number, one with a tombstone no payload."""
    before = state = read_state(db)
    appended: list[Appended] = []
    for entry in entries:
        known = db.execute("SELECT number FROM entries WHERE envelope_id = ?", (entry.envelope_id,)).fetchone()
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


def read(db: sqlite3.Connection, where: str, parameters: Sequence[Any]) -> Iterator[Stored]:
    """The entries that SQL selects. Raises `StoreDamaged` for one that does not match its checksum."""
    for number, committed_at, redacted, subject, envelope_id, *rest in rows(db, "entries", where, parameters):
        yield Stored(number, committed_at, bool(redacted), Entry(subject, envelope_id, *rest))


def mentioning(db: sqlite3.Connection, text: str, after: int, up_to: int) -> list[Stored]:
    """The entries of a range, its end included, whose payload contains a text."""
    condition = "number > ? AND number <= ? AND redacted = 0 AND instr(frame, ?) ORDER BY number"
    return list(read(db, condition, (after, up_to, text.encode())))


def redact(db: sqlite3.Connection, kind: str, identifier: str) -> int:
    """Take the payloads from what a session, a query or an envelope has left so far; returns how many there were.

    Tombstones stay: a salvage honours them, and what is appended only later of the same queries, or of the envelope,
    comes under them. A session may go on.
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
    """Which entries are wanted: those that match everything given.

    A subject that ends in a dot stands for its family. `since` (included) and `until` (not) are times of commit, in
    seconds since 1970.
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
    if queries:  # by whose index they are found, and not by that of the subjects
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
