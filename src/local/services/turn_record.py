"""One turn as it is stored, the tables that hold it, and what turns say of their sessions. In the caller's transaction.

A turn that was refused says nothing of the session that it was asked in: it is none of its turns.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

MIGRATIONS = (
    """
    CREATE TABLE turns (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        user_id TEXT,
        envelope_id TEXT NOT NULL,
        query TEXT NOT NULL,
        body TEXT NOT NULL,
        in_history INTEGER NOT NULL,
        status TEXT NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 1,
        tools TEXT NOT NULL,
        answer TEXT,
        outcome_subject TEXT,
        outcome TEXT,
        published INTEGER NOT NULL DEFAULT 0,
        created_at REAL NOT NULL,
        finished_at REAL,
        UNIQUE (query_id, respondent_id)
    );
    CREATE INDEX turns_by_session ON turns (session_id, respondent_id, position);
    CREATE INDEX turns_unfinished ON turns (published) WHERE published = 0;
    CREATE TABLE steps (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (query_id, respondent_id, number)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE results (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        call_id TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (query_id, respondent_id, call_id)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE owners (respondent_id TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE cancels (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        PRIMARY KEY (query_id, respondent_id)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE summaries (
        session_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        through INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session_id, respondent_id)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE rewards (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        prompt TEXT NOT NULL,
        reward REAL NOT NULL,
        rated_at REAL NOT NULL,
        PRIMARY KEY (query_id, respondent_id),
        FOREIGN KEY (query_id, respondent_id) REFERENCES turns (query_id, respondent_id) ON DELETE CASCADE
    ) WITHOUT ROWID;
    """,
    """
    DROP TABLE owners;
    ALTER TABLE turns ADD COLUMN incognito INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX turns_incognito ON turns (session_id) WHERE incognito;
    """,
    "ALTER TABLE turns ADD COLUMN refused TEXT;",
    """
    CREATE TABLE taints (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        PRIMARY KEY (query_id, respondent_id)
    ) WITHOUT ROWID;
    CREATE INDEX taints_by_session ON taints (session_id, respondent_id);
    CREATE TABLE written (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (query_id, respondent_id, hash)
    ) WITHOUT ROWID;
    CREATE INDEX written_by_hash ON written (hash, respondent_id);
    INSERT INTO taints SELECT query_id, respondent_id, session_id FROM turns
        WHERE (json_valid(outcome) AND json_array_length(outcome, '$.tool_calls') > 0)
            OR (json_valid(body) AND json_array_length(body, '$.attachments') > 0);
    """,
    """
    ALTER TABLE turns ADD COLUMN copy_of TEXT;
    CREATE INDEX turns_copied ON turns (copy_of) WHERE copy_of IS NOT NULL;
    DROP INDEX turns_by_session;
    CREATE INDEX turns_by_session ON turns
        (session_id, respondent_id, position, status, in_history, refused, created_at, finished_at, copy_of);
    CREATE TABLE labels (
        session_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        title TEXT,
        pinned INTEGER NOT NULL,
        changed_at REAL NOT NULL,
        PRIMARY KEY (session_id, respondent_id)
    ) WITHOUT ROWID;
    CREATE TABLE branches (
        session_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        user_id TEXT,
        incognito INTEGER NOT NULL,
        branched_from TEXT NOT NULL,
        before TEXT NOT NULL,
        branched_at REAL NOT NULL,
        PRIMARY KEY (session_id, respondent_id)
    ) WITHOUT ROWID;
    CREATE INDEX branches_by_origin ON branches (branched_from);
    """,
    """
    CREATE INDEX turns_with_todo ON turns (session_id, respondent_id, position)
        WHERE instr(outcome, '"tool":"todo"') > 0;
    """,
    """
    CREATE TABLE tool_lists (
        session_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session_id, respondent_id, kind)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE exchanges (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (query_id, respondent_id)
    ) WITHOUT ROWID;
    """,
    "ALTER TABLE turns ADD COLUMN model TEXT;",
)

END = 2**62  # a position behind all turns
SAID = (
    "FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND in_history"
    " AND status IN ('answered', 'cancelled') AND answer != ''"
)


class Past(NamedTuple):
    """What was said before a turn: a stored summary of the first exchanges, if there is one, and those after them as
    user and assistant messages, oldest first. `tainted` says that words of strangers were before the model. `sent` has
    for each pair of these messages how the model was sent that exchange, as JSON; None where that is not stored.
    `model` is the one that was last chosen for the conversation, None if nobody has chosen."""

    summary: str | None
    history: tuple[dict[str, Any], ...]
    tainted: bool = False
    sent: tuple[str | None, ...] = ()
    model: str | None = None


class TurnStatus(StrEnum):
    """Where a stored turn stands; `open` is waiting or running."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Refusal(StrEnum):
    """Why a query is no turn of the session in which it was asked: that is another user's, or incognito when the query
    is not, or the other way round."""

    USER = "user"
    INCOGNITO = "incognito"


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One row. `body` is the query's message as JSON; `tools` the names of the tools there were when it was accepted;
    `outcome` the message that ended it, on `outcome_subject`; `model` the one that was chosen for its conversation by
    then. One that is `refused` is deleted with its session, and that is all it has to do with it. No columns, but
    looked up on the way by `accept`, are `cancelled`, whether somebody wants it to end, and `beginning`, the past of
    the turn where nothing can still be added to it."""

    position: int
    query_id: str
    respondent_id: str
    session_id: str
    user_id: str | None
    envelope_id: str
    query: str
    body: str
    in_history: bool
    status: TurnStatus
    attempt: int
    tools: tuple[str, ...]
    answer: str | None
    outcome_subject: str | None
    outcome: str | None
    published: bool
    created_at: float
    finished_at: float | None
    incognito: bool = False
    refused: Refusal | None = None
    copy_of: str | None = None
    model: str | None = None
    cancelled: bool = field(default=False, compare=False)
    beginning: Past | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query to be stored. One that is not `in_history` belongs to no conversation that anybody continues; an
    `incognito` one is to be deleted when its session ends.
    `attempt` is how often the journal has given it, `model` the model that it chooses for its conversation."""

    query_id: str
    session_id: str
    user_id: str | None
    envelope_id: str
    query: str
    body: str
    in_history: bool = True
    tools: tuple[str, ...] = ()
    incognito: bool = False
    attempt: int = 1
    model: str | None = None


def stored_turn(row: sqlite3.Row) -> StoredTurn:
    """The turn in a row of `turns`."""
    values = dict(row)
    values["status"], values["tools"] = TurnStatus(values["status"]), tuple(json.loads(values["tools"]))
    for flag in ("in_history", "published", "incognito"):
        values[flag] = bool(values[flag])
    values["refused"] = values["refused"] and Refusal(values["refused"])
    return StoredTurn(**values)


def refusal_of(db: sqlite3.Connection, respondent_id: str, asked: Asked) -> Refusal | None:
    """Why a query cannot be a turn of its session, which is as its first query was, or what it has branched off."""
    sql = (
        "SELECT user_id, incognito FROM turns WHERE session_id = ? AND respondent_id = ? AND refused IS NULL"
        " ORDER BY position LIMIT 1"
    )
    key = (asked.session_id, respondent_id)
    branch = "SELECT user_id, incognito FROM branches WHERE session_id = ? AND respondent_id = ?"
    first = db.execute(sql, key).fetchone() or db.execute(branch, key).fetchone()
    if first is None:
        return None
    if first["user_id"] != asked.user_id:
        return Refusal.USER
    return None if first["incognito"] == asked.incognito else Refusal.INCOGNITO


def incognito_sessions(db: sqlite3.Connection, respondent_id: str, idle_since: float) -> list[str]:
    """The incognito sessions in which nothing was asked or answered from `idle_since` on, in seconds since 1970."""
    sql = (
        "SELECT session_id FROM (SELECT session_id, respondent_id, coalesce(finished_at, created_at) AS at FROM turns"
        " WHERE incognito AND refused IS NULL UNION ALL"
        " SELECT session_id, respondent_id, branched_at FROM branches WHERE incognito)"
        " WHERE respondent_id = ? GROUP BY session_id HAVING max(at) < ?"
    )
    return [row["session_id"] for row in db.execute(sql, (respondent_id, idle_since))]


def refused_incognito(db: sqlite3.Connection, respondent_id: str, idle_since: float) -> list[str]:
    """The incognito queries that sessions which are kept have refused before `idle_since`."""
    sql = "SELECT query_id FROM turns WHERE incognito AND refused IS NOT NULL AND respondent_id = ? AND created_at < ?"
    return [row["query_id"] for row in db.execute(sql, (respondent_id, idle_since))]


def messages_of(rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    """What was said in these turns, as user and assistant messages."""
    return [
        {"role": role, "content": text}
        for row in rows
        for role, text in (("user", row["query"]), ("assistant", row["answer"]))
    ]


def settled_past_of(db: sqlite3.Connection, respondent_id: str, session_id: str, before: int = END) -> Past | None:
    """The past of a new turn, unless an earlier turn of its session may still add to it."""
    sql = "SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND status = 'open'"
    if db.execute(sql, (session_id, respondent_id, before)).fetchone():
        return None
    return past_of(db, respondent_id, session_id, before)


def is_tainted(db: sqlite3.Connection, session_id: str, respondent_id: str) -> bool:
    """Whether a turn of that session has ended before whose model had words of strangers before it."""
    sql = "SELECT 1 FROM taints WHERE session_id = ? AND respondent_id = ? LIMIT 1"
    return db.execute(sql, (session_id, respondent_id)).fetchone() is not None


def past_of(db: sqlite3.Connection, respondent_id: str, session_id: str, before: int) -> Past:
    """What was said in a session before that position."""
    key = (session_id, respondent_id)
    row = db.execute("SELECT through, body FROM summaries WHERE session_id = ? AND respondent_id = ?", key).fetchone()
    through, summary = (0, None) if row is None else row
    sent = (
        "(SELECT body FROM exchanges WHERE exchanges.query_id = turns.query_id"
        " AND exchanges.respondent_id = turns.respondent_id) AS sent"
    )
    sql = f"SELECT query, answer, {sent} {SAID} ORDER BY position LIMIT -1 OFFSET ?"
    rows = db.execute(sql, (*key, before, through)).fetchall()
    return Past(
        summary,
        tuple(messages_of(rows)),
        is_tainted(db, *key),
        tuple(row["sent"] for row in rows),
        chosen_model(db, respondent_id, session_id, before),
    )


def chosen_model(db: sqlite3.Connection, respondent_id: str, session_id: str, before: int = END) -> str | None:
    """The model that was last chosen for a session before that position; None if nobody has chosen one."""
    sql = (
        "SELECT model FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND refused IS NULL"
        " ORDER BY position DESC LIMIT 1"
    )
    row = db.execute(sql, (session_id, respondent_id, before)).fetchone()
    return None if row is None else row["model"]
