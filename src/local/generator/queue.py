"""The queries of one respondent, from acceptance to end: accepted, waiting, running, ended early.

Turns of one session run in the order of their queries, those of different sessions side by side (`SessionQueue`). A
query ends exactly once. If its store cannot be written for a while, it waits, and so do those behind it.

A query is computed ahead from its live copy, while the journal stores it (`Speculations`): the model has begun when the
journal delivers. Nothing leaves the turn before that, and the result is used only for exactly the delivered query with
exactly the same earlier conversation; all else is discarded.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple
from weakref import WeakValueDictionary

from local.bus.message import ErrorInfo
from local.bus.messages import ResponseGeneration
from local.core import failpoints
from local.core.errors import HandedBack, LocalError, StoreDamaged, StoreFailed, StoreFenced
from local.generator.history import ConversationService, NewTurn, PriorContext, Refusal, StoredTurn, TurnStatus
from local.generator.output import OutcomePublisher, depth_of
from local.generator.runner import TurnRunner
from local.runtime.logs import query_id_var
from local.runtime.runner import ThreadLoad

# Turns that are computed before their queries are on record: in memory, and unheard until then (output commit).

log = logging.getLogger(__name__)

MAX_AT_ONCE = 64
SILENCE_SECONDS = 10.0  # of the journal: then the query was refused, or its publisher will ask again


class Computed(NamedTuple):
    """A turn that has been started, and the past that it was started from."""

    runner: TurnRunner
    past: PriorContext


@dataclass(frozen=True, slots=True)
class Speculation:
    """One turn that is not on record yet, and its inputs."""

    asked: NewTurn
    computing: asyncio.Task[Computed | None]
    end: asyncio.TimerHandle

    async def computed(self) -> Computed | None:
        """Return the turn as soon as its model is called; None if it is not computed ahead."""
        await asyncio.wait({self.computing})
        return None if self.computing.cancelled() else self.computing.result()

    def fits(self, stored: StoredTurn, past: PriorContext) -> bool:
        """Whether that turn is this one, word for word, begins now for the first time, and from the same past."""
        asked = replace(self.asked, tools=stored.tools, model=None)  # which the body has, too
        delivered = NewTurn(
            stored.query_id, stored.session_id, stored.user_id, stored.envelope_id, stored.query, stored.body,
            stored.in_history, stored.tools, stored.incognito, stored.attempt,
        )  # fmt: skip
        return asked == delivered and not stored.cancelled and stored.beginning == past


class Speculations:
    """The turns that are computed ahead: at most one of a session, and 64 in all. Enter `is_open` before the first one.

    The journal stays the authority: only what it has delivered is used, and everything else is discarded.
    """

    def __init__(
        self, conversation: ConversationService, start: Callable[[NewTurn, PriorContext], Awaitable[TurnRunner]]
    ) -> None:
        """`start(asked, past)` makes the runner of a turn."""
        self._conversation, self._make = conversation, start
        self._begun: dict[str, Speculation] = {}  # by session_id
        self._group: asyncio.TaskGroup

    def __len__(self) -> int:
        return len(self._begun)

    @asynccontextmanager
    async def is_open(self) -> AsyncIterator[None]:
        """Own the computed turns, and close them at the end."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.drop_all()

    def begin(self, asked: NewTurn) -> None:
        """Compute the turn of a query from its live copy, unless there is no place or the session is busy."""
        session_id = asked.session_id
        if session_id in self._begun or len(self) >= MAX_AT_ONCE:
            return
        computing = self._group.create_task(self._compute(asked), name=f"compute {asked.query_id}")
        end = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self.drop, asked.query_id)
        self._begun[session_id] = Speculation(asked, computing, end)

    async def take(self, stored: StoredTurn) -> TurnRunner | None:
        """The runner of a turn that the journal has delivered and that may begin, if it was computed from just that.

        Whatever else was computed of its session is closed: it did not know of this turn.
        """
        speculation = self._begun.get(stored.session_id)
        if speculation is None:
            return None
        computed = await speculation.computed() if speculation.asked.query_id == stored.query_id else None
        fits = computed is not None and speculation.fits(stored, computed.past)
        if self._begun.get(stored.session_id) is not speculation or computed is None or not fits:
            self._close(stored.session_id)
            return None
        del self._begun[stored.session_id]
        speculation.end.cancel()
        failpoints.reach("generator.adopted")
        return computed.runner

    def drop(self, query_id: str) -> None:
        """Discard the turn computed for a query, because it is cancelled or the journal does not answer."""
        for session_id, speculation in list(self._begun.items()):
            if speculation.asked.query_id == query_id:
                self._close(session_id)

    def drop_all(self) -> None:
        """Discard all computed turns, because their inputs have changed or the process ends."""
        for session_id in list(self._begun):
            self._close(session_id)

    async def _compute(self, asked: NewTurn) -> Computed | None:
        try:
            past = self._conversation.foresee(asked)
            if past is not None:
                runner = await self._make(asked, past)
                runner.start()
                failpoints.reach("generator.speculated")
                return Computed(runner, past)
        except Exception as error:  # noqa: BLE001 - what is wrong is told when the turn runs
            log.debug("query %s is not computed ahead: %s", asked.query_id, error)
        self.drop(asked.query_id)
        return None

    def _close(self, session_id: str) -> None:
        speculation = self._begun.pop(session_id, None)
        if speculation is not None:
            speculation.end.cancel()
            self._group.create_task(_abandon(speculation), name=f"close {speculation.asked.query_id}")


async def _abandon(speculation: Speculation) -> None:
    computed = await speculation.computed()
    if computed is not None:
        await computed.runner.abandon()


# Whose turn it is: turns of one session in order, turns of different sessions side by side.

MAX_WAITING_IN_ALL = 10_000


class SessionQueue:
    """The order in which queries run, one at a time in a session. It only decides: ids in, ids out; bounded for each
    session and in all."""

    def __init__(self, max_running: int, max_waiting: int) -> None:
        """One query of a session runs and `max_waiting` wait; of all sessions, `max_running` run at each depth."""
        self.max_running, self._max_waiting = max_running, max_waiting
        self._expected: dict[str, str] = {}  # query_id -> session_id, here as below
        self._waiting: dict[str, str] = {}  # in order of arrival
        self._running: dict[str, str] = {}
        self._depths: dict[str, int] = {}  # of those that wait or run, where it is not 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether one more could run."""
        return self._has_room(0)

    def expect(self, query_id: str, session_id: str) -> bool:
        """Keep a place for a query that is on its way into the queue; False if there is none."""
        if (
            len(self.of(session_id)) > self._max_waiting
            or len(self._expected) + len(self._waiting) >= MAX_WAITING_IN_ALL
        ):
            return False
        self._expected[query_id] = session_id
        return True

    def of(self, session_id: str) -> list[str]:
        """The queries of a session that are expected, wait or run."""
        tables = (self._expected, self._waiting, self._running)
        return [query_id for table in tables for query_id, session in table.items() if session == session_id]

    def expect_no_more(self, query_id: str) -> None:
        """Release a kept place."""
        self._expected.pop(query_id, None)

    def arrive(self, query_id: str, session_id: str, depth: int = 0) -> list[str]:
        """A query joins the end of the line, at the depth of its agent; returns the queries to start now."""
        self._expected.pop(query_id, None)
        if depth:
            self._depths[query_id] = depth
        self._waiting[query_id] = session_id
        return self._start()

    def done(self, query_id: str) -> list[str]:
        """A running query has ended; returns the queries to start now."""
        self._running.pop(query_id, None)
        self._depths.pop(query_id, None)
        return self._start()

    def leave(self, query_id: str) -> bool:
        """A query leaves the line before its turn; False if it was not waiting."""
        is_waiting = self._waiting.pop(query_id, None) is not None
        if is_waiting:
            self._depths.pop(query_id, None)
        return is_waiting

    def _start(self) -> list[str]:
        started = []
        busy = set(self._running.values())
        for query_id, session_id in list(self._waiting.items()):
            if session_id not in busy and self._has_room(self._depths.get(query_id, 0)):
                busy.add(session_id)
                self._running[query_id] = self._waiting.pop(query_id)
                started.append(query_id)
        return started

    def _has_room(self, depth: int) -> bool:
        if not self._depths:
            return len(self._running) < self.max_running
        at_depth = sum(self._depths.get(query_id, 0) == depth for query_id in self._running)
        return at_depth < self.max_running


KEPT_CANCELS = 1024
RETRY_SECONDS = 1.0
TOO_MANY = "too many queries of this session wait already; ask again later, with a new query_id"
ANOTHERS = "this session is another user's; ask in one of your own"
INCOGNITO = "this session is incognito, and this query is not; ask it in another session, or incognito"
KEPT = "this session is kept, so nothing in it can be incognito; ask in a session of its own"
CANCELLED_EARLY = "the query was cancelled before its turn came"


class TurnQueue:
    """The queue of one respondent's turns: runs every turn that enters, when its time comes; `is_open` has to be
    entered before the first one.

    `prepare` makes a turn's runner. `news` is set when a query is cancelled, since `prepare` may be waiting for
    something that is not needed then. A turn that was not at its end when `is_open` is left stays open in the store.
    """

    def __init__(
        self,
        conversation: ConversationService,
        outcomes: OutcomePublisher,
        line: SessionQueue,
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
        """Own the turns; at the end, cancel the running ones."""
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

    def metrics(self) -> dict[str, int]:
        """Return the numbers of running turns, of permitted ones, of those that wait for the model and for a place, and
        the load of their process in per cent.
        """
        return {
            "turns_running": len(self._tasks),
            "turns_at_most": self._line.max_running,
            "turns_with_model": sum(runner.waits_for_model for runner in self._runners.values()),
            "turns_waiting": len(self._line),
            "turns_load": self._load.percent(),
        }

    def is_in_prompt(self, engram_id: str) -> bool:
        """Whether a turn that runs has something of an engram in the block before its question."""
        return any(runner.knows(engram_id) for runner in self._runners.values())

    def get(self, query_id: str) -> StoredTurn | None:
        """Return a turn that has entered and whose end is not stored yet."""
        return self._entered.get(query_id)

    def may_begin(self, session_id: str) -> bool:
        """Whether a turn of that session would begin at once, with a final earlier conversation."""
        return not self._closing and self._line.has_room and self._published.issuperset(self._line.of(session_id))

    # Accepting

    async def accept(self, asked: NewTurn) -> StoredTurn:
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

    async def _accept(self, asked: NewTurn, *, has_room: bool) -> StoredTurn:
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
        """Return an open turn, ended at once if there is no place for it."""
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
        """End a query early, even before it arrives: with its partial answer, or as failed if it has not begun."""
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
        """End a turn that is no longer wanted; nothing is published if it has not begun."""
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
        """Cancel a query wherever it is. Returns one that left the queue, whose end the caller must publish."""
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
        """Store the end of a turn that never began; those who wait for it get the result or the error."""
        try:
            yield
        except LocalError as error:
            self._ended(query_id, error)
            raise
        self._ended(query_id)

    # Running

    async def run(self, stored: StoredTurn) -> None:
        """Run a turn as soon as it may, or join it if it has entered; wait until its end is stored and published.

        Raises `HandedBack`, `StoreFenced` and errors that prevent publishing.
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
            told = ErrorInfo.of(error)
            await self._outcomes.end(stored, TurnStatus.FAILED, told.kind, told.message)
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
            end.exception()  # mark it as retrieved: possibly nothing waits for it any more


def _reason(refused: StoredTurn) -> str:
    if refused.refused is Refusal.USER:
        return ANOTHERS
    return KEPT if refused.incognito else INCOGNITO
