"""The calls of one tool that run now: each ends within its time, or when its query is cancelled."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Coroutine
from typing import Any

from local import failpoints
from local.errors import ToolError
from local.protocol.messages import ToolRequest
from local.tools.at_most_once import outcome_unknown
from local.tools.tool_output import ToolOutput

CANCELLED_KEPT = 1024


class RunningCalls:
    """The calls of the tool of that name; `has_effects`: of one that was cut off nobody knows what it has done."""

    def __init__(self, tool: str, *, has_effects: bool) -> None:
        self._tool, self._has_effects = tool, has_effects
        self._tasks: defaultdict[str, set[asyncio.Task[ToolOutput]]] = defaultdict(set)
        self._cancelled: deque[str] = deque(maxlen=CANCELLED_KEPT)

    def cancel(self, query_id: str) -> None:
        """Stop every call of a query, and begin none of those that still wait."""
        self._cancelled.append(query_id)
        for task in self._tasks.get(query_id, ()):
            task.cancel()

    async def output(self, request: ToolRequest, run: Coroutine[Any, Any, ToolOutput], seconds: float) -> ToolOutput:
        """What `run` returns within so many seconds. Raises what it raises, and `ToolError` for one that was cut off
        (timeout, cancelled, outcome_unknown)."""
        if request.query_id in self._cancelled:
            run.close()
            raise ToolError(f"{self._tool} was cancelled", kind="cancelled")
        failpoints.reach("tool.before_run")
        task = asyncio.create_task(run, name=request.call_id)
        self._tasks[request.query_id].add(task)
        task.add_done_callback(lambda task: self._ended(request.query_id, task))
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        finally:
            task.cancel()
        failpoints.reach("tool.after_run")
        if not done:
            raise self._cut_off(f"{self._tool} did not finish within {seconds:g} s", "timeout")
        if task.cancelled():
            raise self._cut_off(f"{self._tool} was cancelled", "cancelled")
        return task.result()

    def _cut_off(self, why: str, kind: str) -> ToolError:
        return outcome_unknown(why) if self._has_effects else ToolError(why, kind=kind)

    def _ended(self, query_id: str, task: asyncio.Task[ToolOutput]) -> None:
        self._tasks[query_id].discard(task)
        if not self._tasks[query_id]:
            del self._tasks[query_id]
        if not task.cancelled():
            task.exception()  # counts as seen: after the time limit nobody asks for it
