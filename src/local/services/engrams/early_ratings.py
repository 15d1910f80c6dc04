"""Ratings of answers that are not stored yet: one that was heard live can be rated before it is on record, and memory
is given the rating first then. Every function runs in a transaction of its caller's."""

from __future__ import annotations

import sqlite3

from local.services.engrams.engram import AnswerRating

KEPT_SECONDS = 7 * 24 * 3600.0  # an answer that has not come by then is one that is not remembered


def keep(db: sqlite3.Connection, rating: AnswerRating, now: float) -> None:
    """Keep a rating until its answer comes, in place of an earlier one."""
    db.execute("DELETE FROM early_ratings WHERE kept_at < ?", (now - KEPT_SECONDS,))
    db.execute(
        "INSERT INTO early_ratings VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET sentiment = excluded.sentiment, rated_at = excluded.rated_at WHERE excluded.rated_at >= rated_at",
        (rating.query_id, rating.respondent_id, rating.session_id, rating.sentiment, rating.rated_at, now),
    )


def find(db: sqlite3.Connection, query_id: str, respondent_id: str) -> AnswerRating | None:
    """The rating that was kept for an answer, and is not settled."""
    row = db.execute(f"SELECT * FROM early_ratings WHERE {_OF_ANSWER}", (query_id, respondent_id)).fetchone()
    return None if row is None else AnswerRating(*row[:5])


def settle(db: sqlite3.Connection, query_id: str, respondent_id: str) -> None:
    """The answer has come, and whoever wants to know was told how it is rated."""
    db.execute(f"DELETE FROM early_ratings WHERE {_OF_ANSWER}", (query_id, respondent_id))


def forget_session(db: sqlite3.Connection, session_id: str) -> None:
    """Remove what is kept for answers of a session that is deleted."""
    db.execute("DELETE FROM early_ratings WHERE session_id = ?", (session_id,))


_OF_ANSWER = "query_id = ? AND respondent_id = ?"
