"""What was asked and answered: turns, their steps and their outcomes, in one SQLite file."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from local.errors import StoreFenced
from local.services.database import Database
from local.services.turn_record import MIGRATIONS, stored_turn
from local.services.turn_record import Asked as Asked
from local.services.turn_record import Past as Past
from local.services.turn_record import StoredTurn as StoredTurn
from local.services.turn_record import TurnStatus as TurnStatus

T = TypeVar("T")
MAX_HISTORY_TURNS = 50
_SAID = (
    "FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND in_history"
    " AND status IN ('answered', 'cancelled') AND answer != ''"
)


class ConversationService:
    """The record of one respondent. Every coroutine returns after its commit. Raises `StoreFailed`; `StoreFenced` in a
    process that is not the last one that opened it: it was taken for dead, and another one goes on with its turns."""

    def __init__(self, path: Path, respondent_id: str = "A") -> None:
        self._database = Database(path, MIGRATIONS, self._committed)
        self._respondent_id, self._token = respondent_id, uuid.uuid4().hex
        self._empties_wal = False

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        owner = (self._respondent_id, self._token)
        try:
            await self._database.run(lambda db: db.execute("INSERT OR REPLACE INTO owners VALUES (?, ?)", owner))
        except BaseException:
            await self._database.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._database.__aexit__(kind, error, trace)

    async def accept(self, asked: Asked) -> tuple[StoredTurn, bool]:
        """Store a query unless its id is known; returns the stored turn and whether it is new."""

        def work(db: sqlite3.Connection) -> tuple[StoredTurn, bool]:
            is_cancelled = self._is_cancelled(db, asked.query_id)
            known = self._find(db, asked.query_id)
            if known is not None:
                return replace(known, cancelled=is_cancelled), False
            db.execute(
                "INSERT INTO turns (query_id, respondent_id, session_id, user_id, envelope_id, query, body, in_history,"
                " status, tools, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (asked.query_id, self._respondent_id, asked.session_id, asked.user_id, asked.envelope_id, asked.query,
                 asked.body, asked.in_history, TurnStatus.OPEN, json.dumps(asked.tools), time.time()),
            )  # fmt: skip
            stored = self._find(db, asked.query_id)
            assert stored is not None
            return replace(stored, cancelled=is_cancelled, beginning=self._settled_past(db, stored)), True

        return await self._write(work)

    async def turn(self, query_id: str) -> StoredTurn | None:
        """The stored turn of a query."""
        return await self._database.run(lambda db: self._find(db, query_id))

    async def unfinished(self) -> list[StoredTurn]:
        """Turns that a restarted process has to continue, or whose outcome it has to publish; oldest first."""
        sql = "SELECT * FROM turns WHERE published = 0 AND respondent_id = ? ORDER BY position"
        return await self._database.run(
            lambda db: [stored_turn(row) for row in db.execute(sql, (self._respondent_id,))]
        )

    async def next_attempt(self, query_id: str) -> int:
        """Count one more attempt at a turn; returns its number."""
        sql = "UPDATE turns SET attempt = attempt + 1 WHERE query_id = ? AND respondent_id = ? RETURNING attempt"
        return await self._write(lambda db: int(db.execute(sql, (query_id, self._respondent_id)).fetchone()[0]))

    async def add_steps(self, query_id: str, first_number: int, bodies: list[str]) -> None:
        """Store steps of a turn, numbered from `first_number`; single results have done their duty then."""
        rows = [(query_id, self._respondent_id, first_number + index, body) for index, body in enumerate(bodies)]

        def work(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", rows)
            self._drop_results(db, query_id)

        await self._write(work)

    def keep_result(self, query_id: str, call_id: str, body: str) -> asyncio.Future[object]:
        """Keep how one of several tool calls ended until the step that tells of them all is stored, or the turn ends.

        On the disk within a twentieth of a second; nobody has to wait for that.
        """
        sql = (
            "INSERT OR IGNORE INTO results SELECT query_id, respondent_id, ?, ? FROM turns"
            " WHERE query_id = ? AND respondent_id = ? AND status = 'open'"
        )
        return self._database.note(lambda db: db.execute(sql, (call_id, body, query_id, self._respondent_id)))

    async def results(self, query_id: str) -> list[str]:
        """The results kept of the calls under way when the last process ended."""
        sql = "SELECT body FROM results WHERE query_id = ? AND respondent_id = ? ORDER BY call_id"
        key = (query_id, self._respondent_id)
        return await self._database.run(lambda db: [row["body"] for row in db.execute(sql, key)])

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
            self._drop_results(db, query_id)
            db.execute("DELETE FROM cancels WHERE query_id = ? AND respondent_id = ?", (query_id, self._respondent_id))

        await self._write(work)

    def published(self, query_id: str) -> asyncio.Future[object]:
        """The outcome is out. Nobody has to wait for that to be stored: an outcome that goes out twice is one."""
        sql = "UPDATE turns SET published = 1 WHERE query_id = ? AND respondent_id = ?"
        return self._database.note(lambda db: db.execute(sql, (query_id, self._respondent_id)))

    async def beginning(self, turn: StoredTurn) -> tuple[Past, list[str]]:
        """What a turn starts or goes on from: what was said before it, and its stored steps."""
        return await self._database.run(lambda db: (self._past(db, turn), self._steps(db, turn.query_id)))

    async def keep_summary(self, session_id: str, through: int, body: str) -> None:
        """Store the summary of a session's first `through` exchanges, unless there is one of more, or they are gone."""

        key = (session_id, self._respondent_id)

        def work(db: sqlite3.Connection) -> None:
            (said,) = db.execute(f"SELECT count(*) {_SAID}", (*key, 2**62)).fetchone()
            if said >= through:
                db.execute(
                    "INSERT INTO summaries VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
                    " SET through = excluded.through, body = excluded.body WHERE excluded.through > through",
                    (*key, through, body),
                )

        await self._write(work)

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
        return await self._database.run(lambda db: [stored_turn(row) for row in db.execute(sql, key)])

    async def delete_session(self, session_id: str) -> int:
        """Remove a session's ended turns, from the file for good; returns how many. Open ones stay."""
        sql = "DELETE FROM turns WHERE session_id = ? AND respondent_id = ? AND status != 'open'"

        def work(db: sqlite3.Connection) -> int:
            self._empties_wal = True
            key = (session_id, self._respondent_id)
            db.execute("DELETE FROM summaries WHERE session_id = ? AND respondent_id = ?", key)
            return db.execute(sql, key).rowcount

        return await self._write(work)

    async def cancel(self, query_id: str) -> None:
        """Remember that a query is to end, stored or still to come, until it has."""
        key = (query_id, self._respondent_id)
        sql = (
            "INSERT OR IGNORE INTO cancels SELECT ?, ? WHERE NOT EXISTS"
            " (SELECT 1 FROM turns WHERE query_id = ? AND respondent_id = ? AND status != 'open')"
        )
        await self._write(lambda db: db.execute(sql, key + key))

    def _is_cancelled(self, db: sqlite3.Connection, query_id: str) -> bool:
        sql = "SELECT 1 FROM cancels WHERE query_id = ? AND respondent_id = ?"
        return db.execute(sql, (query_id, self._respondent_id)).fetchone() is not None

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def owned(db: sqlite3.Connection) -> T:
            self._check_owner(db)
            return work(db)

        return await self._database.run(owned)

    def _committed(self, db: sqlite3.Connection) -> None:
        if self._empties_wal:
            self._empties_wal = False
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _check_owner(self, db: sqlite3.Connection) -> None:
        sql = "SELECT 1 FROM owners WHERE respondent_id = ? AND token = ?"
        if db.execute(sql, (self._respondent_id, self._token)).fetchone() is None:
            raise StoreFenced("another process has taken over the record of the conversations")

    def _find(self, db: sqlite3.Connection, query_id: str) -> StoredTurn | None:
        sql = "SELECT * FROM turns WHERE query_id = ? AND respondent_id = ?"
        row = db.execute(sql, (query_id, self._respondent_id)).fetchone()
        return None if row is None else stored_turn(row)

    def _steps(self, db: sqlite3.Connection, query_id: str) -> list[str]:
        sql = "SELECT body FROM steps WHERE query_id = ? AND respondent_id = ? ORDER BY number"
        return [row["body"] for row in db.execute(sql, (query_id, self._respondent_id))]

    def _drop_results(self, db: sqlite3.Connection, query_id: str) -> None:
        db.execute("DELETE FROM results WHERE query_id = ? AND respondent_id = ?", (query_id, self._respondent_id))

    def _settled_past(self, db: sqlite3.Connection, turn: StoredTurn) -> Past | None:
        """The past of a new turn, unless an earlier turn of its session may still add to it."""
        sql = "SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND status = 'open'"
        if db.execute(sql, (turn.session_id, self._respondent_id, turn.position)).fetchone():
            return None
        return self._past(db, turn)

    def _past(self, db: sqlite3.Connection, turn: StoredTurn) -> Past:
        key = (turn.session_id, self._respondent_id)
        row = db.execute(
            "SELECT through, body FROM summaries WHERE session_id = ? AND respondent_id = ?", key
        ).fetchone()
        through, summary = (0, None) if row is None else row
        sql = f"SELECT query, answer {_SAID} ORDER BY position LIMIT -1 OFFSET ?"
        return Past(summary, tuple(_messages(db.execute(sql, (*key, turn.position, through)).fetchall())))

    def _history(self, db: sqlite3.Connection, session_id: str, before: int) -> list[dict[str, Any]]:
        sql = f"SELECT query, answer {_SAID} ORDER BY position DESC LIMIT ?"
        rows = db.execute(sql, (session_id, self._respondent_id, before, MAX_HISTORY_TURNS)).fetchall()
        return _messages(rows[::-1])


def _messages(rows: Sequence[sqlite3.Row]) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": text}
        for row in rows
        for role, text in (("user", row["query"]), ("assistant", row["answer"]))
    ]
