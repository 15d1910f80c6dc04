"""The lexical index over the engrams: an exchange is found by its own words and, a little, by those before it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from local.services.engrams.words import Language, indexable

EXCHANGES_BEFORE = 2
_GIST = 10_000  # characters; what a longer text is about has been said by then


def add(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Index one engram together with the exchanges before it."""
    context = "\n".join(_gist(before) for before in exchanges_before(db, engram))
    sql = f"INSERT INTO {Language(engram['language'])} (rowid, exchange, context) VALUES (?, ?, ?)"
    db.execute(sql, (engram["number"], indexable(f"{engram['query']}\n{engram['answer']}"), indexable(context)))


def remove(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Take one engram out of the index."""
    db.execute(f"DELETE FROM {Language(engram['language'])} WHERE rowid = ?", (engram["number"],))


def renew(db: sqlite3.Connection, engram: sqlite3.Row) -> None:
    """Index an engram again, words and vector, because one before it is gone."""
    remove(db, engram)
    add(db, engram)
    db.execute("DELETE FROM vectors WHERE number = ?", (engram["number"],))
    db.execute("UPDATE engrams SET embedded = 0, revision = revision + 1 WHERE number = ?", (engram["number"],))


def scrub(db: sqlite3.Connection) -> None:
    """Drop the words of removed engrams from the index itself, which otherwise only notes that they are gone.

    FTS5's `secure-delete` would do it row by row, but needs SQLite 3.42 in whatever opens the file from then on.
    """
    for table in Language:
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def exchanges_before(db: sqlite3.Connection, engram: sqlite3.Row) -> list[sqlite3.Row]:
    """The one or two exchanges before this one in its session, oldest first."""
    return _neighbours(db, engram, "number < ? ORDER BY number DESC")[::-1]


def exchanges_after(db: sqlite3.Connection, engram: sqlite3.Row) -> list[sqlite3.Row]:
    """The exchanges that are indexed together with this one."""
    return _neighbours(db, engram, "number > ? ORDER BY number")


def embeddable(engram: sqlite3.Row) -> str:
    """What is embedded of an exchange."""
    return _gist(engram)


def embeddable_context(before: Iterable[sqlite3.Row]) -> str:
    """What is embedded of the exchanges before one: what was asked."""
    return "\n".join(row["query"][:_GIST] for row in before)


def _neighbours(db: sqlite3.Connection, engram: sqlite3.Row, where: str) -> list[sqlite3.Row]:
    sql = f"SELECT * FROM engrams WHERE session_id = ? AND user_id = ? AND searchable AND {where} LIMIT ?"
    key = (engram["session_id"], engram["user_id"], engram["number"], EXCHANGES_BEFORE)
    return db.execute(sql, key).fetchall()


def _gist(engram: sqlite3.Row) -> str:
    return f"{engram['query'][:_GIST]}\n{engram['answer'][:_GIST]}"
