"""Asks queries on the bus and follows them until they end: for the API and for every participant with a question."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from weakref import WeakSet, WeakValueDictionary

from pydantic_core import to_json

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, new_id
from local.bus.message import Message
from local.bus.messages import AnswerOptions, QueryCancel, QueryReceived, ResponseGeneration, SessionDeleted
from local.bus.vocabulary import USER
from local.core import failpoints
from local.core.errors import LocalError, MalformedFrame, NotConfirmed, RecordUnreadable, RequestTimeout
from local.journal.messages import JournalRead
from local.memory.messages import MemoryDeleted
from local.permissions.messages import ApprovalDecision, ApprovalRequest
from local.queries.errors import (
    AskerStopping,
    GeneratorSilent,
    NobodyAnswers,
    NotAccepted,
    QueryRefused,
    TooManyQueries,
)
from local.queries.record import look_up, read_judgements, read_query, view_of
from local.queries.view import EVENT_KINDS, QueryDelta, QueryEvents, QueryView, kind_of
from local.runtime.participant import Inbox, Publications

# Whether a query is put on record now, waits for that, or is refused.
#
# Problem: nobody may wait for LoCAL2 itself for longer than `max_wait_seconds`, and a query that is on record is
# answered, whatever happens. So what would wait for too long must not get on record, and how long it would wait is not
# known: the speed falls while the load grows, and what was measured of it comes late.
#
# Idea: nothing is forecast. Only few queries are on their way, on record but not begun: ten, or as many as begin in 0.6
# seconds. All others wait before they are on record, in order, and are refused when two fifths of the time are over. A
# forecast serves only to refuse at once what would be refused then. Only so many wait as begin in seven tenths of that
# time: the speed varies, and whoever waits in vain until the time is over is refused two seconds later than others.
#
# The time before this process has read a query counts, as the kernel tells it: where the process is what is too slow,
# queries wait there. A few that are late are admitted all the same where there is a place: the process has just been
# started again, or was frozen.
#
# The time of the model does not count: while all places for turns are taken by turns that wait for it, all are let in.
# Neither does the time behind a query of the same session.

FEW = 10  # so many may always be on their way, and may always wait
PATIENCE = 0.4  # of the limit, before a query is on record; the rest is for what comes then
SURE = 0.7  # of what is forecast to begin within the patience
SPEED_SECONDS = 2.0  # over which it is measured how many begin
AHEAD_SECONDS = 0.6  # so many are on their way as begin within it: the more begin at once, the slower is each of them
BUSY_PERCENT = 80  # a process that works so much of the time is what its turns wait for


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """The latest report of one generator process on its turns: how many run, how many may run, how many of them wait
    for the model, and how busy the process is, in per cent.
    """

    instance: str
    running: int
    at_most: int
    with_model: int
    load: int

    @classmethod
    def of(cls, instance: str, counters: Mapping[str, int]) -> Self | None:
        """The figures in the counters of a status beat; None if they are not there."""
        names = ("turns_running", "turns_at_most", "turns_with_model", "turns_load")
        told = [counters[name] for name in names if name in counters]
        return cls(instance, *told) if len(told) == len(names) else None

    @property
    def wait_for_model(self) -> bool:
        """Whether the model is the bottleneck: every place is taken, mostly by turns that wait for the model and not
        for an overloaded process.
        """
        is_full = self.running >= self.at_most and 2 * self.with_model >= self.running
        return is_full and self.load < BUSY_PERCENT


class AdmissionControl:
    """The queries of one asker on their way to their turns, and those that wait to be admitted. It only decides: ids
    in, ids out. What returns ids names the queries that are admitted by that, in order."""

    def __init__(self, max_wait_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """None admits every query at once; `clock` gives monotonic seconds."""
        self._limit, self._clock = max_wait_seconds, clock
        self._sessions: dict[str, str] = {}  # of the queries that are admitted
        self._open: dict[str, dict[str, bool]] = {}  # these by session, in order, and whether each has begun
        self._waiting: dict[str, str] = {}  # the session of each query that is not admitted
        self._waiting_since, self._late = 0.0, 0  # how many came late, one after the other
        self._begins: deque[float] = deque()
        self._turns: TurnFigures | None = None

    def patience(self, waited: float = 0.0) -> float:
        """The seconds after which a query has to `give_up` that was not admitted, and has `waited` before."""
        if self._limit is None:
            return math.inf
        return PATIENCE * self._limit - (0.0 if self._is_late(waited) else waited)

    def arrive(self, query_id: str, session_id: str, waited: float = 0.0, *, is_on_record: bool = False) -> bool:
        """Whether a query that has `waited` before is admitted now; else it waits. Raises `TooManyQueries` where it
        would wait until it is refused."""
        if self._limit is None:
            return True
        self._late = self._late + 1 if self._is_late(waited) else 0
        if self._late > FEW and not is_on_record:
            raise self._refusal(self._limit)
        is_behind_its_own = session_id in self._open and session_id not in self._waiting.values()
        if is_on_record or is_behind_its_own or (not self._waiting and self._has_place()):
            self._enter(query_id, session_id)
            return True
        now = self._clock()
        if self._is_late(waited):
            raise self._refusal(self._limit)
        if not self._waiting:
            self._waiting_since = now
        elif now - self._waiting_since >= SPEED_SECONDS and len(self._waiting) >= self._most_waiting(self._limit):
            raise self._refusal(self._limit)
        self._waiting[query_id] = session_id
        return False

    def settle(self, query_id: str, session_id: str, *, has_begun: bool) -> None:
        """A query that was not admitted turns out to be on record."""
        if self._limit is not None:
            self._waiting.pop(query_id, None)
            self._enter(query_id, session_id)
            self._open[session_id][query_id] = has_begun

    def begun(self, query_id: str) -> list[str]:
        """The turn of a query has begun, or it has ended before that."""
        queries = self._open.get(self._sessions.get(query_id, ""), {})
        if queries.get(query_id, True):
            return []
        queries[query_id] = True
        self._begins.append(self._clock())
        return self._admitted()

    def ended(self, query_id: str) -> list[str]:
        """A query has ended, whether it was admitted or not."""
        self._waiting.pop(query_id, None)
        self._leave(query_id)
        return self._admitted()

    def told(self, turns: TurnFigures | None) -> list[str]:
        """The generator reports on its turns. Measurements of an earlier process of it are discarded."""
        if turns is not None:
            if self._turns is None or self._turns.instance != turns.instance:
                self._begins.clear()
            self._turns = turns
        return self._admitted()

    def too_late(self, waited: float) -> TooManyQueries | None:
        """Why a query that has `waited` need not be read; None if it has to `arrive`."""
        if self._limit is None or self._late < FEW or not self._is_late(waited):
            return None
        return self._refusal(self._limit)

    def give_up(self, query_id: str) -> TooManyQueries:
        """A query was not admitted in time; why."""
        assert self._limit is not None
        refusal = self._refusal(self._limit)
        self._waiting.pop(query_id, None)
        return refusal

    def _admitted(self) -> list[str]:
        admitted = []
        for query_id, session_id in list(self._waiting.items()):
            if session_id not in self._open and not self._has_place():
                break
            del self._waiting[query_id]
            self._enter(query_id, session_id)
            admitted.append(query_id)
        return admitted

    def _enter(self, query_id: str, session_id: str) -> None:
        self._leave(query_id)  # it may have been asked before, in another session
        self._sessions[query_id] = session_id
        self._open.setdefault(session_id, {})[query_id] = False

    def _leave(self, query_id: str) -> None:
        if session_id := self._sessions.pop(query_id, None):
            del self._open[session_id][query_id]
            if not self._open[session_id]:
                del self._open[session_id]

    def _has_place(self) -> bool:
        if self._turns is not None and self._turns.wait_for_model:
            return True
        return len(self._open) < FEW or self._on_their_way() < max(FEW, AHEAD_SECONDS * self._speed())

    def _on_their_way(self) -> int:
        """How many have not begun, without those behind a query of their session."""
        return sum(not next(iter(queries.values())) for queries in self._open.values())

    def _speed(self) -> float:
        """How many have begun in a second lately."""
        since = self._clock() - SPEED_SECONDS
        while self._begins and self._begins[0] < since:
            self._begins.popleft()
        return len(self._begins) / SPEED_SECONDS

    def _is_late(self, waited: float) -> bool:
        return self._limit is not None and waited >= PATIENCE * self._limit

    def _most_waiting(self, limit: float) -> float:
        """How many are admitted well before the last of them would lose its patience."""
        return max(FEW, SURE * PATIENCE * limit * self._speed())

    def _refusal(self, limit: float) -> TooManyQueries:
        waiting, speed = len(self._waiting) + self._on_their_way(), self._speed()
        return TooManyQueries(waiting, limit, waiting / speed if speed else limit)


# A query that is followed while it happens: the asyncio around its view.

KEPT_ENDED = 128
OF_AGENTS = frozenset((ApprovalRequest.subject, ApprovalDecision.subject))  # approvals in another query of the session


class LiveQuery:
    """A query that is followed while it runs: its view, its events, and ways to wait for its end; `clock` gives
    monotonic seconds.
    """

    def __init__(self, view: QueryView, clock: Callable[[], float]) -> None:
        self.view = view
        self.events = QueryEvents(lambda: to_json(view.partial_answer()))
        self._clock, self.asked_at = clock, clock()
        self.heard_at = self.asked_at
        self._admitted, self._accepted = asyncio.Event(), asyncio.Event()
        self._outcome: asyncio.Future[ResponseGeneration] = asyncio.get_running_loop().create_future()
        self._watchers: set[asyncio.Event] = set()
        self._is_closed = False

    @property
    def query_id(self) -> str:
        """The query's id."""
        return self.view.query_id

    @property
    def is_accepted(self) -> bool:
        """Whether the query is on record, or has ended."""
        return self._accepted.is_set()

    @property
    def has_begun(self) -> bool:
        """Whether the query's turn has begun, or never will."""
        return bool(self.view.states) or self.view.ended

    @property
    def is_admitted(self) -> bool:
        """Whether the query may be put on record."""
        return self._admitted.is_set()

    def admit(self) -> None:
        """The query may be put on record."""
        self._admitted.set()

    async def admitted_within(self, seconds: float) -> bool:
        """Wait until it may be put on record, with a time limit; returns whether it may, in time."""
        if not self._admitted.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self.asked_at + seconds - self._clock()):
                    await self._admitted.wait()
        return self._admitted.is_set() and self._clock() - self.asked_at <= seconds

    async def accepted(self) -> None:
        """Wait until it is recorded. Raises the error passed to `refuse`."""
        await self._accepted.wait()
        if self.view.failure is not None:
            raise self.view.failure

    async def outcome(self) -> ResponseGeneration:
        """Wait for the answer and return it. Raises the error passed to `refuse`."""
        return await asyncio.shield(self._outcome)

    async def ends_within(self, seconds: float) -> bool:
        """Wait for the end, with a time limit; returns whether it has come."""
        await asyncio.wait({self._outcome}, timeout=max(seconds, 0.0))
        return self.view.ended

    def accept(self) -> None:
        """The query is on record: from now on it will be answered, whatever happens."""
        self._accepted.set()

    def note(self, subject: str) -> None:
        """Put a subject on the log."""
        self.view.note(subject, self._clock() - self.asked_at)

    def receive(self, message: Message, envelope: Envelope) -> None:
        """Take in one message of this query."""
        self.heard_at = self._clock()
        self._add_events(self.view.receive(message, envelope, self.heard_at - self.asked_at))

    def refuse(self, error: LocalError) -> None:
        """End with an error, because no answer will come."""
        self._add_events(self.view.fail(error))

    def close(self) -> None:
        """Stop all waiting for judgements, because this process stops."""
        self._is_closed = True
        self._wake()

    @contextmanager
    def watched(self, changed: asyncio.Event | None = None) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each change inside the block; it may be shared by a watcher of several
        queries. The waiter clears it.
        """
        changed = changed or asyncio.Event()
        self._watchers.add(changed)
        try:
            yield changed
        finally:
            self._watchers.discard(changed)

    def has_nothing_after(self, number: int | None) -> bool:
        """Whether the query has ended and that number is its last event's."""
        return self.view.ended and number == self.events.count

    def lacks(self, judgements: Collection[str]) -> bool:
        """Whether some of these judgements of its answer may still arrive."""
        return not self._is_closed and self.view.lacks(judgements)

    def _add_events(self, news: list[QueryDelta] | None) -> None:
        if news is None:
            return
        for each in news:
            self.events.add(each, is_end=self.view.ended)
        if news and (self.view.ended or news[-1].kind == "accepted"):
            self._accepted.set()
        if self.view.ended and not self._outcome.done():
            self._settle()
        self._wake()

    def _settle(self) -> None:
        if self.view.response is not None:
            self._outcome.set_result(self.view.response)
        elif self.view.failure is not None:
            self._outcome.set_exception(self.view.failure)
            self._outcome.exception()  # mark it as retrieved: possibly nothing waits for it

    def _wake(self) -> None:
        for changed in self._watchers:
            changed.set()


class LiveQueries:
    """The queries that an asker knows: open ones, recently ended ones, and older ones that are still followed, by
    query_id.
    """

    def __init__(self) -> None:
        self._open: dict[str, LiveQuery] = {}
        self._ended: OrderedDict[str, LiveQuery] = OrderedDict()
        self._followed: WeakValueDictionary[str, LiveQuery] = WeakValueDictionary()  # held by its followers
        self._by_id = (self._open, self._ended, self._followed)
        self._doomed: WeakSet[LiveQuery] = WeakSet()  # open ones of which nothing is to be kept
        self._asked_by_agents: dict[str, str] = {}  # by call_id: the user's query behind a call that needs approval

    def get(self, query_id: str) -> LiveQuery | None:
        """A query, if it is known here."""
        return self._open.get(query_id) or self._ended.get(query_id) or self._followed.get(query_id)

    def receiver_of(self, message: Message, envelope: Envelope) -> LiveQuery | None:
        """Return the query that receives a message: for an agent's query, the one that started the agent."""
        query_id = envelope.correlation_id
        if isinstance(message, ApprovalRequest) and message.root_query_id:
            query_id = self._asked_by_agents[message.call_id] = message.root_query_id
        elif isinstance(message, ApprovalDecision):
            query_id = self._asked_by_agents.pop(message.call_id, query_id)
        return self.get(query_id)

    @property
    def open(self) -> Collection[LiveQuery]:
        """The queries that were added and not put away yet."""
        return self._open.values()

    @property
    def known(self) -> list[LiveQuery]:
        """All of them."""
        return [query for known in self._by_id for query in known.values()]

    def add(self, query: LiveQuery) -> None:
        """A query was asked."""
        self._open[query.view.query_id] = query

    def put_away(self, query: LiveQuery) -> None:
        """Keep an ended query; the oldest ones beyond the limit are dropped."""
        query_id = query.view.query_id
        if self._open.get(query_id) is not query:  # a refused one may have been asked again already
            return
        del self._open[query_id]
        if query in self._doomed:
            return
        self._ended[query_id] = query
        self._ended.move_to_end(query_id)
        while len(self._ended) > KEPT_ENDED:
            oldest_id, oldest = self._ended.popitem(last=False)
            self._followed[oldest_id] = oldest

    def forget(self, is_deleted: Callable[[QueryView], bool]) -> None:
        """Drop those that have ended and were deleted, and the open ones when they have ended."""
        for known in self._by_id:
            for query_id, query in list(known.items()):
                if not is_deleted(query.view):
                    continue
                if query.view.ended:
                    del known[query_id]
                else:
                    self._doomed.add(query)


JOURNAL = "journal"
MAX_OPEN = 10_000
_NAMESPACE = uuid.UUID("a2f8d1a6-0f4e-4a52-9a2e-6f4a3f0f7c11")


def query_envelope_id(query_id: str) -> str:
    """The id of the envelope that asks a query: always the same, so that asking it twice is one query."""
    return uuid.uuid5(_NAMESPACE, query_id).hex


@dataclass(frozen=True, slots=True)
class AskTimeouts:
    """The timeouts of an asker, in seconds: the first and the longest silence before it reads the journal, and when it
    gives up.
    """

    first_look: float = 0.5
    last_look: float = 5.0
    until_accepted: float = 10.0
    while_silent: float = 60.0


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The absence of a participant that answers depend on; `reason` is a sentence about it."""

    participant: str
    reason: str


class Asker:
    """The client that asks all queries of one process. Make it before `bus.ready()`, because it subscribes to all
    messages about queries, and use it as `async with`; leaving it stops asking, and accepted queries continue.

    A query is accepted when it is recorded. An answer that was lost on its way here, or was given before this process
    asked, is found in the journal.
    """

    publishes: ClassVar[Publications] = (QueryReceived, QueryCancel, "conversation.request.query", JournalRead)

    def __init__(
        self,
        bus: Bus,
        *,
        timeouts: AskTimeouts | None = None,
        max_wait_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        hears: Iterable[type[Message]] = EVENT_KINDS,
    ) -> None:
        """With `max_wait_seconds`, a query that might wait longer for LoCAL2 itself is refused (`AdmissionControl`).
        What it `hears` of queries has to tell of their ends; the fewer, the less others' turns wake this process."""
        self._bus, self._timeouts, self._clock = bus, timeouts or AskTimeouts(), clock
        self._queries = LiveQueries()
        self._inbox = Inbox()
        self._asking: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.absence: Unavailable | None = None  # why no answer is possible now; set from outside
        self._admission = AdmissionControl(max_wait_seconds, clock)
        for message in hears:
            bus.subscribe(message.subject, self._arrived)
        bus.subscribe(SessionDeleted.subject, self._session_deleted)
        bus.subscribe(MemoryDeleted.subject, self._memory_deleted)

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read(), name="asker")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.stop()
        tasks = {self._reader, *self._asking}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    def stop(self) -> None:
        """End all waiting queries with an error, because this process stops, and ask nothing more."""
        self._is_stopping = True
        for query in self._queries.known:
            query.refuse(AskerStopping())
            query.close()

    def ask(
        self,
        query: str,
        *,
        attachments: Sequence[str] = (),
        query_id: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        incognito: bool = False,
        history: Sequence[dict[str, Any]] | None = None,
        continued: Sequence[dict[str, Any]] = (),
        options: AnswerOptions | None = None,
        origin: str = USER,
        tainted: bool = False,
        job_id: str = "",
        waited: float = 0.0,
        is_on_record: bool = False,
    ) -> LiveQuery:
        """Begin a query, or join the one of that id. Without a session it is a session by itself, under the query's id.

        Raises `QueryRefused` for the id of another query (conflict) or one too many (busy), `TooManyQueries`, unless it
        `is_on_record`, and `AskerStopping`. `TooManyQueries` may also be how it ends before it is accepted. Where the
        id is given and the query would have to wait, it is first looked up in the journal: what an earlier process
        accepted is never refused. `waited` is for how many seconds somebody waits already.
        """
        may_be_known, query_id = query_id is not None, query_id or new_id()
        if (known := self.live(query_id)) is not None and known.view.failure is None:
            known.view.require(query, user_id)
            return known
        message = QueryReceived(
            query_id=query_id,
            query=query,
            attachments=tuple(attachments),
            incognito=incognito,
            history=None if history is None else tuple(history),
            continued=tuple(continued),
            options=options,
            origin=origin,
            tainted=tainted,
            session_id=session_id,
            job_id=job_id,
        )
        if self._is_stopping:
            raise AskerStopping
        if len(self._queries.open) >= MAX_OPEN:
            raise QueryRefused("busy", f"{MAX_OPEN} queries are already open; try again later")
        live = LiveQuery(QueryView(query_id, query, session_id, user_id=user_id), self._clock)
        is_settled = is_on_record or self.absence is not None
        patience = math.inf if is_settled else self._admission.patience(waited)
        try:
            if self._admission.arrive(query_id, live.view.session_id, waited, is_on_record=is_settled):
                live.admit()
        except TooManyQueries:
            if not may_be_known:
                raise
            patience = 0.0
        self._begin(live, message, patience, may_be_known=may_be_known)
        return live

    def live(self, query_id: str) -> LiveQuery | None:
        """A query that is known here: one that is open, or one of the last that ended."""
        return self._queries.get(query_id)

    async def cancel(self, query_id: str, user_id: str | None = None) -> None:
        """Request the cancellation of a query of that user, recorded. Raises `NotConfirmed`."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id, user_id=user_id))

    async def recall_judgements(self, query: LiveQuery | QueryView, seconds: float = 1.0) -> None:
        """Add the recorded judgements of a query's answer; nothing while the journal does not answer."""
        with suppress(RequestTimeout, RecordUnreadable):
            for message, envelope in await read_judgements(self._bus, query.query_id, seconds):
                query.receive(message, envelope)

    async def recall(self, query_id: str, seconds: float = 5.0) -> QueryView:
        """Return a query as the journal has recorded it, or, if that is away or has deleted it, the generator.

        Raises `QueryRefused` for an unknown one, `QueryDeleted` and `RequestTimeout`.
        """
        with suppress(RequestTimeout, RecordUnreadable):
            if told := await read_query(self._bus, query_id, seconds):
                return QueryView.of(query_id, told)
        return view_of(await look_up(self._bus, "query", query_id, seconds))

    def too_late(self, waited: float) -> LocalError | None:
        """Why a query that somebody has `waited` with need not be asked; None if it may be."""
        return self._admission.too_late(waited)

    def turns_told(self, turns: TurnFigures | None) -> None:
        """The generator reports on its turns."""
        self._admit(self._admission.told(turns))

    def forget(self, engram_id: str, query_id: str) -> None:
        """Forget a deleted memory: its query, and its content recalled by others."""
        self._queries.forget(lambda view: view.query_id == query_id or view.has_recalled(engram_id))

    def forget_session(self, session_id: str) -> None:
        """A session was deleted: keep nothing of its queries here."""
        self._queries.forget(lambda view: view.session_id == session_id)

    def _begin(self, query: LiveQuery, message: QueryReceived, patience: float, *, may_be_known: bool) -> None:
        self._queries.add(query)
        trace = Trace(message.query_id, None, query.view.session_id, query.view.user_id)
        asking = self._see_through(query, message, trace, patience, may_be_known=may_be_known)
        task = asyncio.create_task(asking, name=f"ask {message.query_id}")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _see_through(
        self, query: LiveQuery, message: QueryReceived, trace: Trace, patience: float, *, may_be_known: bool
    ) -> None:
        limit = self._timeouts.until_accepted
        try:
            if may_be_known and not query.is_admitted and await self._is_on_record(query):
                query.accept()
                return await self._look_until_ended(query)
            if not await query.admitted_within(patience) and self.absence is None:
                raise self._admission.give_up(query.query_id)
            if self.absence is not None:
                return await self._find_answer(query, self.absence, may_be_known=may_be_known)
            failpoints.reach("api.before_publish")
            query.note(message.subject)
            await self._bus.publish(message, trace, envelope_id=query_envelope_id(message.query_id), seconds=limit)
            failpoints.reach("api.query_committed")
            if may_be_known:
                await self._look_in_journal(query)
            query.accept()
            await self._look_until_ended(query)
        except NotConfirmed:
            query.refuse(NotAccepted(limit))
        except LocalError as error:
            query.refuse(error)
        finally:
            self._queries.put_away(query)
            self._admit(self._admission.ended(query.query_id))

    async def _is_on_record(self, query: LiveQuery) -> bool:
        """Whether a query that is not admitted was accepted before, perhaps by an earlier process. False also while the
        journal does not answer.
        """
        with suppress(RequestTimeout, RecordUnreadable):
            if await self._look_in_journal(query):
                self._admission.settle(query.query_id, query.view.session_id, has_begun=query.has_begun)
                return True
        return False

    async def _find_answer(self, query: LiveQuery, absence: Unavailable, *, may_be_known: bool) -> None:
        """Look for a recorded answer, because no respondent can answer. Raises `NobodyAnswers` if there is none."""
        if may_be_known and absence.participant != JOURNAL:
            await self._look_in_journal(query)
        if not query.view.ended:
            raise NobodyAnswers(absence.reason)

    async def _look_until_ended(self, query: LiveQuery) -> None:
        looked_at, pause = self._clock(), self._timeouts.first_look
        while not await query.ends_within(max(query.heard_at, looked_at) + pause - self._clock()):
            if self._clock() < max(query.heard_at, looked_at) + pause:
                continue  # a message arrived meanwhile
            pause = min(pause * 2, self._timeouts.last_look)
            await self._look(query)
            looked_at = self._clock()

    async def _look(self, query: LiveQuery) -> None:
        """Read the record of a query. Raises `QueryDeleted`, `QueryIdTaken`, `NobodyAnswers`, `GeneratorSilent`."""
        timeouts, view = self._timeouts, query.view
        try:
            await self._look_in_journal(query)
            if not view.ended and self.absence is None:
                await self._look_in_conversation(query)
        except (RequestTimeout, RecordUnreadable):
            pass  # the missing participant comes back; the wait is limited below
        if not view.ended and self.absence is not None:
            raise NobodyAnswers(self.absence.reason, is_accepted=True)
        if not view.ended and self._clock() - query.heard_at >= timeouts.while_silent:
            raise GeneratorSilent(timeouts.while_silent)

    async def _look_in_conversation(self, query: LiveQuery) -> None:
        """Raises `RequestTimeout`, and `QueryIdTaken` if another query has that id."""
        try:
            known = await look_up(self._bus, "query", query.view.query_id, self._timeouts.last_look)
        except QueryRefused as error:
            if error.kind != "not_found":  # which a generator answers that has not received it yet
                query.heard_at = self._clock()  # it lives, but cannot read its record now, possibly on a full disk
            return
        query.heard_at = self._clock()
        query.view.require(known["query"], known.get("user_id"))

    async def _look_in_journal(self, query: LiveQuery) -> bool:
        """Read what is recorded of a query; returns whether it is. Raises `QueryDeleted`, `RequestTimeout`,
        `RecordUnreadable`."""
        heard_at = query.heard_at
        told = await read_query(self._bus, query.view.query_id, self._timeouts.last_look)
        for message, envelope in told:
            self._receive(query, message, envelope)
        query.heard_at = heard_at  # recorded messages are no sign of life
        return bool(told)

    def _arrived(self, envelope: Envelope) -> None:
        is_ours = self.live(envelope.correlation_id) is not None or envelope.subject in OF_AGENTS
        if is_ours and not self._inbox.offer(envelope):
            self._bus.overflowed(envelope)

    def _session_deleted(self, envelope: Envelope) -> None:
        self.forget_session(SessionDeleted.decode(envelope.payload).deleted_session_id)

    def _memory_deleted(self, envelope: Envelope) -> None:
        deleted = MemoryDeleted.decode(envelope.payload)
        self.forget(deleted.engram_id, deleted.query_id)

    async def _read(self) -> None:
        async for envelope in self._inbox:
            kind = kind_of(envelope.subject)
            if kind is None:
                continue
            try:
                message = await self._bus.decode(kind, envelope)
            except MalformedFrame as error:
                self._bus.reject(str(error), envelope.payload)
                continue
            query = self._queries.receiver_of(message, envelope)
            if query is None or envelope.user_id != query.view.user_id:
                continue  # of an unknown query, or of another user's with the same id
            if kind is ResponseGeneration:
                failpoints.reach("api.answer_heard")
            self._receive(query, message, envelope)

    def _receive(self, query: LiveQuery, message: Message, envelope: Envelope) -> None:
        query.receive(message, envelope)
        if query.has_begun:
            self._admit(self._admission.begun(query.query_id))

    def _admit(self, query_ids: Iterable[str]) -> None:
        for query_id in query_ids:
            if query := self.live(query_id):
                query.admit()
