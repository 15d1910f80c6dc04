"""The record of one respondent: turns, their steps and their outcomes, in one SQLite file."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeVar
from weakref import WeakValueDictionary

from local.bus.messages import AgentTask, QueryReceived
from local.core.database import DatabaseReader, OwnedDatabase, read_apart
from local.core.errors import NotOnRecord
from local.core.templates import has_template_marks
from local.generator.taint_policy import LinkBudget

# Deletions from a respondent's turns at users' request. In the caller's transaction.

UNKNOWN = "?"  # in place of an engram's id
FORGOTTEN = "[a memory that was deleted]"
FROM_SUMMARY = '"kind": "earlier"'  # in a stored exchange whose block has facts of the session's summary
SESSION, QUERY = "session_id", "query_id"  # what may be deleted
_HOLDERS = (("turns", "outcome", "position"), ("steps", "body", "number"), ("results", "body", "call_id"))


class NamedFile(NamedTuple):
    """A file named only by a deleted query of a user; `is_last` means that no other user's query names it either."""

    attachment_id: str
    user_id: str | None
    is_last: bool


def source_of(engram_id: str) -> str:
    """Return the source that marks a tool's result as recalled from an engram."""
    return f"engram:{engram_id}"


def delete_turns(db: sqlite3.Connection, respondent_id: str, what: str, key: str, *, spare: str = "") -> int:
    """Delete the turns of a session or a query with all dependent rows; returns how many.

    Turns of the status `spare` stay. The summary of their session is deleted, because it may contain any of them, and
    so is the sent form of exchanges whose prompt had facts of a summary; their questions and answers stay. Copies in
    branches are deleted with a query while the original exists, and stay when its session is deleted.
    """
    sql = f"SELECT query_id, session_id FROM turns WHERE {what} = ? AND respondent_id = ? AND status != ?"
    doomed = db.execute(sql, (key, respondent_id, spare)).fetchall()
    if what == QUERY and doomed:
        copies = "SELECT query_id, session_id FROM turns WHERE copy_of = ? AND respondent_id = ?"
        doomed += db.execute(copies, (key, respondent_id)).fetchall()
    sessions = {row["session_id"] for row in doomed} | ({key} if what == SESSION else set())
    for session_id in sessions:
        db.execute("DELETE FROM summaries WHERE session_id = ? AND respondent_id = ?", (session_id, respondent_id))
        db.execute(
            "DELETE FROM exchanges WHERE respondent_id = ?1 AND instr(body, ?2) AND query_id IN"
            " (SELECT query_id FROM turns WHERE session_id = ?3 AND respondent_id = ?1)",
            (respondent_id, FROM_SUMMARY, session_id),
        )
    for table in ("labels", "branches", "tool_lists", "imports") if what == SESSION else ():
        db.execute(f"DELETE FROM {table} WHERE session_id = ? AND respondent_id = ?", (key, respondent_id))
    for table in ("steps", "results", "cancels", "taints", "written", "opened", "exchanges", "titles", "turns"):
        keys = [(row["query_id"], respondent_id) for row in doomed]
        db.executemany(f"DELETE FROM {table} WHERE query_id = ? AND respondent_id = ?", keys)
    return len(doomed)


def sessions_with(db: sqlite3.Connection, respondent_id: str, query_id: str) -> set[str]:
    """The session of a query, and those that branches have copied it to."""
    sql = "SELECT session_id FROM turns WHERE {} = ? AND respondent_id = ?"
    key = (query_id, respondent_id)
    return {row["session_id"] for which in ("query_id", "copy_of") for row in db.execute(sql.format(which), key)}


def attachments_of(db: sqlite3.Connection, what: str, key: str) -> set[NamedFile]:
    """The attachments that the queries of a session, or one query, name and no other stored query of the same user."""
    named: set[tuple[str, str | None]] = set()
    for row in db.execute(f"SELECT body, user_id FROM turns WHERE {what} = ?", (key,)).fetchall():
        named.update((each, row["user_id"]) for each in json.loads(row["body"]).get("attachments", ()))
    elsewhere = f"SELECT DISTINCT user_id FROM turns WHERE instr(body, :file) AND {what} != :key"
    if what == QUERY:
        elsewhere += " AND copy_of IS NOT :key"  # its copies go with it
    found = {each: {row["user_id"] for row in db.execute(elsewhere, {"file": each, "key": key})} for each, _ in named}
    return {NamedFile(each, user, not found[each]) for each, user in named if user not in found[each]}


def is_recalled_by_open_turn(db: sqlite3.Connection, respondent_id: str, engram_id: str) -> bool:
    """Whether a turn that still runs has an engram among its results."""
    sql = " UNION ".join(
        f"SELECT 1 FROM turns JOIN {table} USING (query_id, respondent_id)"
        f" WHERE respondent_id = :respondent AND status = 'open' AND instr({table}.body, :source)"
        for table in ("steps", "results")
    )
    found = db.execute(sql, {"respondent": respondent_id, "source": source_of(engram_id)}).fetchone()
    return found is not None


def forget_recalled(db: sqlite3.Connection, respondent_id: str, engram_id: str) -> int:
    """Remove an engram's text from the results of tools that have recalled it; returns how many turns, steps and single
    results were changed. The sent form of an exchange is deleted as a whole, also where its facts have no known engram;
    its question and answer stay.
    """
    source, changed = source_of(engram_id), 0
    sent = "DELETE FROM exchanges WHERE respondent_id = ? AND (instr(body, ?) OR instr(body, ?))"
    changed += db.execute(sent, (respondent_id, source, source_of(UNKNOWN))).rowcount
    for table, column, number in _HOLDERS:
        found = f"SELECT query_id, {number}, {column} FROM {table} WHERE respondent_id = ? AND instr({column}, ?)"
        change = f"UPDATE {table} SET {column} = ? WHERE query_id = ? AND {number} = ? AND respondent_id = ?"
        for query_id, which, body in db.execute(found, (respondent_id, source)).fetchall():
            without = json.dumps(_without(json.loads(body), source), ensure_ascii=False)
            db.execute(change, (without, query_id, which, respondent_id))
            changed += 1
    return changed


def _without(value: Any, source: str) -> Any:
    """JSON in which every result with this source has lost its text."""
    if isinstance(value, list):
        return [_without(each, source) for each in value]
    if not isinstance(value, dict):
        return value
    if source in value.get("sources", ()):
        sources = [each for each in value["sources"] if each != source]
        return {**value, "result": FORGOTTEN, "sources": sources}
    return {key: _without(each, source) for key, each in value.items()}


# One stored turn, its tables, and the queries about sessions. In the caller's transaction.

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
    """
    CREATE TABLE opened (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        conversation TEXT NOT NULL,
        address TEXT NOT NULL,
        PRIMARY KEY (query_id, respondent_id, address)
    ) WITHOUT ROWID;
    CREATE INDEX opened_by_conversation ON opened (conversation, respondent_id);
    """,
    """
    ALTER TABLE labels ADD COLUMN settings TEXT;
    ALTER TABLE branches ADD COLUMN through TEXT NOT NULL DEFAULT '';
    ALTER TABLE branches ADD COLUMN version_of TEXT;
    CREATE INDEX branches_by_version ON branches (version_of);
    """,
    """
    ALTER TABLE labels ADD COLUMN folder TEXT;
    ALTER TABLE labels ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE labels ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    """,
    """
    CREATE TABLE titles (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        title TEXT NOT NULL,
        PRIMARY KEY (session_id, respondent_id)
    ) WITHOUT ROWID;
    CREATE INDEX titles_by_query ON titles (query_id);
    """,
    """
    CREATE TABLE imports (
        session_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        source TEXT NOT NULL,
        origin_id TEXT NOT NULL,
        imported_at REAL NOT NULL,
        PRIMARY KEY (session_id, respondent_id)
    ) WITHOUT ROWID;
    """,
)

END = 2**62  # a position behind all turns
SAID = (
    "FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND in_history"
    " AND status IN ('answered', 'cancelled') AND answer != ''"
)


class PriorContext(NamedTuple):
    """The conversation before a turn: a stored summary of the first exchanges, if there is one, and the later ones as
    user and assistant messages, oldest first. `tainted` means that the model has read untrusted content. `sent` has for
    each pair of messages the exchange as it was sent to the model, as JSON; None if not stored. `model` is the one that
    was last chosen for the conversation, None if none was. `ended` are the times at which the exchanges ended, in
    seconds since 1970; `settings` are the `SessionSettings` as JSON.
    """

    summary: str | None
    history: tuple[dict[str, Any], ...]
    tainted: bool = False
    sent: tuple[str | None, ...] = ()
    model: str | None = None
    ended: tuple[float | None, ...] = ()
    settings: str | None = None


class TurnStatus(StrEnum):
    """The state of a stored turn; `open` is waiting or running."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Refusal(StrEnum):
    """The reason why a query cannot be a turn of its session: the session is another user's, or only one of the two is
    incognito.
    """

    USER = "user"
    INCOGNITO = "incognito"


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One stored turn, a row of `turns`. `body` is the query's message as JSON; `tools` the names of the tools that
    existed when it was accepted; `outcome` the message that ended it, on `outcome_subject`; `model` the one that was
    chosen for its conversation by then. A `refused` turn is only deleted with its session. Two fields are not columns
    but looked up by `accept`: `cancelled`, whether its end was requested, and `beginning`, the earlier conversation if
    nothing can still be added to it.
    """

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
    beginning: PriorContext | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A query to be stored. One that is not `in_history` belongs to no conversation that is continued; an `incognito`
    one is to be deleted when its session ends. `attempt` is the number of its deliveries by the journal, `model` the
    model that it chooses for its conversation, `settings` the conversation's settings from now on, as JSON.
    """

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
    settings: str | None = None


def stored_turn(row: sqlite3.Row) -> StoredTurn:
    """The turn in a row of `turns`."""
    values = dict(row)
    values["status"], values["tools"] = TurnStatus(values["status"]), tuple(json.loads(values["tools"]))
    for flag in ("in_history", "published", "incognito"):
        values[flag] = bool(values[flag])
    values["refused"] = values["refused"] and Refusal(values["refused"])
    return StoredTurn(**values)


def refusal_of(db: sqlite3.Connection, respondent_id: str, asked: NewTurn) -> Refusal | None:
    """Return why a query cannot be a turn of its session, judged by the session's first query or that of its origin;
    None if it can.
    """
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
    """Return the questions and answers of these turns as user and assistant messages."""
    return [
        {"role": role, "content": text}
        for row in rows
        for role, text in (("user", row["query"]), ("assistant", row["answer"]))
    ]


def settled_past_of(
    db: sqlite3.Connection, respondent_id: str, session_id: str, before: int = END
) -> PriorContext | None:
    """The past of a new turn, unless an earlier turn of its session may still add to it."""
    sql = "SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND status = 'open'"
    if db.execute(sql, (session_id, respondent_id, before)).fetchone():
        return None
    return past_of(db, respondent_id, session_id, before)


def is_tainted(db: sqlite3.Connection, session_id: str, respondent_id: str) -> bool:
    """Whether an earlier turn of that session had untrusted content in front of its model."""
    sql = "SELECT 1 FROM taints WHERE session_id = ? AND respondent_id = ? LIMIT 1"
    return db.execute(sql, (session_id, respondent_id)).fetchone() is not None


def past_of(db: sqlite3.Connection, respondent_id: str, session_id: str, before: int) -> PriorContext:
    """Return the conversation of a session before that position."""
    key = (session_id, respondent_id)
    row = db.execute("SELECT through, body FROM summaries WHERE session_id = ? AND respondent_id = ?", key).fetchone()
    through, summary = (0, None) if row is None else row
    sent = (
        "(SELECT body FROM exchanges WHERE exchanges.query_id = turns.query_id"
        " AND exchanges.respondent_id = turns.respondent_id) AS sent"
    )
    sql = f"SELECT query, answer, finished_at, {sent} {SAID} ORDER BY position LIMIT -1 OFFSET ?"
    rows = db.execute(sql, (*key, before, through)).fetchall()
    return PriorContext(
        summary,
        tuple(messages_of(rows)),
        is_tainted(db, *key),
        tuple(row["sent"] for row in rows),
        chosen_model(db, respondent_id, session_id, before),
        tuple(row["finished_at"] for row in rows),
        settings_of(db, respondent_id, session_id),
    )


def settings_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> str | None:
    """The settings of a session, as JSON; None if it has none."""
    sql = "SELECT settings FROM labels WHERE session_id = ? AND respondent_id = ?"
    row = db.execute(sql, (session_id, respondent_id)).fetchone()
    return None if row is None else row["settings"]


def keep_settings(db: sqlite3.Connection, respondent_id: str, asked: NewTurn, now: float) -> None:
    """Store a query's settings for its session, if it has any."""
    if asked.settings is None:
        return
    db.execute(
        "INSERT INTO labels (session_id, respondent_id, title, pinned, changed_at, settings)"
        " VALUES (?, ?, NULL, 0, ?, ?)"
        " ON CONFLICT DO UPDATE SET settings = excluded.settings, changed_at = excluded.changed_at"
        " WHERE excluded.changed_at >= changed_at",
        (asked.session_id, respondent_id, now, asked.settings),
    )


def chosen_model(db: sqlite3.Connection, respondent_id: str, session_id: str, before: int = END) -> str | None:
    """Return the model that was last chosen for a session before that position; None if none was."""
    sql = (
        "SELECT model FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND refused IS NULL"
        " ORDER BY position DESC LIMIT 1"
    )
    row = db.execute(sql, (session_id, respondent_id, before)).fetchone()
    return None if row is None else row["model"]


T = TypeVar("T")
Also = Callable[[sqlite3.Connection], object] | None
MAX_HISTORY_TURNS = 50


class ConversationService:
    """The record of one respondent. Every coroutine returns after its commit. Raises `StoreFailed`; `StoreFenced` in a
    process that is no longer the last one that opened the record: a newer process continues its turns.
    """

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

    async def accept(self, asked: NewTurn) -> tuple[StoredTurn, bool]:
        """Store a query unless its id is known; returns the stored turn and whether it is new. The first query of a
        session decides its user and whether it is incognito; a query that does not match is `refused`.

        Returns before the query is on the disk: nothing of the turn that is stored later can exist without it.
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
            if stored.refused is None:
                keep_settings(db, self._respondent_id, asked, time.time())
            past = settled_past_of(db, self._respondent_id, stored.session_id, stored.position)
            return replace(stored, cancelled=is_cancelled, beginning=past), True

        return await self._database.write_unsynced(work)

    def foresee(self, asked: NewTurn) -> PriorContext | None:
        """The past that a query would have if it were accepted now, without waiting for anything that is being stored.

        None if it would be no new turn, or not run at once: its id is known, it is cancelled or refused, or an earlier
        turn of its session is open.
        """

        def work(db: sqlite3.Connection) -> PriorContext | None:
            if self._is_cancelled(db, asked.query_id) or self._find(db, asked.query_id) is not None:
                return None
            if refusal_of(db, self._respondent_id, asked) is not None:
                return None
            past = settled_past_of(db, self._respondent_id, asked.session_id)
            return past if past is None or asked.settings is None else past._replace(settings=asked.settings)

        return self.glance(work)

    async def turn(self, query_id: str) -> StoredTurn | None:
        """The stored turn of a query."""
        return await self._database.run(lambda db: self._find(db, query_id))

    async def unfinished(self) -> list[StoredTurn]:
        """Return the turns that a restarted process has to continue, or whose outcome it has to publish;
        oldest first.
        """
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
        """Store steps of a turn, numbered from `first_number`; the single results are deleted then. Without
        `is_synced`, the steps reach the disk with the next write.
        """
        rows = [(query_id, self._respondent_id, first_number + index, body) for index, body in enumerate(bodies)]

        def work(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", rows)
            db.execute("DELETE FROM results WHERE query_id = ? AND respondent_id = ?", (query_id, self._respondent_id))

        await (self._database.write_short if is_synced else self._database.write_unsynced)(work)

    def keep_result(self, query_id: str, call_id: str, body: str) -> asyncio.Future[object]:
        """Store the result of one of several tool calls until the step with all of them is stored, or the turn ends.

        It is stored within a twentieth of a second; callers need not wait for it.
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
        """Note that the outcome is published. Callers need not wait for this: a second publication has the same id."""
        sql = "UPDATE turns SET published = 1 WHERE query_id = ? AND respondent_id = ?"
        return self._database.note(lambda db: db.execute(sql, (query_id, self._respondent_id)))

    async def beginning(self, turn: StoredTurn) -> tuple[PriorContext, list[str]]:
        """Return the start of a turn: the earlier conversation, and its stored steps."""
        own, position = self._respondent_id, turn.position
        return await self._database.run(
            lambda db: (past_of(db, own, turn.session_id, position), self._steps(db, turn.query_id))
        )

    async def keep_summary(self, session_id: str, through: int, body: str) -> None:
        """Store the summary of a session's first `through` exchanges, unless there is one of more, or they
        are deleted.
        """
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
        """Return the last 50 exchanges of a session as plain user and assistant messages, oldest first.

        With `before`, a position, only earlier questions count.
        """
        sql = f"SELECT query, answer {SAID} ORDER BY position DESC LIMIT ?"
        key = (session_id, self._respondent_id, END if before is None else before, MAX_HISTORY_TURNS)
        return await self._database.run(lambda db: messages_of(db.execute(sql, key).fetchall()[::-1]))

    async def session(self, session_id: str) -> list[StoredTurn]:
        """Return every turn of a session, oldest first, and its refused queries."""
        sql = "SELECT * FROM turns WHERE session_id = ? AND respondent_id = ? ORDER BY position"
        key = (session_id, self._respondent_id)
        return await self._database.run(lambda db: [stored_turn(row) for row in db.execute(sql, key)])

    async def delete_session(self, session_id: str) -> int:
        """Delete a session's ended turns permanently from the file; returns how many. Open ones stay."""
        return await self._delete(SESSION, session_id, spare=TurnStatus.OPEN)

    async def drop_session(self, session_id: str) -> int:
        """Delete all turns of a session, also open ones, of which none may be running; returns how many."""
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
        return await self._database.run(lambda db: sessions_with(db, own, query_id))

    async def attachments_of(self, *, session_id: str = "", query_id: str = "") -> set[NamedFile]:
        """The attachments that of their users' queries only those of this session, or only this one, name."""
        what, key = (SESSION, session_id) if session_id else (QUERY, query_id)
        return await self._database.run(lambda db: attachments_of(db, what, key))

    async def forget_recalled(self, engram_id: str) -> int:
        """Take an engram's text from the results of tools that have recalled it; returns how many there were."""
        own = self._respondent_id
        return await self._database.erase(lambda db: forget_recalled(db, own, engram_id))

    async def is_recalled_by_open_turn(self, engram_id: str) -> bool:
        """Whether an open turn may contain content of an engram."""
        own = self._respondent_id
        return await self._database.run(lambda db: is_recalled_by_open_turn(db, own, engram_id))

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
        """Run `work` in a transaction, for tables beside the turns; not in a process that was replaced."""
        return await self._database.write(work)

    def glance(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which can change nothing: a few rows that an index finds, without a thread."""
        return self._reader.read(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which can change nothing and holds up no turn, however long it takes."""
        return await read_apart(self._path, work)

    async def _delete(self, what: str, key: str, *, spare: str = "") -> int:
        own = self._respondent_id
        return await self._database.erase(lambda db: delete_turns(db, own, what, key, spare=spare))

    def _find(self, db: sqlite3.Connection, query_id: str) -> StoredTurn | None:
        sql = "SELECT * FROM turns WHERE query_id = ? AND respondent_id = ?"
        row = db.execute(sql, (query_id, self._respondent_id)).fetchone()
        return None if row is None else stored_turn(row)

    def _steps(self, db: sqlite3.Connection, query_id: str) -> list[str]:
        sql = "SELECT body FROM steps WHERE query_id = ? AND respondent_id = ? ORDER BY number"
        return [row["body"] for row in db.execute(sql, (query_id, self._respondent_id))]


# The taint of turns, the respondent of each answer, and the provenance in a session's earlier turns. In the caller's
# transaction.

_ITS_TURN = "SELECT query_id, respondent_id, session_id FROM turns WHERE query_id = ? AND respondent_id = ?"
_NOT_OWN = (
    "(json_valid(body) AND (coalesce(json_extract(body, '$.tainted'), 0) OR json_extract(body, '$.task') IS NOT NULL))"
)
OWN_ROLES = frozenset({"user", "assistant"})
MOST_TURNS = 50  # the latest of a session, whose results are examined
FEW_TURNS = 3  # the one that asks among them
MOST_WORDS = 1000  # the latest of a session, whose questions are


def text_hash(text: str) -> str:
    """Equal for texts that differ in white space alone, which clients change."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class EarlierRecord:
    """Recorded earlier turns: the questions and outcomes (as JSON), oldest first. `attachments` are ids, `others` are
    questions that may contain untrusted content. `are_tainted` means that the model had read untrusted content in one
    of the turns, or that one is not on record.
    """

    queries: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    are_tainted: bool = False


def turns_of_session(db: sqlite3.Connection, session_id: str, respondent_id: str, before: int) -> EarlierRecord:
    """Return what the turns of a session before that position record about its taint."""
    where = "FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND refused IS NULL"
    key = (session_id, respondent_id, before)
    asked = f"SELECT query, {_NOT_OWN} AS others {where} ORDER BY position DESC LIMIT ?"
    queries = db.execute(asked, (*key, MOST_WORDS)).fetchall()
    rows = db.execute(f"SELECT body, outcome {where} ORDER BY position DESC LIMIT ?", (*key, MOST_TURNS)).fetchall()
    return EarlierRecord(
        tuple(row["query"] for row in reversed(queries) if not row["others"]),
        tuple(row["outcome"] for row in reversed(rows) if row["outcome"]),
        _attachments(row["body"] for row in reversed(rows)),
        tuple(row["query"] for row in reversed(queries) if row["others"]),
    )


def few_turns_of_session(
    db: sqlite3.Connection, session_id: str, respondent_id: str, before: int
) -> EarlierRecord | None:
    """Return the same as `turns_of_session` if that is quick; else None."""
    sql = "SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? LIMIT ?"
    turns = db.execute(sql, (session_id, respondent_id, before, FEW_TURNS + 1)).fetchall()
    return None if len(turns) > FEW_TURNS else turns_of_session(db, session_id, respondent_id, before)


def turns_that_wrote(db: sqlite3.Connection, texts: Sequence[str], respondent_id: str) -> EarlierRecord:
    """Return the turns with these answers, for clients that keep the history themselves."""
    writers = [_writers(db, text, respondent_id) for text in texts]
    found = [row for rows in writers[-MOST_TURNS:] for row in rows]
    return EarlierRecord(
        outcomes=tuple(row["outcome"] for row in found if row["outcome"]),
        attachments=_attachments(row["body"] for row in found),
        are_tainted=not all(writers) or any(row["tainted"] for rows in writers for row in rows),
    )


def prior_to_task(db: sqlite3.Connection, respondent_id: str, parent_query_id: str) -> EarlierRecord:
    """Return the record that a task may use which was written after untrusted content was read: that of the turn that
    wrote it or, if that had such a task itself, that of the first turn above without one.
    """
    sql = "SELECT session_id, position, body, outcome FROM turns WHERE query_id = ? AND respondent_id = ?"
    query_id, task = parent_query_id, dict[str, Any](tainted=True)
    while task.get("tainted"):
        row = db.execute(sql, (query_id, respondent_id)).fetchone()
        if row is None:
            return EarlierRecord()
        body = json.loads(row["body"])
        task = body.get("task") or {}
        if task.get("tainted"):
            query_id = task["parent_query_id"]
    if (history := body.get("history")) is None:
        earlier = turns_of_session(db, row["session_id"], respondent_id, row["position"])
    else:
        earlier = turns_that_wrote(db, _answers(history), respondent_id)
    return replace(earlier, outcomes=(*earlier.outcomes, row["outcome"] or _so_far(db, query_id, respondent_id)))


def _so_far(db: sqlite3.Connection, query_id: str, respondent_id: str) -> str:
    """Return the calls of a turn that has not ended, as its outcome would list them."""
    sql = "SELECT body FROM steps WHERE query_id = ? AND respondent_id = ? ORDER BY number"
    steps = [json.loads(row["body"]) for row in db.execute(sql, (query_id, respondent_id)).fetchall()]
    return json.dumps({"tool_calls": [record for step in steps for record in step.get("records") or ()]})


def opened_in(
    db: sqlite3.Connection, conversation: str, respondent_id: str, history: Sequence[Mapping[str, Any]]
) -> dict[str, set[str]]:
    """Return the addresses opened in a conversation, by question, and in the turns that gave the answers of a history.
    An answer that the client has changed counts as that to the same question, when it was last asked."""
    sql = "SELECT query_id, address FROM opened WHERE {} = ? AND respondent_id = ?"
    rows = db.execute(sql.format("conversation"), (conversation, respondent_id)).fetchall()
    asked, turns = "", set[str]()
    for each in history:
        text = _text(each)
        if each.get("role") == "user":
            asked = text
        elif each.get("role") == "assistant" and text:
            turns |= {row["query_id"] for row in _writers(db, text, respondent_id)} or _opening(
                db, asked, respondent_id
            )
    for query_id in turns:
        rows += db.execute(sql.format("query_id"), (query_id, respondent_id)).fetchall()
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["query_id"], set()).add(row["address"])
    return found


def _opening(db: sqlite3.Connection, asked: str, respondent_id: str) -> set[str]:
    """Return the latest turn with that question that has opened a link."""
    sql = (
        "SELECT query_id FROM turns WHERE respondent_id = ? AND trim(query) = ? AND query_id IN"
        " (SELECT query_id FROM opened WHERE respondent_id = ?) ORDER BY position DESC LIMIT 1"
    )
    return {row["query_id"] for row in db.execute(sql, (respondent_id, asked, respondent_id))}


def _writers(db: sqlite3.Connection, text: str, respondent_id: str) -> list[sqlite3.Row]:
    sql = (
        "SELECT query_id, body, outcome, EXISTS (SELECT 1 FROM taints WHERE taints.query_id = turns.query_id"
        " AND taints.respondent_id = turns.respondent_id) AS tainted"
        " FROM written JOIN turns USING (query_id, respondent_id) WHERE hash = ? AND respondent_id = ?"
    )
    return db.execute(sql, (text_hash(text), respondent_id)).fetchall()


def _attachments(bodies: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for body in bodies for name in json.loads(body).get("attachments", ())))


def end_of(
    query_id: str, respondent_id: str, *, tainted: bool, written: Sequence[str]
) -> Callable[[sqlite3.Connection], None]:
    """Return what is stored at the end of a turn: whether it was tainted, and the forms in which clients that keep the
    history may send back its answer.
    """
    hashes = {text_hash(text) for text in written if text.strip()}

    def store(db: sqlite3.Connection) -> None:
        key = (query_id, respondent_id)
        if tainted:
            db.execute(f"INSERT OR IGNORE INTO taints {_ITS_TURN}", key)
        db.executemany("INSERT OR IGNORE INTO written VALUES (?, ?, ?)", [(*key, each) for each in hashes])

    return store


class TaintRecord:
    """The taint that one respondent has on record, kept beside its turns. Raises as `ConversationService` does."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._respondent_id = conversation, respondent_id
        self._budgets: WeakValueDictionary[str, LinkBudget] = WeakValueDictionary()  # of turns that run

    def beside(self, asked: QueryReceived, session_id: str, before: int) -> QueryTaint:
        """Return the taint record of one query."""
        return QueryTaint(self, asked, session_id, before)

    async def budget(self, conversation: str, history: Sequence[Mapping[str, Any]] | None) -> LinkBudget:
        """Return the link budget of a conversation; all its running turns get the same object."""
        if (known := self._budgets.get(conversation)) is not None:
            return known
        own, messages = self._respondent_id, history or ()
        opened = await self._conversation.write(lambda db: opened_in(db, conversation, own, messages))
        return self._budgets.setdefault(conversation, LinkBudget(opened))

    async def keep(self, budget: LinkBudget, conversation: str) -> None:
        """Store the opened links, as long as the question is on record."""
        pairs, budget.unsaved[:] = list(budget.unsaved), []
        rows = [(conversation, address, query_id, self._respondent_id) for query_id, address in pairs]
        sql = (
            "INSERT OR IGNORE INTO opened SELECT query_id, respondent_id, ?, ? FROM turns"
            " WHERE query_id = ? AND respondent_id = ?"
        )
        await self._conversation.write(lambda db: db.executemany(sql, rows))

    async def before_task(self, task: AgentTask) -> EarlierRecord:
        """Return the record that a tainted task may use."""
        own = self._respondent_id
        return await self._conversation.write(lambda db: prior_to_task(db, own, task.parent_query_id))

    async def earlier(self, history: Sequence[Mapping[str, Any]] | None, session_id: str, before: int) -> EarlierRecord:
        """Return the record before a query: by the history that a client has sent with it, else by its session."""
        return await (self.turns_of(session_id, before) if history is None else self.turns_of_history(history))

    async def turns_of(self, session_id: str, before: int = END) -> EarlierRecord:
        """Return what the turns of a session before that position record about its taint; without a thread if they are
        few.
        """
        own = self._respondent_id
        if (few := self._conversation.glance(lambda db: few_turns_of_session(db, session_id, own, before))) is not None:
            return few
        return await self._conversation.write(lambda db: turns_of_session(db, session_id, own, before))

    async def turns_of_history(self, history: Sequence[Mapping[str, Any]]) -> EarlierRecord:
        """Return the turns whose answers a client has among the messages of a conversation that it keeps itself."""
        texts = _answers(history)
        return await self._conversation.write(lambda db: turns_that_wrote(db, texts, self._respondent_id))

    async def is_history_tainted(self, history: Sequence[Mapping[str, Any]], *, of_agent: bool = False) -> bool:
        """Whether a conversation that a client keeps itself holds instructions of the client, results of tools, text
        that a template has put into a user's message, answers that we have not given, or one that was tainted. The
        history `of_agent` has its tasks as the user's messages, and their taint is known."""
        said = [(each.get("role"), text) for each in history if (text := _text(each))]
        roles = {role for role, _ in said}
        if not roles <= OWN_ROLES:
            return True
        if not of_agent and any(role == "user" and has_template_marks(text) for role, text in said):
            return True
        return "assistant" in roles and (await self.turns_of_history(history)).are_tainted


@dataclass(frozen=True, slots=True)
class QueryTaint:
    """The taint on record beside one query, a `TurnRecord`. An agent's query belongs to its user's conversation, and
    all runs of a job that was made after untrusted content was read are one conversation."""

    record: TaintRecord
    asked: QueryReceived
    session_id: str
    before: int

    @property
    def conversation(self) -> str:
        """Return the conversation in which its opened links are counted."""
        asked = self.asked
        if asked.task is not None:
            return asked.task.root_session_id
        is_job = asked.tainted and bool(asked.job_id) and asked.session_id is None
        return f"job {asked.job_id}" if is_job else self.session_id

    async def earlier(self) -> EarlierRecord:
        """Return the record before this query."""
        return await self.record.earlier(self.asked.history, self.session_id, self.before)

    async def before_task(self) -> EarlierRecord | None:
        """Return the record that its task may use, if the task is tainted."""
        task = self.asked.task
        return await self.record.before_task(task) if task is not None and task.tainted else None

    async def budget(self) -> LinkBudget:
        """Return the link budget of its conversation."""
        return await self.record.budget(self.conversation, None if self.asked.task else self.asked.history)

    async def keep(self, budget: LinkBudget) -> None:
        """Store the `unsaved` part of the budget."""
        await self.record.keep(budget, self.conversation)


def _answers(history: Iterable[Mapping[str, Any]]) -> list[str]:
    return [text for each in history if each.get("role") == "assistant" and (text := _text(each))]


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("content") or "").strip()


# The turns of a session in pages, by position, so that new turns do not move them. In the caller's transaction.

Order = Literal["before", "after", "at"]
_OF_SESSION = "FROM turns WHERE session_id = ? AND respondent_id = ? AND refused IS NULL"


class SessionHead(NamedTuple):
    """A session's user and number of turns."""

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
    """A page of turns, the nearest to the place first; `has_more` says whether there are others beyond them. `contexts`
    has, by query, the memory content in the prompt as JSON; it is removed once a part of it is deleted.
    """

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
