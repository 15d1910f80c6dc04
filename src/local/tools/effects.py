"""Runs the calls of a tool with effects: each at most once, on record before it begins."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

from local.bus.message import ErrorInfo
from local.bus.messages import ToolBegins, ToolRequest, ToolResult
from local.core import failpoints
from local.core.database import OwnedDatabase, within_patience
from local.core.errors import StoreFailed, ToolError

# Which calls of one tool have begun, and how they ended, in one SQLite file.

KEPT_SECONDS = 30 * 24 * 3600.0
FORGOTTEN = ""  # in the place of an outcome

_MIGRATIONS = (
    """
    CREATE TABLE owner (token TEXT NOT NULL);
    CREATE TABLE effects (
        key TEXT PRIMARY KEY,
        asked TEXT NOT NULL,
        outcome TEXT,
        begun_at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX effects_by_age ON effects (begun_at);
    """,
    """
    DROP TABLE owner;
    ALTER TABLE effects ADD COLUMN query_id TEXT;
    ALTER TABLE effects ADD COLUMN session_id TEXT;
    CREATE INDEX effects_by_query ON effects (query_id);
    CREATE INDEX effects_by_session ON effects (session_id);
    """,
)


@dataclass(frozen=True, slots=True)
class EffectCall:
    """One call of the tool: `key` is the same for every repetition, `asked` is the digest of its arguments. It belongs
    to a query, and that to a session.
    """

    key: str
    asked: str
    query_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class StoredEffect:
    """One recorded call. `asked` is the digest of its arguments; `outcome` its result: `FORGOTTEN` if that was deleted,
    None if it is unknown.
    """

    asked: str
    outcome: str | None


class EffectStore(OwnedDatabase):
    """The ledger of one tool's effects, in a SQLite file. Use it as `async with`. The process that opened the file last
    is its owner. Calls that began more than 30 days before that are forgotten.

    Every coroutine returns after its commit; raises `StoreFailed`, `StoreFull` where the disk is full.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since 1970."""
        super().__init__(path, _MIGRATIONS)
        self._clock = clock

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.note(self._drop_old)
        return self

    async def begin(self, call: EffectCall) -> StoredEffect | None:
        """Record the beginning of a call, unless it is recorded already: then return that record. Raises `StoreFenced`
        in a process that is no longer the owner.
        """

        def work(db: sqlite3.Connection) -> StoredEffect | None:
            row = db.execute("SELECT asked, outcome FROM effects WHERE key = ?", (call.key,)).fetchone()
            if row is not None:
                return StoredEffect(row["asked"], row["outcome"])
            sql = "INSERT INTO effects (key, asked, begun_at, query_id, session_id) VALUES (?, ?, ?, ?, ?)"
            db.execute(sql, (call.key, call.asked, self._clock(), call.query_id, call.session_id))
            return None

        return await self.write(work)

    async def end(self, key: str, outcome: str) -> str:
        """Record the result of a call, unless one is recorded; returns the record. The result of a deleted one is not
        kept. Open to former owners, too: the result of their last run is useful.
        """

        def work(db: sqlite3.Connection) -> str:
            sql = "UPDATE effects SET outcome = coalesce(outcome, ?) WHERE key = ? RETURNING outcome"
            rows = db.execute(sql, (outcome, key)).fetchall()
            kept = rows[0]["outcome"] if rows else None
            return str(kept or outcome)

        return await self.run(work)

    async def forget_session(self, session_id: str) -> int:
        """Delete the results of a session's calls permanently; the record that they began stays. Returns how many there
        were.
        """
        return await self._forget("session_id", session_id)

    async def forget_query(self, query_id: str) -> int:
        """Delete the results of a query's calls permanently; the record that they began stays. Returns how many there
        were.
        """
        return await self._forget("query_id", query_id)

    async def _forget(self, what: str, key: str) -> int:
        """Delete the results of ended and running calls: those that the latter record afterwards are not kept."""
        sql = f"UPDATE effects SET outcome = ? WHERE {what} = ?"
        return await self.erase(lambda db: db.execute(sql, (FORGOTTEN, key)).rowcount)

    def _drop_old(self, db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM effects WHERE begun_at < ?", (self._clock() - KEPT_SECONDS,))


NOT_REPEATED = "it may or may not have happened; it is not repeated"
DELETED = ToolError("this call was made before; how it ended was deleted, and it is not repeated", kind="deleted")


def key_of(request: ToolRequest | ToolBegins | ToolResult) -> str:
    """The key of a call, equal in every request that repeats it; two respondents count their calls alike."""
    return f"{request.respondent_id} {request.call_id}"


def request_digest(request: ToolRequest | ToolBegins) -> str:
    """Return a digest of a request's tool and arguments; the record holds no arguments."""
    asked = json.dumps([request.tool, request.args], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()


def on_record(request: ToolRequest, known: StoredEffect) -> ToolResult:
    """Return the result of a call that has begun before and is not running: the recorded one, or that it is unknown.

    Raises `ToolError` (conflict) if another call was made under its id.
    """
    if known.asked != request_digest(request):
        text = f"{request.tool}: call {request.call_id} was made with other arguments before; nothing was done"
        raise ToolError(text, kind="conflict")
    if known.outcome:
        return ToolResult.decode(known.outcome.encode())
    error = DELETED if known.outcome == FORGOTTEN else outcome_unknown(f"{request.tool} was interrupted in this call")
    return ToolResult(
        query_id=request.query_id,
        respondent_id=request.respondent_id,
        call_id=request.call_id,
        tool=request.tool,
        error=ErrorInfo.of(error),
    )


def outcome_unknown(why: str) -> ToolError:
    """Return the result of an interrupted call, for the model."""
    return ToolError(f"{why}: {NOT_REPEATED}", kind="outcome_unknown")


log = logging.getLogger(__name__)


def _patience(request: ToolRequest, seconds: float) -> float:
    half = seconds / 2
    return half if request.grant is None else min(half, request.grant.expires_at - time.time())


class AtMostOnce:
    """The runner of a tool's calls that change something: each takes effect at most once."""

    def __init__(self, store: EffectStore) -> None:
        self.store = store
        self._in_flight: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(
        self,
        request: ToolRequest,
        session_id: str,
        attempt: Callable[[float], Awaitable[ToolResult]],
        explain: Callable[[Exception], ToolResult],
        seconds: float,
        announce: Callable[[], Awaitable[object]] | None = None,
    ) -> ToolResult:
        """Return the result of `attempt` if the call is not recorded, else of the recorded run. An error of `attempt`
        is recorded as `explain` words it. While nothing can be written, as on a full disk, it waits: at most half of
        the `seconds` of a call, and no longer than its approval is valid; `attempt` receives the remaining seconds.
        It is not called before `announce` has returned, if there is that.

        Raises `ToolError` if nothing was done: the id belongs to another call (conflict), or it could not be recorded
        (store_failed, store_full); `StoreFenced` in a process that was replaced.
        """
        key = key_of(request)
        async with self._in_flight.setdefault(key, asyncio.Lock()):  # a repeat waits, and finds the result on record
            call = EffectCall(key, request_digest(request), request.query_id, session_id)
            try:
                known, waited = await within_patience(lambda: self.store.begin(call), _patience(request, seconds))
            except StoreFailed as error:
                raise ToolError(f"{request.tool} was not run: {error}", kind=error.kind) from None
            if known is not None:
                result = on_record(request, known)
                return result if known.outcome is not None else await self._recorded(key, result.encode())
            try:
                if announce is not None:
                    await announce()
                outcome = (await attempt(seconds - waited)).encode()
            except Exception as error:
                await self._recorded(key, explain(error).encode())
                raise
            return await self._recorded(key, outcome)

    async def _recorded(self, key: str, outcome: bytes) -> ToolResult:
        """Record how a call ended; returns the end that is on record, which is the first that was."""
        try:
            outcome = (await self.store.end(key, outcome.decode())).encode()
        except StoreFailed as error:  # the effect has happened all the same; for a repetition the result is unknown
            log.error("how call %s ended could not be recorded: %s", key, error)
        failpoints.reach("tool.recorded")
        return ToolResult.decode(outcome)
