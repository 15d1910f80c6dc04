"""Sessions that begin with the turns of another one, up to where they branch off. In the caller's transaction.

The turns are copied, under ids of their own: what is asked in a branch, and what is deleted there, leaves the session
that it has branched off as it is. The branch keeps them when that session is deleted.
"""

from __future__ import annotations

import sqlite3
import uuid
from typing import Any, NamedTuple

from local.errors import NotOnRecord, SessionExists, TurnStillOpen
from local.services.turn_pages import head_of
from local.services.turn_record import SAID

_NAMESPACE = uuid.UUID("6c0f0a35-9d0b-4f0e-8a0c-51f1f2a3c7de")
_COPIED = (
    "query_id, respondent_id, session_id, user_id, envelope_id, query, body, in_history, status, attempt, tools,"
    " answer, outcome_subject, outcome, published, created_at, finished_at, incognito, copy_of, model"
)
_COPY = (
    f"INSERT OR IGNORE INTO turns ({_COPIED}) SELECT :copy, respondent_id, :branch, user_id, :copy, query,"
    " json_set(body, '$.query_id', :copy, '$.session_id', :branch), in_history, status, attempt, tools, answer,"
    " outcome_subject, json_set(outcome, '$.query_id', :copy, '$.session_id', :branch), 1, created_at, finished_at,"
    " incognito, coalesce(copy_of, query_id), model FROM turns WHERE position = :position"
)
_TAINT = (
    "INSERT OR IGNORE INTO taints SELECT :copy, :own, :branch FROM taints"
    " WHERE query_id = :old AND respondent_id = :own"
)
_SENT = (
    "INSERT OR IGNORE INTO exchanges SELECT :copy, :own, body FROM exchanges"
    " WHERE query_id = :old AND respondent_id = :own"
)
_FAMILY = (
    "WITH RECURSIVE up(id) AS (SELECT :session UNION SELECT branched_from FROM branches JOIN up ON session_id = up.id"
    " WHERE respondent_id = :own), family(id) AS (SELECT id FROM up UNION SELECT session_id FROM branches"
    " JOIN family ON branched_from = family.id WHERE respondent_id = :own)"
    " SELECT session_id, branched_from, before, (SELECT query_id FROM turns WHERE turns.session_id ="
    " branches.session_id AND turns.respondent_id = :own AND copy_of IS NULL AND refused IS NULL"
    " ORDER BY position LIMIT 1) AS first FROM branches WHERE respondent_id = :own"
    " AND session_id IN (SELECT id FROM family) ORDER BY branched_at, session_id"
)


class BranchPoint(NamedTuple):
    """Where a session is left: before a query that was asked in it, not copied there. With whose it is."""

    session_id: str
    before: str
    user_id: str | None
    incognito: bool


class NewBranch(NamedTuple):
    """A session that begins with the turns before a point. `branched_at` is seconds since 1970."""

    session_id: str
    point: BranchPoint
    branched_at: float


def branch_point(db: sqlite3.Connection, respondent_id: str, session_id: str, before: str) -> BranchPoint:
    """Before a copied query it is where the session is left that it was copied from, if there is that still.

    Raises `NotOnRecord`, and `TurnStillOpen` while one of the turns has no end that would be copied.
    """
    head = head_of(db, respondent_id, session_id)
    found = _turn(db, respondent_id, before)
    if found is None or found["session_id"] != session_id or found["refused"] is not None:
        raise NotOnRecord(f"there is no query {before} in session {session_id}")
    original = _turn(db, respondent_id, found["copy_of"]) if found["copy_of"] else None
    place = original or found
    sql = "SELECT query_id FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND status = 'open'"
    still_open = db.execute(sql, (place["session_id"], respondent_id, place["position"])).fetchone()
    if still_open is not None:
        raise TurnStillOpen(session_id, still_open["query_id"])
    return BranchPoint(place["session_id"], place["query_id"], head.user_id, head.incognito)


def require_new(db: sqlite3.Connection, respondent_id: str, session_id: str, point: BranchPoint) -> bool:
    """Whether there is no such session yet; False for this very branch. Raises `SessionExists` for any other one."""
    key = (session_id, respondent_id)
    row = db.execute("SELECT * FROM branches WHERE session_id = ? AND respondent_id = ?", key).fetchone()
    if row is not None and (row["branched_from"], row["before"], row["user_id"]) == point[:3]:
        return False
    if row is not None or db.execute("SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ?", key).fetchone():
        raise SessionExists(session_id)
    return True


def branch(db: sqlite3.Connection, respondent_id: str, new: NewBranch) -> None:
    """Make the new session, with what this record has of those turns; nothing if there is one already."""
    point, own = new.point, respondent_id
    row = (new.session_id, own, point.user_id, point.incognito, point.session_id, point.before, new.branched_at)
    if not db.execute("INSERT OR IGNORE INTO branches VALUES (?, ?, ?, ?, ?, ?, ?)", row).rowcount:
        return
    place = _turn(db, own, point.before)
    if place is None or place["session_id"] != point.session_id:
        return
    key = (point.session_id, own, place["position"])
    where = "FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ?"
    ended = f"SELECT position, query_id {where} AND status != 'open' AND refused IS NULL ORDER BY position"
    for turn in db.execute(ended, key).fetchall():
        copied = {"copy": copy_id(new.session_id, turn["query_id"]), "branch": new.session_id, "own": own}
        db.execute(_COPY, {**copied, "position": turn["position"]})
        for sql in (_TAINT, _SENT):
            db.execute(sql, {**copied, "old": turn["query_id"]})
    (said,) = db.execute(f"SELECT count(*) {SAID}", key).fetchone()
    summary = (
        "INSERT OR IGNORE INTO summaries SELECT ?, respondent_id, through, body FROM summaries"
        " WHERE session_id = ? AND respondent_id = ? AND through <= ?"
    )
    db.execute(summary, (new.session_id, point.session_id, own, said))
    lists = (
        "INSERT OR IGNORE INTO tool_lists SELECT ?, respondent_id, kind, body FROM tool_lists"
        " WHERE session_id = ? AND respondent_id = ?"
    )
    db.execute(lists, (new.session_id, point.session_id, own))


def copy_id(session_id: str, query_id: str) -> str:
    """The id that a query has in a branch: always the same, so that a branch which is made again is the same."""
    return uuid.uuid5(_NAMESPACE, f"{session_id}\n{query_id}").hex


def family_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> list[dict[str, Any]]:
    """All branches of a session, of the one that it has branched off, and of theirs: where each was left, and the
    `first` query that was asked in it, None if there is none yet."""
    return [dict(row) for row in db.execute(_FAMILY, {"session": session_id, "own": respondent_id})]


def copied_to(db: sqlite3.Connection, respondent_id: str, session_id: str) -> list[str]:
    """The other sessions that hold copies of the turns of one."""
    sql = (
        "SELECT DISTINCT session_id FROM turns WHERE respondent_id = :own AND session_id != :session AND copy_of IN"
        " (SELECT query_id FROM turns WHERE session_id = :session AND respondent_id = :own) ORDER BY session_id"
    )
    return [row["session_id"] for row in db.execute(sql, {"own": respondent_id, "session": session_id})]


def _turn(db: sqlite3.Connection, respondent_id: str, query_id: str) -> sqlite3.Row | None:
    sql = "SELECT position, query_id, session_id, refused, copy_of FROM turns WHERE query_id = ? AND respondent_id = ?"
    row: sqlite3.Row | None = db.execute(sql, (query_id, respondent_id)).fetchone()
    return row
