"""The approvals and grants: recorded first, and the latest in memory."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from local.bus.messages import PlanMode, arguments_digest
from local.bus.vocabulary import PROPOSE_PLAN, Category, Safety
from local.core.database import OwnedDatabase
from local.core.errors import BadRequest
from local.permissions.messages import ApprovalRequest, Decision, RememberedGrant
from local.permissions.policy import JudgedCall

# The requests, their decisions, and the grants of conversations, in one SQLite file.

KEPT_SECONDS = 30 * 24 * 3600.0
KEPT_ROWS = 10_000

_MIGRATIONS = (
    """
    CREATE TABLE approvals (
        key TEXT PRIMARY KEY,
        query_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        user_id TEXT,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        body TEXT,
        asked_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        decision TEXT,
        decided_by TEXT,
        answer TEXT,
        decided_at REAL,
        is_told INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX approvals_by_session ON approvals (session_id);
    CREATE INDEX approvals_by_query ON approvals (query_id);
    CREATE TABLE remembered (
        leave_id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        user_id TEXT,
        query_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        scope TEXT NOT NULL,
        is_tainted INTEGER NOT NULL,
        decided_at REAL NOT NULL,
        UNIQUE (session_id, tool, digest)
    );
    """,
    "ALTER TABLE approvals ADD COLUMN mode TEXT;",
)


@dataclass(frozen=True, slots=True)
class StoredApproval:
    """One request as it is stored. `body` is the message with it, None once it is decided; `digest` is of the
    arguments; `mode` how the rest of a turn with an approved plan runs. Times are seconds since 1970.
    """

    key: str
    query_id: str
    session_id: str
    user_id: str | None
    tool: str
    digest: str
    body: str | None
    asked_at: float
    expires_at: float
    decision: str | None = None
    decided_by: str | None = None
    answer: str | None = None
    decided_at: float | None = None
    is_published: bool = False
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class SessionGrant:
    """An approval for a whole session: calls of a tool with the `scope`, arguments as JSON, of that `digest`."""

    grant_id: int
    session_id: str
    user_id: str | None
    query_id: str
    tool: str
    digest: str
    scope: str
    is_tainted: bool
    decided_at: float


class ApprovalStore(OwnedDatabase):
    """The SQLite file of requests and decisions. Use as `async with`. The process that opened the file last is its
    owner; requests from 30 days before that are deleted.

    Every coroutine returns after its commit; raises `StoreFailed`, `StoreFull`, `StoreFenced`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _MIGRATIONS)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.write(self._drop_old)
        return self

    async def all(self) -> list[StoredApproval]:
        """Every question, the oldest first; the latest 10,000 are kept."""

        def work(db: sqlite3.Connection) -> list[StoredApproval]:
            return [_approval(row) for row in db.execute("SELECT * FROM approvals ORDER BY asked_at")]

        return await self.run(work)

    async def remembered(self) -> list[SessionGrant]:
        """Return the grants for whole sessions, the oldest first."""

        def work(db: sqlite3.Connection) -> list[SessionGrant]:
            return [_grant(row) for row in db.execute("SELECT * FROM remembered ORDER BY leave_id")]

        return await self.run(work)

    async def ask(self, approval: StoredApproval) -> None:
        """Note a question that is new."""
        sql = (
            "INSERT INTO approvals (key, query_id, session_id, user_id, tool, digest, body, asked_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        fields = (
            approval.key, approval.query_id, approval.session_id, approval.user_id, approval.tool, approval.digest,
            approval.body, approval.asked_at, approval.expires_at,
        )  # fmt: skip
        await self.write(lambda db: db.execute(sql, fields).rowcount)

    async def decide(self, decided: StoredApproval, grant: SessionGrant | None = None) -> SessionGrant | None:
        """Store the first decision, and its grant, if any; returns the grant with its id. The arguments of a decided
        request are not kept.
        """
        sql = (
            "UPDATE approvals SET decision = ?, decided_by = ?, answer = ?, decided_at = ?, mode = ?, body = NULL"
            " WHERE key = ? AND decision IS NULL"
        )
        told = (decided.decision, decided.decided_by, decided.answer, decided.decided_at, decided.mode)
        fields = (*told, decided.key)

        def work(db: sqlite3.Connection) -> SessionGrant | None:
            db.execute(sql, fields)
            return None if grant is None else _remember(db, grant)

        return await self.write(work)

    async def mark_published(self, key: str) -> None:
        """Note that the decision is published."""
        await self.write(lambda db: db.execute("UPDATE approvals SET is_told = 1 WHERE key = ?", (key,)).rowcount)

    async def take_back(self, grant_id: int) -> None:
        """Delete a grant."""
        await self.write(lambda db: db.execute("DELETE FROM remembered WHERE leave_id = ?", (grant_id,)).rowcount)

    async def forget(self, column: str, value: str) -> None:
        """Delete permanently what belongs to a session or a query: `column` is session_id or query_id."""

        def work(db: sqlite3.Connection) -> None:
            for table in ("approvals", "remembered"):
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (value,))

        await self.erase(work)

    def _drop_old(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM approvals WHERE asked_at < ?", (time.time() - KEPT_SECONDS,))
        db.execute(
            "DELETE FROM approvals WHERE key IN (SELECT key FROM approvals ORDER BY asked_at DESC LIMIT -1 OFFSET ?)",
            (KEPT_ROWS,),
        )


def _remember(db: sqlite3.Connection, grant: SessionGrant) -> SessionGrant:
    sql = (
        "INSERT INTO remembered (session_id, user_id, query_id, tool, digest, scope, is_tainted, decided_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET is_tainted = max(is_tainted, excluded.is_tainted)"
        " RETURNING *"
    )
    fields = (
        grant.session_id, grant.user_id, grant.query_id, grant.tool, grant.digest, grant.scope, grant.is_tainted,
        grant.decided_at,
    )  # fmt: skip
    return _grant(db.execute(sql, fields).fetchall()[0])


def _approval(row: sqlite3.Row) -> StoredApproval:
    fields = dict(row)
    is_published = bool(fields.pop("is_told"))
    return StoredApproval(**fields, is_published=is_published)


def _grant(row: sqlite3.Row) -> SessionGrant:
    fields = {name: row[name] for name in row.keys() if name != "leave_id"}  # noqa: SIM118 - a row has no items
    return SessionGrant(row["leave_id"], **{**fields, "is_tainted": bool(row["is_tainted"])})


OF_FILES: frozenset[Category] = frozenset({"read", "write"})


class NotWaiting(BadRequest):
    """The error that a request is not open: it was decided already, or does not exist."""

    kind = "conflict"


def key_of(call_id: str, respondent_id: str) -> str:
    """The key by which a call is known; two respondents count theirs alike."""
    return f"{respondent_id} {call_id}"


def scope_of(args: Mapping[str, Any], safety: Safety, category: Category) -> dict[str, Any]:
    """Return the scope of a grant "in this conversation": these arguments, or of a tool for files that file."""
    path = args.get("path")
    if safety == "L1" and category in OF_FILES and isinstance(path, str):
        return {"path": path}
    return dict(args)


class ApprovalQueue:
    """The questions and decisions, in memory and on record; one call at a time writes. Every coroutine raises as the
    store does."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store, self._lock = store, asyncio.Lock()
        self._known: dict[str, StoredApproval] = {}
        self._waiting: dict[str, ApprovalRequest] = {}
        self._remembered: dict[tuple[str, str, str], SessionGrant] = {}
        self._forgotten = set[str]()  # keys of what was deleted: a turn may repeat its request before it ends

    async def load(self) -> None:
        """Read the record."""
        for approval in await self._store.all():
            self._known[approval.key] = replace(approval, body=None)
            if approval.decision is None and approval.body is not None:
                self._waiting[approval.key] = ApprovalRequest.decode(approval.body.encode())
        for grant in await self._store.remembered():
            self._remembered[grant.session_id, grant.tool, grant.digest] = grant

    def get(self, key: str) -> StoredApproval | None:
        """Return the request about a call, if any."""
        return self._known.get(key)

    def waiting(self, user_id: str | None = None) -> Iterator[tuple[StoredApproval, ApprovalRequest]]:
        """Return the open requests, the oldest first; with `user_id` only that user's."""
        for key, request in self._waiting.items():
            if user_id is None or self._known[key].user_id == user_id:
                yield self._known[key], request

    def asking(self, call_id: str, user_id: str | None = None) -> tuple[StoredApproval, ApprovalRequest]:
        """The question about a call. Raises `NotWaiting` if none is open, or it is another user's."""
        for approval, request in self.waiting(user_id):
            if request.call_id == call_id:
                return approval, request
        raise NotWaiting(f"call {call_id} waits for no decision: it was decided, or does not exist")

    def plan_of(self, query_id: str, respondent_id: str) -> StoredApproval | None:
        """The plan that a turn has proposed last, whatever has become of it: no earlier one counts beside it."""
        ours = key_of("", respondent_id)
        plans = (each for each in reversed(self._known.values()) if each.tool == PROPOSE_PLAN)
        return next((each for each in plans if each.query_id == query_id and each.key.startswith(ours)), None)

    def unpublished(self) -> list[StoredApproval]:
        """Return the decisions that are not known to be published."""
        return [each for each in self._known.values() if each.decision is not None and not each.is_published]

    async def ask(self, request: ApprovalRequest, user_id: str | None) -> StoredApproval:
        """Store a request, unless it exists already; returns its record. Raises `NotWaiting` for a deleted one."""
        key = key_of(request.call_id, request.respondent_id)
        async with self._lock:
            if key in self._forgotten:
                raise NotWaiting("the exchange that it belongs to was deleted")
            if (known := self._known.get(key)) is not None:
                return known
            approval = StoredApproval(
                key, request.query_id, request.session_id, user_id, request.tool, arguments_digest(request.args),
                request.encode().decode(), request.asked_at, request.expires_at,
            )  # fmt: skip
            await self._store.ask(approval)
            self._known[key] = approval = replace(approval, body=None)
            self._waiting[key] = request
            return approval

    async def decide(
        self, key: str, decision: Decision, by: str, answer: str | None, now: float, mode: PlanMode | None = None
    ) -> StoredApproval:
        """Note the first decision. Raises `NotWaiting` for any other."""
        async with self._lock:
            known, request = self._known.get(key), self._waiting.get(key)
            if known is None or request is None:
                was = "" if known is None else f": it was decided by {known.decided_by} ({known.decision})"
                raise NotWaiting(f"call {key.partition(' ')[2]} waits for no decision{was}")
            decided = replace(known, decision=decision, decided_by=by, answer=answer, decided_at=now, mode=mode)
            grant = await self._store.decide(decided, _grant_of(decided, request))
            if grant is not None:
                self._remembered[grant.session_id, grant.tool, grant.digest] = grant
            self._known[key] = decided
            del self._waiting[key]
            return decided

    async def mark_published(self, key: str) -> None:
        """Note that the decision is published."""
        await self._store.mark_published(key)
        if key in self._known:
            self._known[key] = replace(self._known[key], is_published=True)

    # The grants

    def allows(self, session_id: str, call: JudgedCall) -> bool:
        """Whether a call is granted for the whole session. A grant for a file from before untrusted content does not
        hold afterwards: the content to write may differ.
        """
        scope = scope_of(call.args, call.safety, call.category)
        grant = self._remembered.get((session_id, call.tool, arguments_digest(scope)))
        return grant is not None and (grant.is_tainted or not call.tainted or scope == dict(call.args))

    def remembered(self, user_id: str | None = None) -> list[RememberedGrant]:
        """Return all of them, the oldest first; with `user_id` that user's."""
        return [
            RememberedGrant(
                grant_id=grant.grant_id,
                session_id=grant.session_id,
                tool=grant.tool,
                args=json.loads(grant.scope),
                decided_at=grant.decided_at,
            )
            for grant in self._remembered.values()
            if user_id is None or grant.user_id == user_id
        ]

    async def take_back(self, grant_id: int, user_id: str | None = None) -> bool:
        """Delete a grant; False if there is none, or it is another user's."""
        async with self._lock:
            for place, grant in self._remembered.items():
                if grant.grant_id == grant_id and user_id in (None, grant.user_id):
                    await self._store.take_back(grant_id)
                    del self._remembered[place]
                    return True
        return False

    async def forget_session(self, session_id: str) -> None:
        """Keep nothing of a session."""
        await self._forget("session_id", session_id)

    async def forget_query(self, query_id: str) -> None:
        """Keep nothing of a query."""
        await self._forget("query_id", query_id)

    async def _forget(self, column: str, value: str) -> None:
        async with self._lock:
            await self._store.forget(column, value)
            gone = {key for key, each in self._known.items() if getattr(each, column) == value}
            self._forgotten |= gone
            self._known = {key: each for key, each in self._known.items() if key not in gone}
            self._waiting = {key: each for key, each in self._waiting.items() if key not in gone}
            kept = {place: each for place, each in self._remembered.items() if getattr(each, column) != value}
            self._remembered = kept


def _grant_of(decided: StoredApproval, request: ApprovalRequest) -> SessionGrant | None:
    if decided.decision != "allow_session":
        return None
    scope = scope_of(request.args, request.level, request.category)
    return SessionGrant(
        0, decided.session_id, decided.user_id, decided.query_id, decided.tool, arguments_digest(scope),
        json.dumps(scope), request.tainted, decided.decided_at or 0.0,
    )  # fmt: skip
