"""Engrams in and out of their tables. Every function runs in a transaction of its caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from local.errors import NotOnRecord
from local.services.engrams import indexing
from local.services.engrams.engram import USERS_RESPONDENT, Change, Engram, Exchange, Ingested
from local.services.engrams.masking import masked
from local.services.engrams.schema import stored_engram
from local.services.engrams.words import language_of


def ingest(db: sqlite3.Connection, exchange: Exchange) -> Ingested:
    """Store an exchange once, without the secrets in it, and index its words."""
    if db.execute("SELECT 1 FROM tombstones WHERE engram_id = ?", (exchange.engram_id,)).fetchone():
        return Ingested.DELETED
    query, answer = masked(exchange.query), masked(exchange.answer)
    row = db.execute(
        "INSERT INTO engrams (engram_id, query_id, respondent_id, session_id, user_id, query, answer, origin, asked_at,"
        " language, searchable) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING *",
        (exchange.engram_id, exchange.query_id, exchange.respondent_id, exchange.session_id, exchange.user_id, query,
         answer, exchange.origin, exchange.asked_at, language_of(f"{query}\n{answer}"),
         exchange.respondent_id == USERS_RESPONDENT),
    ).fetchall()  # fmt: skip
    if not row:
        return Ingested.KNOWN
    if row[0]["searchable"]:
        indexing.add(db, row[0])
    return Ingested.NEW


def engram(db: sqlite3.Connection, user_id: str, engram_id: str) -> Engram:
    """One of a user's engrams. Raises `NotOnRecord`, also where it is somebody else's."""
    return stored_engram(_row(db, user_id, engram_id))


def recent(db: sqlite3.Connection, user_id: str, limit: int, before: float) -> list[Engram]:
    """A user's engrams asked before a time, the latest first."""
    sql = "SELECT * FROM engrams WHERE user_id = ? AND asked_at < ? ORDER BY asked_at DESC, number DESC LIMIT ?"
    return [stored_engram(row) for row in db.execute(sql, (user_id, before, limit)).fetchall()]


def pinned(db: sqlite3.Connection, user_id: str) -> list[Engram]:
    """What a user has pinned, oldest first."""
    sql = "SELECT * FROM engrams WHERE user_id = ? AND pinned ORDER BY number"
    return [stored_engram(row) for row in db.execute(sql, (user_id,)).fetchall()]


def pin(db: sqlite3.Connection, user_id: str, engram_id: str, value: int, now: float) -> None:
    """Pin an engram (1) or take the pin out (0). Raises `NotOnRecord`."""
    _change(db, _row(db, user_id, engram_id), "pinned", value, now)


def grade(db: sqlite3.Connection, engram_id: str, score: float | None, now: float) -> bool:
    """Note the critic's score, None if it gave none; False if there is no such engram."""
    row = _find(db, engram_id)
    return row is not None and _change(db, row, "score", score, now)


def rate(db: sqlite3.Connection, engram_id: str, sentiment: int | None, rated_at: float) -> bool:
    """Note the user's rating, None for one withdrawn; False if there is no such engram or a later rating is known."""
    row = _find(db, engram_id)
    if row is None or (row["rated_at"] or rated_at) > rated_at:
        return False
    db.execute("UPDATE engrams SET rated_at = ? WHERE number = ?", (rated_at, row["number"]))
    return _change(db, row, "sentiment", sentiment, rated_at)


def compare(db: sqlite3.Connection, won_by: Sequence[tuple[str, bool | None]], now: float) -> int:
    """Note of each engram whether it won, None for a tie; returns how many of them are on record."""
    rows = [(row, won) for engram_id, won in won_by if (row := _find(db, engram_id)) is not None]
    for row, won in rows:
        _change(db, row, "winner", None if won is None else int(won), now)
    return len(rows)


def changes(db: sqlite3.Connection, user_id: str, engram_id: str) -> list[Change]:
    """Everything said about one of a user's engrams, oldest first. Raises `NotOnRecord`."""
    number = _row(db, user_id, engram_id)["number"]
    rows = db.execute("SELECT at, what, value FROM changes WHERE number = ? ORDER BY rowid", (number,)).fetchall()
    return [Change(row["at"], row["what"], row["value"]) for row in rows]


def delete(db: sqlite3.Connection, user_id: str, engram_id: str, now: float) -> None:
    """Remove an engram and all that hangs on it, for good. Raises `NotOnRecord`."""
    _delete(db, [_row(db, user_id, engram_id)], now)


def delete_session(db: sqlite3.Connection, user_id: str, session_id: str, now: float) -> int:
    """Remove everything of one of a user's sessions; returns how many engrams that were."""
    sql = "SELECT * FROM engrams WHERE user_id = ? AND session_id = ?"
    rows = db.execute(sql, (user_id, session_id)).fetchall()
    _delete(db, rows, now)
    return len(rows)


def _delete(db: sqlite3.Connection, rows: Sequence[sqlite3.Row], now: float) -> None:
    numbers = {row["number"] for row in rows}
    found = [row for row in rows if row["searchable"]]
    after = {each["number"]: each for row in found for each in indexing.exchanges_after(db, row)}
    for row in found:
        indexing.remove(db, row)
    for row in rows:
        db.execute("DELETE FROM engrams WHERE number = ?", (row["number"],))
        db.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (row["engram_id"], now))
    for number, row in after.items():
        if number not in numbers:
            indexing.renew(db, row)
    if rows:
        indexing.scrub(db)
        db.execute("UPDATE vector_index SET deletions = deletions + 1")


def _change(db: sqlite3.Connection, row: sqlite3.Row, what: str, value: float | None, at: float) -> bool:
    if row[what] != value:
        db.execute(f"UPDATE engrams SET {what} = ? WHERE number = ?", (value, row["number"]))
        told = None if value is None else f"{value:g}"
        db.execute("INSERT INTO changes VALUES (?, ?, ?, ?)", (row["number"], at, what, told))
    return True


def _find(db: sqlite3.Connection, engram_id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (engram_id,)).fetchone()
    return row


def _row(db: sqlite3.Connection, user_id: str, engram_id: str) -> sqlite3.Row:
    row = _find(db, engram_id)
    if row is None or row["user_id"] != user_id:
        raise NotOnRecord(f"there is no engram {engram_id}")
    return row
