"""The sessions of a record as users see them listed: the pinned ones, then the most recent, a page at a time, and those
in which something was said. In the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from local.errors import BadCursor
from local.services.text_search import Needle, excerpt, matches

TITLE_CHARACTERS = 80  # of the question by which a session is called that has no title of its own

_TURNS = (
    "SELECT session_id, count(*) AS turns, sum(status = 'open') AS open, min(created_at) AS started_at,"
    " max(coalesce(finished_at, created_at)) AS touched_at, min(position) AS first,"
    " min(CASE WHEN copy_of IS NULL THEN position END) AS own"
    " FROM turns WHERE respondent_id = :own AND in_history AND refused IS NULL AND {among} GROUP BY session_id"
)
_EMPTY_BRANCHES = (
    "SELECT session_id, 0, 0, branched_at, branched_at, NULL, NULL FROM branches WHERE respondent_id = :own AND {among}"
    " AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session_id = branches.session_id"
    " AND turns.respondent_id = branches.respondent_id AND refused IS NULL)"
)
_LISTED = (
    f"WITH sums AS ({_TURNS} UNION ALL {_EMPTY_BRANCHES}) SELECT sums.session_id,"
    " coalesce(first.user_id, branches.user_id) AS user_id, turns, open, started_at,"
    " max(touched_at, coalesce(branches.branched_at, 0)) AS updated_at,"
    f" coalesce(labels.title, substr(called.query, 1, {TITLE_CHARACTERS}), '') AS title,"
    " labels.title IS NOT NULL AS renamed, coalesce(labels.pinned, 0) AS pinned,"
    " coalesce(first.incognito, branches.incognito) AS incognito, branches.branched_from, branches.before,"
    " (SELECT model FROM turns WHERE turns.session_id = sums.session_id AND respondent_id = :own AND refused IS NULL"
    " ORDER BY position DESC LIMIT 1) AS model,"
    " CASE WHEN json_valid(first.body) THEN json_extract(first.body, '$.origin') END AS origin"
    " FROM sums LEFT JOIN turns AS first ON first.position = sums.first"
    " LEFT JOIN turns AS called ON called.position = coalesce(sums.own, sums.first)"
    " LEFT JOIN labels ON labels.session_id = sums.session_id AND labels.respondent_id = :own"
    " LEFT JOIN branches ON branches.session_id = sums.session_id AND branches.respondent_id = :own"
)
_ORDER = "ORDER BY pinned DESC, updated_at DESC, session_id LIMIT :limit"
_AFTER = (
    "(pinned < :pinned OR (pinned = :pinned AND"
    " (updated_at < :updated_at OR (updated_at = :updated_at AND session_id > :session_id))))"
)


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions are wanted: of one user unless `user_id` is empty, where those without one are those of `unnamed`;
    of these `among`; those in which each word of `query` is in one question with its answer, or in the title."""

    user_id: str = ""
    unnamed: str = ""
    among: Collection[str] | None = None
    query: str = ""


def sessions_of(
    db: sqlite3.Connection, respondent_id: str, wanted: SessionFilter, cursor: str = "", limit: int = 1000
) -> tuple[list[dict[str, Any]], str | None]:
    """A page of sessions with their title, number of turns and times, and the cursor of the next page. With a `query`
    each has its latest `match`: query_id and excerpt, or null where it is in the title. Raises `BadCursor`."""
    needles = [Needle(word) for word in wanted.query.split()]
    found = matches(db, respondent_id, needles) if needles else {}
    parameters: dict[str, Any] = {"own": respondent_id, "user": wanted.user_id, "unnamed": wanted.unnamed}
    conditions, among = [":user IN ('', coalesce(user_id, :unnamed))"], "1"
    if wanted.among is not None:
        among = "session_id IN (SELECT value FROM json_each(:among))"
        parameters["among"] = json.dumps(list(wanted.among))
    if needles:
        titled = " AND ".join(needle.condition("title", parameters) for needle in needles)
        conditions.append(f"(session_id IN (SELECT value FROM json_each(:found)) OR ({titled}))")
        parameters["found"] = json.dumps(list(found))
    if cursor:
        conditions.append(_AFTER)
        parameters |= _place(cursor)
    sql = f"SELECT * FROM ({_LISTED.format(among=among)}) WHERE {' AND '.join(conditions)} {_ORDER}"
    rows = db.execute(sql, {**parameters, "limit": limit + 1}).fetchall()
    sessions = [_session(row) for row in rows[:limit]]
    for session in sessions if needles else ():
        session["match"] = _match(db, found.get(session["session_id"]), needles)
    return sessions, _cursor(sessions[-1]) if len(rows) > limit else None


def _session(row: sqlite3.Row) -> dict[str, Any]:
    session = dict(row)
    for flag in ("incognito", "pinned", "renamed"):
        session[flag] = bool(session[flag])
    before, origin = session.pop("before"), session["branched_from"]
    session["branched_from"] = origin and {"session_id": origin, "query_id": before}
    session["origin"] = session["origin"] or "user"
    return session


def _match(db: sqlite3.Connection, position: int | None, needles: Sequence[Needle]) -> dict[str, Any] | None:
    if position is None:
        return None
    row = db.execute("SELECT query_id, query, answer FROM turns WHERE position = ?", (position,)).fetchone()
    texts = [text for text in (row["query"], row["answer"]) if text]
    where = next((text for text in texts if needles[0].is_in(text)), texts[0])
    return {"query_id": row["query_id"], "excerpt": excerpt(where, needles[0])}


def _cursor(session: dict[str, Any]) -> str:
    return f"{session['pinned']:d},{session['updated_at']!r},{session['session_id']}"


def _place(cursor: str) -> dict[str, Any]:
    try:
        pinned, updated_at, session_id = cursor.split(",", 2)
        return {"pinned": int(pinned), "updated_at": float(updated_at), "session_id": session_id}
    except ValueError:
        raise BadCursor(cursor) from None
