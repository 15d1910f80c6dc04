"""Deleting exchanges for good, and what then remains to be done elsewhere. In a transaction of the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from local.services.engrams import indexing
from local.services.engrams.engram import Exchange


@dataclass(frozen=True, slots=True)
class Deletion:
    """An engram that is gone from here. Until everybody has been told, this is what is known of it; `redacted` says
    whether the record of the bus has lost what it held."""

    engram_id: str
    query_id: str
    respondent_id: str
    user_id: str
    redacted: bool


def is_deleted(db: sqlite3.Connection, exchange: Exchange) -> bool:
    """Whether the exchange, or its whole session, was deleted before."""
    sql = (
        "SELECT 1 FROM tombstones WHERE query_id = ?"
        " UNION ALL SELECT 1 FROM session_tombstones WHERE session_id = ? LIMIT 1"
    )
    return db.execute(sql, (exchange.query_id, exchange.session_id)).fetchone() is not None


def delete(db: sqlite3.Connection, query_id: str, now: float) -> None:
    """Remove what all respondents said to a query, and what hangs on it. It stays away, whoever brings it again."""
    rows = db.execute("SELECT * FROM engrams WHERE query_id = ?", (query_id,)).fetchall()
    _delete(db, rows, now)


def delete_session(db: sqlite3.Connection, session_id: str, now: float) -> int:
    """Remove everything of a session, and whatever else comes of it; returns how many engrams there were."""
    db.execute("INSERT OR IGNORE INTO session_tombstones VALUES (?, ?)", (session_id, now))
    rows = db.execute("SELECT * FROM engrams WHERE session_id = ?", (session_id,)).fetchall()
    _delete(db, rows, now)
    return len(rows)


def unfinished(db: sqlite3.Connection) -> list[Deletion]:
    """The deletions that not everybody has been told of."""
    rows = db.execute("SELECT * FROM deletions ORDER BY engram_id").fetchall()
    return [
        Deletion(row["engram_id"], row["query_id"], row["respondent_id"], row["user_id"], bool(row["redacted"]))
        for row in rows
    ]


def note_redacted(db: sqlite3.Connection, engram_id: str) -> None:
    """The record of the bus holds nothing of it any more."""
    db.execute("UPDATE deletions SET redacted = 1 WHERE engram_id = ?", (engram_id,))


def finish(db: sqlite3.Connection, engram_id: str) -> None:
    """Everybody has been told."""
    db.execute("DELETE FROM deletions WHERE engram_id = ?", (engram_id,))


def _delete(db: sqlite3.Connection, rows: Sequence[sqlite3.Row], now: float) -> None:
    numbers = {row["number"] for row in rows}
    found = [row for row in rows if row["searchable"]]
    after = {each["number"]: each for row in found for each in indexing.exchanges_after(db, row)}
    for row in found:
        indexing.remove(db, row)
    for row in rows:
        db.execute("DELETE FROM engrams WHERE number = ?", (row["number"],))
        db.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (row["query_id"], now))
        told = (row["engram_id"], row["query_id"], row["respondent_id"], row["user_id"])
        db.execute("INSERT INTO deletions (engram_id, query_id, respondent_id, user_id) VALUES (?, ?, ?, ?)", told)
    for number, row in after.items():
        if number not in numbers:
            indexing.renew(db, row)
    if rows:
        indexing.scrub(db)
        db.execute("UPDATE vector_index SET deletions = deletions + 1")
