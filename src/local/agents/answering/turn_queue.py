"""Every query that one respondent answers, from its acceptance to its end: accepted, waiting, running, ended early."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from weakref import WeakValueDictionary

from local.agents.answering.outcomes import Outcomes, depth_of
from local.agents.answering.turn_runner import TurnRunner
from local.agents.answering.waiting_line import WaitingLine
from local.errors import HandedBack, LocalError, StoreDamaged, StoreFailed, StoreFenced
from local.protocol.messages import ResponseGeneration
from local.runtime.logs import query_id_var
from local.runtime.thread_load import ThreadLoad
from local.services.conversation import Asked, ConversationService, Refusal, StoredTurn, TurnStatus

log = logging.getLogger(__name__)

KEPT_CANCELS = 1024
RETRY_SECONDS = 1.0
TOO_MANY = "too many queries of this session wait already; ask again later, with a new query_id"
ANOTHERS = "this session is another user's; ask in one of your own"
INCOGNITO = "this session is incognito, and this query is not; ask it in another session, or incognito"
KEPT = "this session is kept, so nothing in it can be incognito; ask in a session of its own"
CANCELLED_EARLY = "the query was cancelled before its turn came"


class TurnQueue:
    """Runs every turn that enters, when its time comes; `is_open` has to be entered before the first one.

    `prepare` makes a turn's runner. `news` is set when a query is cancelled, since `prepare` may be waiting for
    something that is not needed then. A turn that was not at its end when `is_open` is left stays open in the store.
    """

    def __init__(
        self,
        conversation: ConversationService,
        outcomes: Outcomes,
        line: WaitingLine,
        prepare: Callable[[StoredTurn], Awaitable[TurnRunner]],
        news: asyncio.Event,
    ) -> None:
        self._conversation, self._outcomes, self._line = conversation, outcomes, line
        self._prepare, self._news = prepare, news
        self._accepting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by session_id
        self._entered: dict[str, StoredTurn] = {}  # by query_id, as the next
        self._runners: dict[str, TurnRunner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Future[None]] = {}
        self._published: set[str] = set()  # those of them whose end is stored
        self._cancelled: deque[str] = deque(maxlen=KEPT_CANCELS)  # those still to come, too
        self._group: asyncio.TaskGroup
        self._closing = False
        self._load = ThreadLoad()

    @asynccontextmanager
    async def is_open(self) -> AsyncIterator[None]:
        """Own the turns; at the end, cancel what runs."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.hand_back()

    def hand_back(self) -> None:
        """Stop the turns where they are and begin no others; who waits for an end gets `HandedBack`."""
        self._closing = True
        for task in self._tasks.values():
            task.cancel()
        for query_id in list(self._ends):
            self._ended(query_id, HandedBack("the turn goes on in the next process"))

    def figures(self) -> dict[str, int]:
        """How many turns run, how many may at once, how many of them wait for the model, and how many for a place;
        and how busy their process is, in per cent."""
        return {
            "turns_running": len(self._tasks),
            "turns_at_most": self._line.max_running,
            "turns_with_model": sum(runner.waits_for_model for runner in self._runners.values()),
            "turns_waiting": len(self._line),
            "turns_load": self._load.percent(),
        }

    def is_told(self, engram_id: str) -> bool:
        """Whether a turn that runs has something of an engram in the block before its question."""
        return any(runner.knows(engram_id) for runner in self._runners.values())

    def get(self, query_id: str) -> StoredTurn | None:
        """A turn that has entered and whose end is not stored yet."""
        return self._entered.get(query_id)

    def may_begin(self, session_id: str) -> bool:
        """Whether a turn of that session would begin at once, and nothing can be added to its past."""
        return not self._closing and self._line.has_room and self._published.issuperset(self._line.of(session_id))

    # Accepting

    async def accept(self, asked: Asked) -> StoredTurn:
        """The record of a query, made now unless there is one.

        A new query that finds no room, or was cancelled, has ended. One that an earlier process began is at its next
        attempt. Queries of one session are stored in the order in which they come. Waits while the store cannot be
        written. Raises `StoreFenced`; `StoreFailed` at the process's end.
        """
        has_room = self._line.expect(asked.query_id, asked.session_id)
        try:
            async with self._accepting.setdefault(asked.session_id, asyncio.Lock()):
                return await self._accept(asked, has_room=has_room)
        finally:
            self._line.expect_no_more(asked.query_id)

    async def _accept(self, asked: Asked, *, has_room: bool) -> StoredTurn:
        while True:
            try:
                stored, is_new = await self._conversation.accept(asked)
                if stored.outcome is not None or stored.query != asked.query:
                    return stored
                return await self._checked(stored, is_new=is_new, has_room=has_room)
            except StoreFailed as error:
                if self._closing:
                    raise
                log.error("the query waits until it can be stored: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _checked(self, stored: StoredTurn, *, is_new: bool, has_room: bool) -> StoredTurn:
        """An open turn, ended at once if there is no place for it."""
        end = self._outcomes.store
        if stored.refused is not None:
            return await end(stored, TurnStatus.FAILED, "conflict", _reason(stored))
        if not is_new:
            return replace(stored, attempt=stored.attempt + 1)
        if not has_room:
            return await end(stored, TurnStatus.FAILED, "busy", TOO_MANY)
        if self._is_cancelled(stored):
            return await end(stored, TurnStatus.CANCELLED, "cancelled", CANCELLED_EARLY)
        return stored

    # Cancelling

    async def cancel(self, query_id: str) -> None:
        """End a query early, even one still to come: with what was said so far, or as failed if it has not begun."""
        await self._conversation.cancel(query_id)
        unbegun = self._take_back(query_id)
        if unbegun is not None:
            with self._leaving(query_id):
                await self._outcomes.end(unbegun, TurnStatus.CANCELLED, "cancelled", CANCELLED_EARLY)

    def stop(self, query_id: str) -> None:
        """End a running turn early; without effect on any other."""
        if query_id in self._runners:
            self._cancelled.append(query_id)  # it may have to run again, while its end cannot be stored
            self._runners[query_id].cancel()

    async def drop(self, stored: StoredTurn) -> None:
        """End a turn that nobody wants any more, without a word to anybody if it has not begun."""
        query_id = stored.query_id
        is_known = query_id in self._entered
        unbegun = self._take_back(query_id)
        if is_known and unbegun is None:
            await self.run(stored)  # it is on its way to its end
            return
        with self._leaving(query_id):
            await self._outcomes.store(stored, TurnStatus.CANCELLED, "cancelled", "the query was deleted")

    def is_cancelled(self, query_id: str) -> bool:
        """Whether a query was cancelled, other than in line."""
        return query_id in self._cancelled

    def _take_back(self, query_id: str) -> StoredTurn | None:
        """Cancel a query wherever it is. Returns one that waited in line: it has left, and somebody has to say so."""
        unbegun = self._entered.pop(query_id) if self._line.leave(query_id) else None
        if unbegun is None and query_id not in self._runners:
            self._cancelled.append(query_id)
        self.stop(query_id)
        self._news.set()
        return unbegun

    def _is_cancelled(self, stored: StoredTurn) -> bool:
        return stored.cancelled or self.is_cancelled(stored.query_id)

    @contextmanager
    def _leaving(self, query_id: str) -> Iterator[None]:
        """A turn that never began gets its end; whoever waits for that learns of it, or of what was in its way."""
        try:
            yield
        except LocalError as error:
            self._ended(query_id, error)
            raise
        self._ended(query_id)

    # Running

    async def run(self, stored: StoredTurn) -> None:
        """Run a turn as soon as it may, or join it if it has entered; wait until its end is stored and published.

        Raises `HandedBack`, `StoreFenced` and what keeps an end from being published.
        """
        query_id = stored.query_id
        if query_id not in self._ends:
            self._entered[query_id] = stored
            self._ends[query_id] = asyncio.get_running_loop().create_future()
            self._start(self._line.arrive(query_id, stored.session_id, depth_of(stored)))
        end = self._ends[query_id]
        if self._closing:
            self.hand_back()
        await asyncio.shield(end)

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
            self._published.discard(query_id)
            self._start(self._line.done(query_id))

    async def _run_to_its_end(self, stored: StoredTurn) -> None:
        try:
            runner, response = await self._run_until_stored(stored)
        except StoreFenced:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it has to end, and the other turns go on
            log.error("the turn is given up: %s: %s", type(error).__name__, error)
            kind = getattr(error, "kind", "internal")
            await self._outcomes.end(stored, TurnStatus.FAILED, kind, str(error) or type(error).__name__)
        else:
            self._published.add(stored.query_id)
            await runner.publish(response)

    async def _run_until_stored(self, stored: StoredTurn) -> tuple[TurnRunner, ResponseGeneration]:
        """Run a turn as often as it takes while the store cannot be written; those behind it in its session wait."""
        while True:
            try:
                runner = self._runners[stored.query_id] = await self._prepare(stored)
                if self._is_cancelled(stored):
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


def _reason(refused: StoredTurn) -> str:
    if refused.refused is Refusal.USER:
        return ANOTHERS
    return KEPT if refused.incognito else INCOGNITO
