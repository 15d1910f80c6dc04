"""Engrams in and out of their tables. Every function runs in a transaction of its caller's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from local.errors import NotOnRecord
from local.services.engrams import early_ratings, lexical, succession
from local.services.engrams.engram import (
    USERS_RESPONDENT,
    AnswerRating,
    Change,
    Engram,
    EngramDraft,
    Ingested,
    Origin,
)
from local.services.engrams.facts import FactFinding
from local.services.engrams.masking import masked
from local.services.engrams.store import stored_engram
from local.services.engrams.succession import CLASSIFIED, PENDING
from local.services.engrams.words import language_of


def ingest(db: sqlite3.Connection, exchange: EngramDraft, findings: Sequence[FactFinding] = ()) -> Ingested:
    """Store an exchange once, without the secrets in it and with the facts that were found in it, index its words, and
    note a rating that came before it."""
    if is_gone(db, (exchange.query_id,), exchange.session_id):
        return Ingested.DELETED
    query, answer = masked(exchange.query), masked(exchange.answer)
    row = db.execute(
        "INSERT INTO engrams (engram_id, query_id, respondent_id, session_id, user_id, query, answer, origin, asked_at,"
        " language, searchable, recalled, tainted, classified) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING RETURNING *",
        (exchange.engram_id, exchange.query_id, exchange.respondent_id, exchange.session_id, exchange.user_id, query,
         answer, _origin(db, exchange), exchange.asked_at, language_of(f"{query}\n{answer}"),
         exchange.respondent_id == USERS_RESPONDENT, json.dumps(exchange.recalled), exchange.tainted,
         PENDING if exchange.by_user else CLASSIFIED),
    ).fetchall()  # fmt: skip
    early = early_ratings.find(db, exchange.query_id, exchange.respondent_id)
    if row and row[0]["searchable"]:
        lexical.add_to_index(db, row[0])
    if row:
        succession.apply(db, stored_engram(row[0]), findings)
    if early is not None:
        rate(db, early, early.rated_at)
        return Ingested.RATED
    return Ingested.NEW if row else Ingested.KNOWN


def engram(db: sqlite3.Connection, user_id: str, engram_id: str) -> Engram:
    """An engram of a user's. Raises `NotOnRecord`, also where it is somebody else's."""
    return stored_engram(row_of(db, user_id, engram_id))


def recent(db: sqlite3.Connection, user_id: str, limit: int, before: tuple[float, str]) -> list[Engram]:
    """A user's engrams before a time and engram_id, the latest first, of one time by id; what other respondents said is
    no user's business."""
    sql = (
        "SELECT * FROM engrams WHERE user_id = ? AND (asked_at, engram_id) < (?, ?) AND respondent_id = ?"
        " ORDER BY asked_at DESC, engram_id DESC LIMIT ?"
    )
    return [stored_engram(row) for row in db.execute(sql, (user_id, *before, USERS_RESPONDENT, limit)).fetchall()]


def pinned(db: sqlite3.Connection, user_id: str) -> list[Engram]:
    """What a user has pinned, in the order of pinning."""
    sql = (
        "SELECT * FROM engrams WHERE user_id = ? AND pinned ORDER BY"
        " (SELECT max(changes.rowid) FROM changes WHERE changes.number = engrams.number AND what = 'pinned')"
    )
    return [stored_engram(row) for row in db.execute(sql, (user_id,)).fetchall()]


def told_users(db: sqlite3.Connection) -> list[str]:
    """The users who have a current fact or a pin."""
    sql = "SELECT user_id FROM facts WHERE superseded_at IS NULL UNION SELECT user_id FROM engrams WHERE pinned"
    return [row["user_id"] for row in db.execute(sql).fetchall()]


def pin(db: sqlite3.Connection, user_id: str, engram_id: str, value: int, now: float) -> None:
    """Pin an engram (1) or take the pin out (0). Raises `NotOnRecord`."""
    _change(db, row_of(db, user_id, engram_id), "pinned", value, now)


def grade(db: sqlite3.Connection, engram_id: str, score: float | None, now: float) -> bool:
    """Note the critic's score, None if it gave none; False if there is no such engram."""
    row = _find(db, engram_id)
    return row is not None and _change(db, row, "score", score, now)


def rate(db: sqlite3.Connection, rating: AnswerRating, now: float) -> bool:
    """Note the user's rating, or keep it until its engram comes; False if it is not noted: a later one may be known."""
    row = _find(db, rating.engram_id)
    if row is None and not is_gone(db, (rating.query_id,), rating.session_id):
        early_ratings.keep(db, rating, now)
    if row is None or (row["rated_at"] or rating.rated_at) > rating.rated_at:
        return False
    db.execute("UPDATE engrams SET rated_at = ? WHERE number = ?", (rating.rated_at, row["number"]))
    return _change(db, row, "sentiment", rating.sentiment, rating.rated_at)


def compare(db: sqlite3.Connection, engram_id: str, winner: str, now: float) -> bool:
    """Note whose answer won when this one was compared, or "tie"; False if there is no such engram."""
    row = _find(db, engram_id)
    return row is not None and _change(db, row, "winner", winner, now)


def changes(db: sqlite3.Connection, user_id: str, engram_id: str) -> list[Change]:
    """Everything said about one of a user's engrams, oldest first. Raises `NotOnRecord`."""
    number = row_of(db, user_id, engram_id)["number"]
    rows = db.execute("SELECT at, what, value FROM changes WHERE number = ? ORDER BY rowid", (number,)).fetchall()
    return [Change(row["at"], row["what"], row["value"]) for row in rows]


def repeated_in(db: sqlite3.Connection, user_id: str, engram_id: str) -> tuple[str, ...]:
    """A user's engrams of the queries in which an answer rests on this engram, one for each query, oldest first."""
    # Where another respondent's answer is the one that does, the users' own stands for it: min() chooses the row.
    sql = (
        "SELECT engram_id, min(respondent_id) FROM engrams WHERE query_id IN"
        " (SELECT query_id FROM engrams WHERE user_id = ? AND instr(recalled, ?)) GROUP BY query_id ORDER BY number"
    )
    return tuple(row["engram_id"] for row in db.execute(sql, (user_id, json.dumps(engram_id))).fetchall())


def session_repeated_in(db: sqlite3.Connection, session_id: str) -> tuple[str, ...]:
    """The engrams in other sessions that had recalled something of this one, as in `repeated_in`."""
    sql = (
        "SELECT engram_id, min(respondent_id) FROM engrams WHERE session_id != ?1 AND query_id IN (SELECT query_id"
        " FROM engrams, json_each(recalled) WHERE recalled != '[]' AND value IN"
        " (SELECT engram_id FROM engrams WHERE session_id = ?1)) GROUP BY query_id ORDER BY number"
    )
    return tuple(row["engram_id"] for row in db.execute(sql, (session_id,)).fetchall())


def _origin(db: sqlite3.Connection, exchange: EngramDraft) -> Origin:
    """Where an answer's content comes from, also by way of what was recalled for it: that makes nothing cleaner."""
    marks = ",".join("?" * len(exchange.recalled))
    rows = db.execute(f"SELECT DISTINCT origin FROM engrams WHERE engram_id IN ({marks})", exchange.recalled).fetchall()
    origins = {exchange.origin, *(Origin(row["origin"]) for row in rows)}
    return next((origin for origin in (Origin.WEB, Origin.TOOL) if origin in origins), exchange.origin)


def _change(db: sqlite3.Connection, row: sqlite3.Row, what: str, value: float | str | None, at: float) -> bool:
    if row[what] != value:
        db.execute(f"UPDATE engrams SET {what} = ? WHERE number = ?", (value, row["number"]))
        told = f"{value:g}" if isinstance(value, int | float) else value
        db.execute("INSERT INTO changes VALUES (?, ?, ?, ?)", (row["number"], at, what, told))
    return True


def _find(db: sqlite3.Connection, engram_id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (engram_id,)).fetchone()
    return row


def row_of(db: sqlite3.Connection, user_id: str, engram_id: str) -> sqlite3.Row:
    """The row of one of a user's engrams. Raises `NotOnRecord`."""
    row = _find(db, engram_id)
    if row is None or row["user_id"] != user_id:
        raise NotOnRecord(f"there is no engram {engram_id}")
    return row


@dataclass(frozen=True, slots=True)
class Deletion:
    """An engram that is gone from here. Until everybody has been told, this is what is known of it; `redacted` says
    whether the record of the bus has lost what it held."""

    engram_id: str
    query_id: str
    respondent_id: str
    user_id: str
    redacted: bool


def is_gone(db: sqlite3.Connection, query_ids: Sequence[str], session_id: str) -> bool:
    """Whether what any of the ids names, or the whole session, was deleted before."""
    marks = ",".join("?" * len(query_ids))
    sql = (
        f"SELECT 1 FROM tombstones WHERE query_id IN ({marks})"
        " UNION ALL SELECT 1 FROM session_tombstones WHERE session_id = ? LIMIT 1"
    )
    return db.execute(sql, (*query_ids, session_id)).fetchone() is not None


def delete(db: sqlite3.Connection, query_id: str, now: float) -> None:
    """Remove what all respondents said to a query, and what hangs on it, such as notes. It stays away, whoever brings
    it again."""
    rows = db.execute("SELECT * FROM engrams WHERE query_id = ?1 OR note_of = ?1", (query_id,)).fetchall()
    _delete(db, rows, now)


def delete_session(db: sqlite3.Connection, session_id: str, now: float) -> int:
    """Remove everything of a session, and whatever else comes of it; returns how many engrams there were."""
    db.execute("INSERT OR IGNORE INTO session_tombstones VALUES (?, ?)", (session_id, now))
    early_ratings.forget_session(db, session_id)
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
    after = {each["number"]: each for row in found for each in lexical.exchanges_after(db, row)}
    for row in found:
        lexical.remove_from_index(db, row)
    succession.forget(db, numbers)
    for row in rows:
        db.execute("DELETE FROM engrams WHERE number = ?", (row["number"],))
        db.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (row["query_id"], now))
        told = (row["engram_id"], row["query_id"], row["respondent_id"], row["user_id"])
        db.execute("INSERT INTO deletions (engram_id, query_id, respondent_id, user_id) VALUES (?, ?, ?, ?)", told)
        sql = "UPDATE engrams SET superseded_by = NULL WHERE superseded_by = ? AND note_of IS NOT NULL"
        db.execute(sql, (row["engram_id"],))  # the note whose place it took holds again
    for number, row in after.items():
        if number not in numbers:
            lexical.renew_in_index(db, row)
    if rows:
        lexical.scrub(db)
