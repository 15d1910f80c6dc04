"""What a respondent's turns say of their sessions: whose they are, and whether they are incognito. One that was refused
says nothing of it: it is no turn of the session that it was asked in. In the caller's transaction."""

from __future__ import annotations

import sqlite3
from typing import Any

from local.services.turn_record import Asked, Refusal


def refusal(db: sqlite3.Connection, respondent_id: str, asked: Asked) -> Refusal | None:
    """Why a query cannot be a turn of its session, which is as its first query was."""
    sql = (
        "SELECT user_id, incognito FROM turns WHERE session_id = ? AND respondent_id = ? AND refused IS NULL"
        " ORDER BY position LIMIT 1"
    )
    first = db.execute(sql, (asked.session_id, respondent_id)).fetchone()
    if first is None:
        return None
    if first["user_id"] != asked.user_id:
        return Refusal.USER
    return None if first["incognito"] == asked.incognito else Refusal.INCOGNITO


def listed(db: sqlite3.Connection, respondent_id: str) -> list[dict[str, Any]]:
    """The last 1000 sessions with their first query, number of turns and times, the most recent first."""
    sql = (
        "SELECT sums.session_id, first.user_id, first.incognito, turns, started_at, updated_at,"
        " substr(first.query, 1, 80) AS title"
        " FROM (SELECT session_id, count(*) AS turns, min(created_at) AS started_at,"
        " max(coalesce(finished_at, created_at)) AS updated_at, min(position) AS first_position FROM turns"
        " WHERE respondent_id = ? AND in_history AND refused IS NULL GROUP BY session_id) AS sums"
        " JOIN turns AS first ON first.position = sums.first_position ORDER BY updated_at DESC LIMIT 1000"
    )
    return [{**dict(row), "incognito": bool(row["incognito"])} for row in db.execute(sql, (respondent_id,))]


def incognito(db: sqlite3.Connection, respondent_id: str, idle_since: float) -> list[str]:
    """The incognito sessions in which nothing was asked or answered from `idle_since` on, in seconds since 1970."""
    sql = (
        "SELECT session_id FROM turns WHERE incognito AND refused IS NULL AND respondent_id = ? GROUP BY session_id"
        " HAVING max(coalesce(finished_at, created_at)) < ?"
    )
    return [row["session_id"] for row in db.execute(sql, (respondent_id, idle_since))]


def refused_incognito(db: sqlite3.Connection, respondent_id: str, idle_since: float) -> list[str]:
    """The incognito queries that sessions which are kept have refused before `idle_since`."""
    sql = "SELECT query_id FROM turns WHERE incognito AND refused IS NOT NULL AND respondent_id = ? AND created_at < ?"
    return [row["query_id"] for row in db.execute(sql, (respondent_id, idle_since))]
