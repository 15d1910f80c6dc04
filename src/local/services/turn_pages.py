"""The turns of a session a page at a time: by position, so that what is asked meanwhile moves nothing. In the caller's
transaction."""

from __future__ import annotations

import sqlite3
from typing import Literal, NamedTuple

from local.errors import NotOnRecord
from local.services.turn_record import END, StoredTurn, stored_turn

Order = Literal["before", "after", "at"]
_OF_SESSION = "FROM turns WHERE session_id = ? AND respondent_id = ? AND refused IS NULL"


class SessionHead(NamedTuple):
    """Whose a session is, and how many turns it has."""

    session_id: str
    user_id: str | None
    incognito: bool
    total: int


class TurnPlace(NamedTuple):
    """A place in a session: a position, or where a query is; its beginning or its end without one."""

    order: Order = "before"
    query_id: str = ""
    position: int | None = None


class TurnPage(NamedTuple):
    """Turns, those nearest to the place first; `has_more` says whether there are others beyond them. `contexts` has,
    by query, what the model was told from the memory, as JSON; nothing of it once a part of it was deleted."""

    head: SessionHead
    turns: list[StoredTurn]
    has_more: bool
    contexts: dict[str, str]


def head_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> SessionHead:
    """Raises `NotOnRecord` for a session that there is not."""
    key = (session_id, respondent_id)
    (total,) = db.execute(f"SELECT count(*) {_OF_SESSION}", key).fetchone()
    first = db.execute(f"SELECT user_id, incognito {_OF_SESSION} ORDER BY position LIMIT 1", key).fetchone()
    if first is None:
        branch = "SELECT user_id, incognito FROM branches WHERE session_id = ? AND respondent_id = ?"
        first = db.execute(branch, key).fetchone()
    if first is None:
        raise NotOnRecord(f"there is no session {session_id}")
    return SessionHead(session_id, first["user_id"], bool(first["incognito"]), total)


def page_of(db: sqlite3.Connection, respondent_id: str, session_id: str, place: TurnPlace, limit: int) -> TurnPage:
    """At most `limit` turns before or after a place, or the one that is there. Raises `NotOnRecord`."""
    head = head_of(db, respondent_id, session_id)
    position = place.position
    if place.query_id:
        position = _position(db, respondent_id, session_id, place.query_id)
    if position is None:
        position = END if place.order == "before" else 0
    compared, direction = {"before": ("<", "DESC"), "after": (">", "ASC"), "at": ("=", "ASC")}[place.order]
    sql = f"SELECT * {_OF_SESSION} AND position {compared} ? ORDER BY position {direction} LIMIT ?"
    rows = db.execute(sql, (session_id, respondent_id, position, limit + 1)).fetchall()
    turns = [stored_turn(row) for row in rows[:limit]]
    return TurnPage(head, turns, len(rows) > limit, _contexts(db, respondent_id, turns))


def _contexts(db: sqlite3.Connection, respondent_id: str, turns: list[StoredTurn]) -> dict[str, str]:
    sql = (
        "SELECT json_extract(body, '$.context') AS context FROM exchanges"
        " WHERE query_id = ? AND respondent_id = ? AND json_valid(body)"
    )
    found = ((turn.query_id, db.execute(sql, (turn.query_id, respondent_id)).fetchone()) for turn in turns)
    return {query_id: row["context"] for query_id, row in found if row is not None and row["context"]}


def _position(db: sqlite3.Connection, respondent_id: str, session_id: str, query_id: str) -> int:
    row = db.execute(
        f"SELECT position {_OF_SESSION} AND query_id = ?", (session_id, respondent_id, query_id)
    ).fetchone()
    if row is None:
        raise NotOnRecord(f"there is no query {query_id} in session {session_id}")
    return int(row["position"])
