"""Runs the calls of a tool with effects: each at most once, on record before it begins."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from local import failpoints
from local.errors import StoreFailed, ToolError
from local.protocol.messages import ErrorInfo, ToolRequest, ToolResult
from local.services.effect_store import FORGOTTEN, EffectCall, EffectStore, StoredEffect
from local.services.sqlite_file import within_patience

NOT_REPEATED = "it may or may not have happened; it is not repeated"
DELETED = ToolError("this call was made before; how it ended was deleted, and it is not repeated", kind="deleted")


def key_of(request: ToolRequest) -> str:
    """The key of a call, equal in every request that repeats it; two respondents count their calls alike."""
    return f"{request.respondent_id} {request.call_id}"


def asked_of(request: ToolRequest) -> str:
    """A digest of what a request asks for; the record holds no arguments."""
    asked = json.dumps([request.tool, request.args], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()


def on_record(request: ToolRequest, known: StoredEffect) -> ToolResult:
    """The result of a call that has begun before and is not running: as it was recorded, or that nobody knows.

    Raises `ToolError` (conflict) if another call was made under its id.
    """
    if known.asked != asked_of(request):
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
    """What the model reads of a call that was cut off."""
    return ToolError(f"{why}: {NOT_REPEATED}", kind="outcome_unknown")


log = logging.getLogger(__name__)


def _patience(request: ToolRequest, seconds: float) -> float:
    half = seconds / 2
    return half if request.grant is None else min(half, request.grant.expires_at - time.time())


class AtMostOnce:
    """One tool's way to its record of effects."""

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
    ) -> ToolResult:
        """The result of `attempt` if the call is not on record, else of the run that is. What `attempt` raises is
        recorded as `explain` puts it. While nothing can be written, as on a full disk, it waits for a while: of the
        `seconds` of a call at most half, and no longer than its leave holds; `attempt` is told how many are left.

        Raises `ToolError` if nothing was done: the call was another's (conflict), or could not be put on record
        (store_failed, store_full); `StoreFenced` in a process that another one has replaced.
        """
        key = key_of(request)
        async with self._in_flight.setdefault(key, asyncio.Lock()):  # a repeat waits, and finds the result on record
            call = EffectCall(key, asked_of(request), request.query_id, session_id)
            try:
                known, waited = await within_patience(lambda: self.store.begin(call), _patience(request, seconds))
            except StoreFailed as error:
                raise ToolError(f"{request.tool} was not run: {error}", kind=error.kind) from None
            if known is not None:
                result = on_record(request, known)
                return result if known.outcome is not None else await self._recorded(key, result.encode())
            try:
                outcome = (await attempt(seconds - waited)).encode()
            except Exception as error:
                await self._recorded(key, explain(error).encode())
                raise
            return await self._recorded(key, outcome)

    async def _recorded(self, key: str, outcome: bytes) -> ToolResult:
        """Record how a call ended; returns the end that is on record, which is the first that was."""
        try:
            outcome = (await self.store.end(key, outcome.decode())).encode()
        except StoreFailed as error:  # what happened is true all the same; a repeat will hear that nobody knows
            log.error("how call %s ended could not be recorded: %s", key, error)
        failpoints.reach("tool.recorded")
        return ToolResult.decode(outcome)
