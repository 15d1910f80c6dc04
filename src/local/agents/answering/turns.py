"""The turns of one generator: which of them wait, which run, and what ends them early."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

from local.agents.answering.turn_runner import TurnRunner
from local.agents.answering.waiting_line import WaitingLine
from local.errors import HandedBack, LocalError, StoreDamaged, StoreFailed, StoreFenced
from local.protocol.messages import ResponseGeneration
from local.runtime.logs import query_id_var
from local.services.conversation import StoredTurn

log = logging.getLogger(__name__)

KEPT_CANCELS = 1024
RETRY_SECONDS = 1.0


class Turns:
    """Runs every turn that enters, when its time comes; `are_open` has to be entered before the first one.

    `prepare` makes a turn's runner; `abandon` gives a turn that raised its end. A turn that was not at its end when
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
        self._ends: dict[str, asyncio.Future[None]] = {}
        self._cancelled: deque[str] = deque(maxlen=KEPT_CANCELS)  # those still to come, too
        self._group: asyncio.TaskGroup
        self._closing = False

    @asynccontextmanager
    async def are_open(self) -> AsyncIterator[None]:
        """Own the turns; at the end, cancel what runs."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.hand_back()

    @property
    def is_closing(self) -> bool:
        """Whether nothing begins any more."""
        return self._closing

    def hand_back(self) -> None:
        """Stop where they are and begin no others; who waits for an end gets `HandedBack`."""
        self._closing = True
        for task in self._tasks.values():
            task.cancel()
        for query_id in list(self._ends):
            self._ended(query_id, HandedBack("the turn goes on in the next process"))

    def figures(self) -> dict[str, int]:
        """How many turns run and how many wait."""
        return {"turns_running": len(self._tasks), "turns_waiting": len(self._line)}

    def get(self, query_id: str) -> StoredTurn | None:
        """A turn that has entered and whose end is not stored yet."""
        return self._entered.get(query_id)

    async def run(self, stored: StoredTurn) -> None:
        """Run a turn as soon as it may, or join it if it has entered; wait until its end is stored and published.

        Raises `HandedBack`, `StoreFenced` and what keeps an end from being published.
        """
        query_id = stored.query_id
        if query_id not in self._ends:
            self._entered[query_id] = stored
            self._ends[query_id] = asyncio.get_running_loop().create_future()
            self._start(self._line.arrive(query_id, stored.session_id))
        end = self._ends[query_id]
        if self._closing:
            self.hand_back()
        await asyncio.shield(end)

    @contextmanager
    def leaving(self, query_id: str) -> Iterator[None]:
        """One that `cancel` returned gets its end; whoever waits for that learns of it, or of what was in its way."""
        try:
            yield
        except LocalError as error:
            self._ended(query_id, error)
            raise
        self._ended(query_id)

    def cancel(self, query_id: str) -> StoredTurn | None:
        """End a turn early, or before it enters. Returns one that waited in line: it has left, and somebody has to say
        so."""
        if self._line.leave(query_id):
            return self._entered.pop(query_id)
        if query_id not in self._runners:
            self._cancelled.append(query_id)
        self.stop(query_id)
        return None

    def stop(self, query_id: str) -> None:
        """End a running turn early; without effect on any other."""
        if query_id in self._runners:
            self._cancelled.append(query_id)  # it may have to run again, while its end cannot be stored
            self._runners[query_id].cancel()

    def is_cancelled(self, query_id: str) -> bool:
        """Whether a query was cancelled, other than in line."""
        return query_id in self._cancelled

    def _start(self, query_ids: list[str]) -> None:
        for query_id in query_ids:
            if not self._closing:
                self._tasks[query_id] = self._group.create_task(self._run(self._entered[query_id]), name=query_id)

    async def _run(self, stored: StoredTurn) -> None:
        query_id = stored.query_id
        query_id_var.set(query_id)
        try:
            await self._run_to_its_end(stored)
            self._ended(query_id)
        except LocalError as error:
            self._ended(query_id, error)
        finally:
            for table in (self._runners, self._entered, self._tasks):
                table.pop(query_id, None)
            self._start(self._line.done(query_id))

    async def _run_to_its_end(self, stored: StoredTurn) -> None:
        try:
            runner, response = await self._run_until_stored(stored)
        except StoreFenced:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it has to end, and the other turns go on
            await self._abandon(stored, error)
        else:
            await runner.publish(response)

    async def _run_until_stored(self, stored: StoredTurn) -> tuple[TurnRunner, ResponseGeneration]:
        """As often as it takes while the store cannot be written: the turns behind it in its session have to wait."""
        while True:
            try:
                runner = self._runners[stored.query_id] = await self._prepare(stored)
                if stored.cancelled or self.is_cancelled(stored.query_id):
                    runner.cancel()
                return runner, await runner.run()
            except StoreDamaged:
                raise
            except StoreFailed as error:
                log.error("the turn waits until it can be stored: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
                stored = replace(stored, attempt=stored.attempt + 1)

    def _ended(self, query_id: str, error: LocalError | None = None) -> None:
        end = self._ends.pop(query_id, None)
        if end is None or end.done():
            return
        if error is None:
            end.set_result(None)
        else:
            end.set_exception(error)
            end.exception()  # counts as seen: perhaps nobody waits for it any more
