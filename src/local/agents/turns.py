"""The turns of one generator: which of them wait, which run, and what ends them early."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from local.agents.turn_runner import TurnRunner
from local.agents.waiting_line import WaitingLine
from local.runtime.logs import query_id_var
from local.services.conversation import StoredTurn

KEPT_CANCELS = 1024


class Turns:
    """Runs every turn that enters, when its time comes; `are_open` has to be entered before the first one.

    `prepare` makes a turn's runner; `abandon` is told of a turn that raised. A turn that was not at its end when
    `are_open` is left stays open in the store.
    """

    def __init__(
        self,
        line: WaitingLine,
        prepare: Callable[[StoredTurn], Awaitable[TurnRunner]],
        abandon: Callable[[StoredTurn, Exception], Awaitable[None]],
    ) -> None:
        self._line = line
        self._prepare, self._abandon = prepare, abandon
        self._entered: dict[str, StoredTurn] = {}
        self._runners: dict[str, TurnRunner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._cancelled: deque[str] = deque(maxlen=KEPT_CANCELS)  # queries without a runner, those still to come too
        self._group: asyncio.TaskGroup
        self._closing = False

    @asynccontextmanager
    async def are_open(self) -> AsyncIterator[None]:
        """Own the turns; at the end, cancel what runs."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self._closing = True
                for task in self._tasks.values():
                    task.cancel()

    def figures(self) -> dict[str, int]:
        """How many turns run and how many wait."""
        return {"turns_running": len(self._tasks), "turns_waiting": len(self._line)}

    def get(self, query_id: str) -> StoredTurn | None:
        """A turn that has entered and whose end is not stored yet."""
        return self._entered.get(query_id)

    def enter(self, stored: StoredTurn) -> None:
        """Run a turn as soon as it may."""
        self._entered[stored.query_id] = stored
        self._start(self._line.arrive(stored.query_id, stored.session_id))

    def cancel(self, query_id: str) -> StoredTurn | None:
        """End a turn early, or before it enters. Returns one that waited in line: it has left, and somebody has to say
        so."""
        if self._line.leave(query_id):
            return self._entered.pop(query_id)
        if query_id in self._runners:
            self._runners[query_id].cancel()
        else:
            self._cancelled.append(query_id)
        return None

    def is_cancelled(self, query_id: str) -> bool:
        """Whether a query was cancelled before it ran."""
        return query_id in self._cancelled

    def _start(self, query_ids: list[str]) -> None:
        for query_id in query_ids:
            if not self._closing:
                self._tasks[query_id] = self._group.create_task(self._run(self._entered[query_id]), name=query_id)

    async def _run(self, stored: StoredTurn) -> None:
        query_id = stored.query_id
        query_id_var.set(query_id)
        try:
            runner = self._runners[query_id] = await self._prepare(stored)
            if self.is_cancelled(query_id):
                runner.cancel()
            response = await runner.run()
            del self._entered[query_id]  # from now on the store answers whoever asks again
            await runner.publish(response)
        except Exception as error:  # noqa: BLE001 - whatever it is, the asker is told and the other turns go on
            await self._abandon(stored, error)
        finally:
            for table in (self._runners, self._entered, self._tasks):
                table.pop(query_id, None)
            self._start(self._line.done(query_id))
