"""What was asked and answered: turns, their steps and their outcomes, in one SQLite file."""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from local.services import turn_deletion
from local.services.owned_database import DatabaseReader, OwnedDatabase, read_apart
from local.services.turn_deletion import QUERY, SESSION, NamedFile
from local.services.turn_record import (
    END,
    MIGRATIONS,
    SAID,
    chosen_model,
    incognito_sessions,
    messages_of,
    past_of,
    refusal_of,
    refused_incognito,
    settled_past_of,
    stored_turn,
)
from local.services.turn_record import Asked as Asked
from local.services.turn_record import Past as Past
from local.services.turn_record import Refusal as Refusal
from local.services.turn_record import StoredTurn as StoredTurn
from local.services.turn_record import TurnStatus as TurnStatus

T = TypeVar("T")
Also = Callable[[sqlite3.Connection], object] | None
MAX_HISTORY_TURNS = 50


class ConversationService:
    """The record of one respondent. Every coroutine returns after its commit. Raises `StoreFailed`; `StoreFenced` in a
    process that is not the last one that opened it: it was taken for dead, and another one goes on with its turns."""

    def __init__(self, path: Path, respondent_id: str = "A") -> None:
        self._path = path
        self._database = OwnedDatabase(path, MIGRATIONS, respondent_id)
        self._reader = DatabaseReader(path)
        self._respondent_id = respondent_id

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()
        await self._database.__aexit__(kind, error, trace)

    async def accept(self, asked: Asked) -> tuple[StoredTurn, bool]:
        """Store a query unless its id is known; returns the stored turn and whether it is new. The first query of a
        session has decided whose it is and whether it is incognito; what does not go with that is `refused`.

        Returns before it is on the disk: whatever is stored of the turn later is not there without it.
        """

        def work(db: sqlite3.Connection) -> tuple[StoredTurn, bool]:
            is_cancelled = self._is_cancelled(db, asked.query_id)
            known = self._find(db, asked.query_id)
            if known is not None:
                return replace(known, cancelled=is_cancelled), False
            db.execute(
                "INSERT INTO turns (query_id, respondent_id, session_id, user_id, envelope_id, query, body, in_history,"
                " status, tools, created_at, incognito, refused, attempt, model)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (asked.query_id, self._respondent_id, asked.session_id, asked.user_id, asked.envelope_id, asked.query,
                 asked.body, asked.in_history, TurnStatus.OPEN, json.dumps(asked.tools), time.time(),
                 asked.incognito, refusal_of(db, self._respondent_id, asked), asked.attempt,
                 asked.model or chosen_model(db, self._respondent_id, asked.session_id)),
            )  # fmt: skip
            stored = self._find(db, asked.query_id)
            assert stored is not None
            past = settled_past_of(db, self._respondent_id, stored.session_id, stored.position)
            return replace(stored, cancelled=is_cancelled, beginning=past), True

        return await self._database.write_unsynced(work)

    def foresee(self, asked: Asked) -> Past | None:
        """The past that a query would have if it were accepted now, without waiting for anything that is being stored.

        None if it would be no new turn, or not run at once: its id is known, it is cancelled or refused, or an earlier
        turn of its session is open.
        """

        def work(db: sqlite3.Connection) -> Past | None:
            if self._is_cancelled(db, asked.query_id) or self._find(db, asked.query_id) is not None:
                return None
            if refusal_of(db, self._respondent_id, asked) is not None:
                return None
            return settled_past_of(db, self._respondent_id, asked.session_id)

        return self.glance(work)

    async def turn(self, query_id: str) -> StoredTurn | None:
        """The stored turn of a query."""
        return await self._database.run(lambda db: self._find(db, query_id))

    async def unfinished(self) -> list[StoredTurn]:
        """Turns that a restarted process has to continue, or whose outcome it has to publish; oldest first."""
        sql = "SELECT * FROM turns WHERE published = 0 AND respondent_id = ? ORDER BY position"
        key = (self._respondent_id,)
        return await self._database.run(lambda db: [stored_turn(row) for row in db.execute(sql, key)])

    async def latest_tools(self) -> frozenset[str]:
        """The tools that there were when the latest query was accepted."""
        sql = "SELECT tools FROM turns WHERE respondent_id = ? ORDER BY position DESC LIMIT 1"
        rows = await self._database.run(lambda db: db.execute(sql, (self._respondent_id,)).fetchall())
        return frozenset(tool for row in rows for tool in json.loads(row["tools"]))

    async def next_attempt(self, query_id: str) -> int:
        """Count one more attempt at a turn; returns its number."""
        sql = "UPDATE turns SET attempt = attempt + 1 WHERE query_id = ? AND respondent_id = ? RETURNING attempt"
        return await self.write(lambda db: int(db.execute(sql, (query_id, self._respondent_id)).fetchone()[0]))

    async def add_steps(self, query_id: str, first_number: int, bodies: list[str], *, is_synced: bool = True) -> None:
        """Store steps of a turn, numbered from `first_number`; single results have done their duty then. What is not
        `is_synced` is brought to the disk by what is stored next."""
        rows = [(query_id, self._respondent_id, first_number + index, body) for index, body in enumerate(bodies)]

        def work(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", rows)
            db.execute("DELETE FROM results WHERE query_id = ? AND respondent_id = ?", (query_id, self._respondent_id))

        await (self._database.write_short if is_synced else self._database.write_unsynced)(work)

    def keep_result(self, query_id: str, call_id: str, body: str) -> asyncio.Future[object]:
        """Keep how one of several tool calls ended until the step that tells of them all is stored, or the turn ends.

        Stored within a twentieth of a second; nobody has to wait for that.
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

    async def finish(
        self,
        query_id: str,
        status: TurnStatus,
        answer: str | None,
        subject: str,
        outcome: str,
        also: Also = None,
        *,
        sent: str | None = None,
    ) -> None:
        """Store how a turn ended, and `also`; `outcome` is the message to publish on `subject`. Its steps are over.
        `sent` is how the model was sent this exchange, as JSON, for the turns that come after it."""

        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE turns SET status = ?, answer = ?, outcome_subject = ?, outcome = ?, finished_at = ?"
                " WHERE query_id = ? AND respondent_id = ? AND status = 'open'",
                (status, answer, subject, outcome, time.time(), *(key := (query_id, self._respondent_id))),
            )
            if also is not None:
                also(db)
            if sent is not None:
                db.execute("INSERT OR REPLACE INTO exchanges VALUES (?, ?, ?)", (*key, sent))
            for table in ("steps", "results", "cancels"):
                db.execute(f"DELETE FROM {table} WHERE query_id = ? AND respondent_id = ?", key)

        await self._database.write_short(work)

    def published(self, query_id: str) -> asyncio.Future[object]:
        """The outcome is out. Nobody has to wait for that to be stored: an outcome that goes out twice is one."""
        sql = "UPDATE turns SET published = 1 WHERE query_id = ? AND respondent_id = ?"
        return self._database.note(lambda db: db.execute(sql, (query_id, self._respondent_id)))

    async def beginning(self, turn: StoredTurn) -> tuple[Past, list[str]]:
        """What a turn starts or goes on from: what was said before it, and its stored steps."""
        own, position = self._respondent_id, turn.position
        return await self._database.run(
            lambda db: (past_of(db, own, turn.session_id, position), self._steps(db, turn.query_id))
        )

    async def keep_summary(self, session_id: str, through: int, body: str) -> None:
        """Store the summary of a session's first `through` exchanges, unless there is one of more, or they are gone."""
        key = (session_id, self._respondent_id)

        def work(db: sqlite3.Connection) -> None:
            (said,) = db.execute(f"SELECT count(*) {SAID}", (*key, END)).fetchone()
            if said >= through:
                db.execute(
                    "INSERT INTO summaries VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
                    " SET through = excluded.through, body = excluded.body WHERE excluded.through > through",
                    (*key, through, body),
                )

        await self.write(work)

    async def history(self, session_id: str, before: int | None = None) -> list[dict[str, Any]]:
        """The last 50 exchanges of a session as clean user and assistant messages, oldest first.

        `before` is a position: only what was asked earlier counts.
        """
        sql = f"SELECT query, answer {SAID} ORDER BY position DESC LIMIT ?"
        key = (session_id, self._respondent_id, END if before is None else before, MAX_HISTORY_TURNS)
        return await self._database.run(lambda db: messages_of(db.execute(sql, key).fetchall()[::-1]))

    async def session(self, session_id: str) -> list[StoredTurn]:
        """Every turn of a session, oldest first, and what was refused there."""
        sql = "SELECT * FROM turns WHERE session_id = ? AND respondent_id = ? ORDER BY position"
        key = (session_id, self._respondent_id)
        return await self._database.run(lambda db: [stored_turn(row) for row in db.execute(sql, key)])

    async def delete_session(self, session_id: str) -> int:
        """Remove a session's ended turns, from the file for good; returns how many. Open ones stay."""
        return await self._delete(SESSION, session_id, spare=TurnStatus.OPEN)

    async def drop_session(self, session_id: str) -> int:
        """Remove all turns of a session, open ones included, which nobody runs any more; returns how many."""
        return await self._delete(SESSION, session_id)

    async def drop_query(self, query_id: str) -> int:
        """Remove the turn of one query, open or not; returns how many that were."""
        return await self._delete(QUERY, query_id)

    async def forget(self, query_id: str) -> int:
        """Remove the turn of one query and its copies, unless it is open; returns how many that were."""
        return await self._delete(QUERY, query_id, spare=TurnStatus.OPEN)

    async def sessions_with(self, query_id: str) -> set[str]:
        """The session of a query, and those that branches have copied it to."""
        own = self._respondent_id
        return await self._database.run(lambda db: turn_deletion.sessions_with(db, own, query_id))

    async def attachments_of(self, *, session_id: str = "", query_id: str = "") -> set[NamedFile]:
        """The attachments that of their users' queries only those of this session, or only this one, name."""
        what, key = (SESSION, session_id) if session_id else (QUERY, query_id)
        return await self._database.run(lambda db: turn_deletion.attachments_of(db, what, key))

    async def forget_recalled(self, engram_id: str) -> int:
        """Take an engram's text from the results of tools that have recalled it; returns how many there were."""
        own = self._respondent_id
        return await self._database.erase(lambda db: turn_deletion.forget_recalled(db, own, engram_id))

    async def is_recalled_by_open_turn(self, engram_id: str) -> bool:
        """Whether a turn that still runs may tell of an engram."""
        own = self._respondent_id
        return await self._database.run(lambda db: turn_deletion.is_recalled_by_open_turn(db, own, engram_id))

    async def incognito_sessions(self, idle_since: float = math.inf) -> list[str]:
        """The incognito sessions in which nothing was asked or answered from then on, in seconds since 1970; every one
        of them unless that is given. For the process that may delete them, and no other."""
        return await self.write(lambda db: incognito_sessions(db, self._respondent_id, idle_since))

    async def refused_incognito(self, idle_since: float = math.inf) -> list[str]:
        """The ids of the incognito queries that were refused before then, in sessions that are kept. For the
        process that may delete them, and no other."""
        return await self.write(lambda db: refused_incognito(db, self._respondent_id, idle_since))

    async def cancel(self, query_id: str) -> None:
        """Remember that a query is to end, stored or still to come, until it has."""
        key = (query_id, self._respondent_id)
        sql = (
            "INSERT OR IGNORE INTO cancels SELECT ?, ? WHERE NOT EXISTS"
            " (SELECT 1 FROM turns WHERE query_id = ? AND respondent_id = ? AND status != 'open')"
        )
        await self.write(lambda db: db.execute(sql, key + key))

    def _is_cancelled(self, db: sqlite3.Connection, query_id: str) -> bool:
        sql = "SELECT 1 FROM cancels WHERE query_id = ? AND respondent_id = ?"
        return db.execute(sql, (query_id, self._respondent_id)).fetchone() is not None

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` in a transaction, for what is kept beside the turns; not in a process that was replaced."""
        return await self._database.write(work)

    def glance(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which can change nothing: a few rows that an index finds, without a thread."""
        return self._reader.read(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which can change nothing and holds up no turn, however long it takes."""
        return await read_apart(self._path, work)

    async def _delete(self, what: str, key: str, *, spare: str = "") -> int:
        own = self._respondent_id
        return await self._database.erase(lambda db: turn_deletion.delete_turns(db, own, what, key, spare=spare))

    def _find(self, db: sqlite3.Connection, query_id: str) -> StoredTurn | None:
        sql = "SELECT * FROM turns WHERE query_id = ? AND respondent_id = ?"
        row = db.execute(sql, (query_id, self._respondent_id)).fetchone()
        return None if row is None else stored_turn(row)

    def _steps(self, db: sqlite3.Connection, query_id: str) -> list[str]:
        sql = "SELECT body FROM steps WHERE query_id = ? AND respondent_id = ? ORDER BY number"
        return [row["body"] for row in db.execute(sql, (query_id, self._respondent_id))]
