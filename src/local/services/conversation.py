"""What was asked and answered: turns, their steps and their outcomes, in one SQLite file."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from local.services.database import Database

MAX_HISTORY_TURNS = 50

_MIGRATIONS = (
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
)


class TurnStatus(StrEnum):
    """Where a stored turn stands; `open` is waiting or running."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One row. `body` is the query's message as JSON; `tools` the names of the tools there were when it was accepted;
    `outcome` the message that ended it, on `outcome_subject`. `beginning` is no column but the history before the turn,
    which `accept` looks up on the way where nothing can still be added to it."""

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
    beginning: tuple[dict[str, Any], ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query to be stored. One that is not `in_history` belongs to no conversation that anybody continues."""

    query_id: str
    session_id: str
    user_id: str | None
    envelope_id: str
    query: str
    body: str
    in_history: bool = True
    tools: tuple[str, ...] = ()


class ConversationService:
    """The record of one respondent. Every coroutine returns after its commit; raises `StoreFailed`."""

    def __init__(self, path: Path, respondent_id: str = "A") -> None:
        self._database = Database(path, _MIGRATIONS)
        self._respondent_id = respondent_id

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._database.__aexit__(kind, error, trace)

    async def accept(self, asked: Asked) -> tuple[StoredTurn, bool]:
        """Store a query unless its id is known; returns the stored turn and whether it is new."""

        def work(db: sqlite3.Connection) -> tuple[StoredTurn, bool]:
            known = self._find(db, asked.query_id)
            if known is not None:
                return known, False
            db.execute(
                "INSERT INTO turns (query_id, respondent_id, session_id, user_id, envelope_id, query, body, in_history,"
                " status, tools, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (asked.query_id, self._respondent_id, asked.session_id, asked.user_id, asked.envelope_id, asked.query,
                 asked.body, asked.in_history, TurnStatus.OPEN, json.dumps(asked.tools), time.time()),
            )  # fmt: skip
            stored = self._find(db, asked.query_id)
            assert stored is not None
            return replace(stored, beginning=self._settled_history(db, stored)), True

        return await self._database.run(work)

    async def turn(self, query_id: str) -> StoredTurn | None:
        """The stored turn of a query."""
        return await self._database.run(lambda db: self._find(db, query_id))

    async def unfinished(self) -> list[StoredTurn]:
        """Turns that a restarted process has to continue, or whose outcome it has to publish; oldest first."""
        sql = "SELECT * FROM turns WHERE published = 0 AND respondent_id = ? ORDER BY position"
        return await self._database.run(lambda db: [_turn(row) for row in db.execute(sql, (self._respondent_id,))])

    async def next_attempt(self, query_id: str) -> int:
        """Count one more attempt at a turn; returns its number."""
        sql = "UPDATE turns SET attempt = attempt + 1 WHERE query_id = ? AND respondent_id = ? RETURNING attempt"
        return await self._database.run(lambda db: int(db.execute(sql, (query_id, self._respondent_id)).fetchone()[0]))

    async def add_steps(self, query_id: str, first_number: int, bodies: list[str]) -> None:
        """Store steps of a turn, numbered from `first_number`."""
        rows = [(query_id, self._respondent_id, first_number + index, body) for index, body in enumerate(bodies)]
        await self._database.run(lambda db: db.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", rows))

    async def steps(self, query_id: str) -> list[str]:
        """The stored steps of a turn, in order."""
        return await self._database.run(lambda db: self._steps(db, query_id))

    async def finish(self, query_id: str, status: TurnStatus, answer: str | None, subject: str, outcome: str) -> None:
        """Store how a turn ended; `outcome` is the message to publish on `subject`. The steps have done their duty."""

        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE turns SET status = ?, answer = ?, outcome_subject = ?, outcome = ?, finished_at = ?"
                " WHERE query_id = ? AND respondent_id = ? AND status = 'open'",
                (status, answer, subject, outcome, time.time(), query_id, self._respondent_id),
            )
            db.execute("DELETE FROM steps WHERE query_id = ? AND respondent_id = ?", (query_id, self._respondent_id))

        await self._database.run(work)

    def published(self, query_id: str) -> asyncio.Future[object]:
        """The outcome is out. Nobody has to wait for that to be stored: an outcome that goes out twice is one."""
        sql = "UPDATE turns SET published = 1 WHERE query_id = ? AND respondent_id = ?"
        return self._database.note(lambda db: db.execute(sql, (query_id, self._respondent_id)))

    async def beginning(self, turn: StoredTurn) -> tuple[list[dict[str, Any]], list[str]]:
        """What a turn starts or goes on from: the history before it, as `history` gives it, and its stored steps."""
        return await self._database.run(
            lambda db: (self._history(db, turn.session_id, turn.position), self._steps(db, turn.query_id))
        )

    async def history(self, session_id: str, before: int | None = None) -> list[dict[str, Any]]:
        """The last 50 exchanges of a session as clean user and assistant messages, oldest first.

        `before` is a position: only what was asked earlier counts.
        """
        return await self._database.run(lambda db: self._history(db, session_id, 2**62 if before is None else before))

    async def sessions(self) -> list[dict[str, Any]]:
        """Every session with its first query, number of turns and times, the most recent first."""
        sql = (
            "SELECT sums.session_id, first.user_id, turns, started_at, updated_at, substr(first.query, 1, 80) AS title"
            " FROM (SELECT session_id, count(*) AS turns, min(created_at) AS started_at,"
            " max(coalesce(finished_at, created_at)) AS updated_at, min(position) AS first_position FROM turns"
            " WHERE respondent_id = ? AND in_history GROUP BY session_id) AS sums"
            " JOIN turns AS first ON first.position = sums.first_position ORDER BY updated_at DESC LIMIT 1000"
        )
        return await self._database.run(lambda db: [dict(row) for row in db.execute(sql, (self._respondent_id,))])

    async def session(self, session_id: str) -> list[StoredTurn]:
        """Every turn of a session, oldest first."""
        sql = "SELECT * FROM turns WHERE session_id = ? AND respondent_id = ? ORDER BY position"
        key = (session_id, self._respondent_id)
        return await self._database.run(lambda db: [_turn(row) for row in db.execute(sql, key)])

    async def delete_session(self, session_id: str) -> int:
        """Remove a session's ended turns; returns how many. Open ones stay."""
        sql = "DELETE FROM turns WHERE session_id = ? AND respondent_id = ? AND status != 'open'"
        key = (session_id, self._respondent_id)
        return await self._database.run(lambda db: db.execute(sql, key).rowcount)

    def _find(self, db: sqlite3.Connection, query_id: str) -> StoredTurn | None:
        sql = "SELECT * FROM turns WHERE query_id = ? AND respondent_id = ?"
        row = db.execute(sql, (query_id, self._respondent_id)).fetchone()
        return None if row is None else _turn(row)

    def _steps(self, db: sqlite3.Connection, query_id: str) -> list[str]:
        sql = "SELECT body FROM steps WHERE query_id = ? AND respondent_id = ? ORDER BY number"
        return [row["body"] for row in db.execute(sql, (query_id, self._respondent_id))]

    def _settled_history(self, db: sqlite3.Connection, turn: StoredTurn) -> tuple[dict[str, Any], ...] | None:
        """The history of a new turn, unless an earlier turn of its session may still add to it."""
        sql = "SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND status = 'open'"
        if db.execute(sql, (turn.session_id, self._respondent_id, turn.position)).fetchone():
            return None
        return tuple(self._history(db, turn.session_id, turn.position))

    def _history(self, db: sqlite3.Connection, session_id: str, before: int) -> list[dict[str, Any]]:
        sql = (
            "SELECT query, answer FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND in_history"
            " AND status IN ('answered', 'cancelled') AND answer != '' ORDER BY position DESC LIMIT ?"
        )
        rows = db.execute(sql, (session_id, self._respondent_id, before, MAX_HISTORY_TURNS)).fetchall()
        return [
            {"role": role, "content": text}
            for row in reversed(rows)
            for role, text in (("user", row["query"]), ("assistant", row["answer"]))
        ]


def _turn(row: sqlite3.Row) -> StoredTurn:
    values = dict(row)
    values["status"], values["tools"] = TurnStatus(values["status"]), tuple(json.loads(values["tools"]))
    values["in_history"], values["published"] = bool(values["in_history"]), bool(values["published"])
    return StoredTurn(**values)
