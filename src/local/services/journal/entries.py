"""The entries of a journal in SQL. Every function works in the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from local.services.journal.entry import Appended, Entry, Stored
from local.services.journal.schema import put, rows
from local.services.journal.state import read_state, write_state

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
        state = state.appended(put_entry(db, Stored(state.last_number + 1, float(now), is_redacted, entry)))
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


def contiguous(db: sqlite3.Connection, sender: str, instance: str) -> dict[str, int]:
    """For each subject the highest seq up to which nothing of this sender's instance is missing.

    Where entries have been removed already, the count starts at what is left; else at 1.
    """
    first_hole = db.execute(
        "SELECT subject, MIN(seq), (SELECT MIN(seq) FROM entries WHERE sender = a.sender AND instance = a.instance"
        " AND subject = a.subject) FROM entries a WHERE sender = ? AND instance = ? AND NOT EXISTS (SELECT 1 FROM"
        " entries b WHERE b.sender = a.sender AND b.instance = a.instance AND b.subject = a.subject"
        " AND b.seq = a.seq + 1) GROUP BY subject",
        (sender, instance),
    )
    has_all = read_state(db).first_number == 1
    return {subject: 0 if has_all and lowest > 1 else highest for subject, highest, lowest in first_hole}


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
    """Write a row, the payload left out if it is redacted; returns its checksum."""
    entry = stored.entry
    frame = entry.frame[: entry.frame.rfind(b"\0") + 1] if stored.redacted else entry.frame
    return put(
        db,
        "entries",
        (stored.number, stored.committed_at, int(stored.redacted), entry.subject, entry.envelope_id, entry.sender,
         entry.instance, entry.seq, entry.correlation_id, entry.session_id, float(entry.sent_at), frame),
    )  # fmt: skip


def _is_buried(db: sqlite3.Connection, entry: Entry) -> bool:
    keys = (ENVELOPE, entry.envelope_id, QUERY, entry.correlation_id)
    return any(True for _ in rows(db, "tombstones", "(kind = ? AND id = ?) OR (kind = ? AND id = ?)", keys))
