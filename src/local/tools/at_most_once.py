"""Runs the calls of a tool with effects: each at most once, on record before it begins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from local import failpoints
from local.errors import StoreFailed, ToolError
from local.protocol.messages import ToolRequest, ToolResult
from local.services.effect_store import Call, EffectStore
from local.tools.effect_ledger import asked_of, key_of, on_record

log = logging.getLogger(__name__)


class AtMostOnce:
    """One tool's way to its record of effects."""

    def __init__(self, store: EffectStore) -> None:
        self.store = store
        self._in_hand: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(
        self,
        request: ToolRequest,
        session_id: str,
        attempt: Callable[[], Awaitable[ToolResult]],
        explain: Callable[[Exception], ToolResult],
    ) -> ToolResult:
        """The result of `attempt` if the call is not on record, else of the run that is. What `attempt` raises is
        recorded as `explain` puts it.

        Raises `ToolError` if nothing was done: the call was another's (conflict), or could not be put on record
        (store_failed, store_full); `StoreFenced` in a process that another one has replaced.
        """
        key = key_of(request)
        async with self._in_hand.setdefault(key, asyncio.Lock()):  # a repeat waits, and finds the result on record
            try:
                known = await self.store.begin(Call(key, asked_of(request), request.query_id, session_id))
            except StoreFailed as error:
                raise ToolError(f"{request.tool} was not run: {error}", kind=error.kind) from None
            if known is not None:
                result = on_record(request, known)
                return result if known.outcome is not None else await self._recorded(key, result.encode())
            try:
                outcome = (await attempt()).encode()
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
