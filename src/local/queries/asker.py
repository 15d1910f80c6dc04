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
from typing import Any, ClassVar, NamedTuple, Protocol, Self
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

# Whether one more query is taken on: not while those asked before it keep LoCAL2 itself busy for too long.

FEW = 10  # so few waiting queries are no queue, and so few begun ones are no measure of its speed
MANY = 50  # so many that have begun are a line by themselves, if they wait for a busy process
LEAST_SECONDS, MOST_SECONDS = 1.0, 10.0  # over which the speed is measured; over more only while few have begun
SAMPLE_SECONDS = 0.1
PRUDENCE = 0.6  # of the limit: the speed falls while the queue grows, and the measurements of both are late
BUSY_PERCENT = 80  # above that load, the process is the bottleneck of its turns


class LineSample(NamedTuple):
    """The line of queries at one moment: how many wait for their turn to begin, those behind a query of their own
    session left out; how many have left the line since the start; since when the first one waits, in seconds of the
    asker's clock; and how many have begun and not ended."""

    waiting: int
    begun: int
    since: float
    running: int = 0


class QueryLine(Protocol):
    """The interface of an object that reports the queue of queries."""

    def line(self) -> LineSample:
        """Return the present state of the queue."""
        ...


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
        for an overloaded process. The length of the queue is then ignored.
        """
        is_full = self.running >= self.at_most and 2 * self.with_model >= self.running
        return is_full and not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether the process is the bottleneck of its turns."""
        return self.load >= BUSY_PERCENT


class AdmissionControl:
    """The decision whether one more query is accepted, from measurements of the queue alone. It concerns the time
    before a turn begins: the time after that is the model's, unless the generator's process is busy all the time. Then
    turns that have begun wait for it as well, and count as a part of the queue until they end: many begin at once where
    places are free, so that their number is no measure of its speed. A query that joins a queue waits as long as the
    queue takes at its speed (J. Little, 1961: L = λW), on average or lately, and if the queue does not move, at least
    as long as its first query has waited already. Nothing is refused if few wait.
    """

    def __init__(self, max_wait_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """None refuses nothing; `clock` returns monotonic seconds."""
        self._max_wait_seconds, self._clock = max_wait_seconds, clock
        self._samples: deque[tuple[float, LineSample]] = deque()
        self._turns: TurnFigures | None = None
        self.is_measuring = False

    def update(self, turns: TurnFigures | None) -> None:
        """Receive the generator's report on its turns. Measurements of an earlier process of it are discarded."""
        if turns is None:
            return
        if self._turns is None or self._turns.instance != turns.instance:
            self.forget()
        self._turns = turns

    def forget(self) -> None:
        """Forget the measurements, because the queue is empty: the next one is measured from its beginning."""
        self._samples.clear()
        self.is_measuring = False

    def require_room(self, queries: QueryLine) -> None:
        """Raises `TooManyQueries` if one more query would wait too long."""
        if self._max_wait_seconds is None:
            return
        now = self._clock()
        if not self._samples or now - self._samples[-1][0] >= SAMPLE_SECONDS:
            self._take(now, queries.line())
        wait = self._wait_seconds(now)
        if wait > PRUDENCE * self._max_wait_seconds:
            waiting, at_worst = self._samples[-1][1].waiting, wait / PRUDENCE
            raise TooManyQueries(waiting, wait, at_worst, self._max_wait_seconds)

    def _take(self, now: float, line: LineSample) -> None:
        samples = self._samples
        if not self._is_long(line):
            samples.clear()
        samples.append((now, line))
        self.is_measuring = True
        while len(samples) > 1 and self._is_dispensable(now, line):
            samples.popleft()

    def _is_dispensable(self, now: float, line: LineSample) -> bool:
        """Whether the first sample is before the first query of this line that has begun, or is too old."""
        (_, first), (second_at, second) = self._samples[0], self._samples[1]
        if first.begun == second.begun:
            return True
        return now - second_at >= MOST_SECONDS and line.begun - second.begun >= FEW

    def _wait_seconds(self, now: float) -> float:
        """Return how long a new query would wait for LoCAL2 itself; 0 if the queue is short, waits for the model, or
        is unknown.
        """
        _, last = self._samples[-1]
        if self._turns is None or self._turns.wait_for_model or not self._is_long(last):
            return 0.0
        is_busy = self._turns.is_busy
        ahead = last.waiting + (last.running if is_busy else 0)
        seconds, left = self._since(0, is_busy)
        if left < FEW:
            is_known = seconds >= LEAST_SECONDS
            return max(now - last.since, ahead / _most_a_second(left, seconds) if is_known else 0.0)
        lately = ahead / self._speed_lately(is_busy)
        return max(now - last.since, lately, ahead * seconds / left if seconds >= LEAST_SECONDS else 0.0)

    def _is_long(self, line: LineSample) -> bool:
        is_busy = self._turns is not None and self._turns.is_busy
        return line.waiting >= FEW or (is_busy and line.running >= MANY)

    def _since(self, number: int, is_busy: bool) -> tuple[float, int]:
        """The seconds from a sample to the last one, and how many have left the line meanwhile: they have begun, or
        have ended where those that have begun still wait for the busy process."""
        (at, sample), (last_at, last) = self._samples[number], self._samples[-1]
        left = last.begun - sample.begun
        return last_at - at, left - (last.running - sample.running) if is_busy else left

    def _speed_lately(self, is_busy: bool) -> float:
        """Return how many turns begin in a second, measured over the shortest sufficient time, corrected for chance."""
        measured = [self._since(number, is_busy) for number in reversed(range(len(self._samples)))]
        long_enough = ((s, n) for s, n in measured if s >= LEAST_SECONDS and n >= FEW)
        seconds, left = next(long_enough, measured[-1])
        return _most_a_second(left, seconds)


def _most_a_second(begun: int, seconds: float) -> float:
    """Return the greatest speed at which no more than so many would begin, except by rare chance: two standard
    deviations more, and at least three.
    """
    return (begun + max(2 * math.sqrt(begun), 3.0)) / seconds


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
        self._accepted = asyncio.Event()
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
        self._doomed: WeakSet[LiveQuery] = WeakSet()  # open ones that are not kept after their end
        self._put_away = 0  # how many, since the start
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

    def line(self) -> LineSample:
        """The line of those that wait for LoCAL2 now."""
        first_of_each = {query.view.session_id: query for query in reversed(self._open.values())}
        waiting = [query.asked_at for query in first_of_each.values() if not query.has_begun]
        begun = sum(query.has_begun for query in self._open.values())
        return LineSample(len(waiting), self._put_away + begun, min(waiting, default=math.inf), begun)

    def add(self, query: LiveQuery) -> None:
        """A query was asked."""
        self._open[query.view.query_id] = query

    def put_away(self, query: LiveQuery) -> None:
        """Keep an ended query; the oldest ones beyond the limit are dropped."""
        query_id = query.view.query_id
        if self._open.get(query_id) is not query:  # a refused one may have been asked again already
            return
        del self._open[query_id]
        self._put_away += 1
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
        """With `max_wait_seconds`, a query that would wait longer for LoCAL2 itself is refused (`AdmissionControl`).
        `hears` are the subjects it follows, which must include the ends of queries; the fewer, the less often others'
        turns wake this process.
        """
        self._bus, self._timeouts, self._clock = bus, timeouts or AskTimeouts(), clock
        self._queries = LiveQueries()
        self._inbox = Inbox()
        self._asking: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.absence: Unavailable | None = None  # why no answer is possible now; set from outside
        self.admission = AdmissionControl(max_wait_seconds, clock)
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
        is_on_record: bool = False,
    ) -> LiveQuery:
        """Begin a query, or join the one of that id. Without a session it is a session by itself, under the query's id.

        Raises `QueryRefused` for the id of another query (conflict) or one too many (busy), `TooManyQueries`, unless it
        `is_on_record`, and `AskerStopping`.
        """
        may_be_known, query_id = query_id is not None, query_id or new_id()
        if (known := self.live(query_id)) is not None and known.view.failure is None:
            known.view.require(query, user_id)
            return known
        if not is_on_record:
            self._require_room()
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
        return self._begin(message, session_id, user_id, may_be_known=may_be_known)

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

    def forget(self, engram_id: str, query_id: str) -> None:
        """Forget a deleted memory: its query, and its content recalled by others."""
        self._queries.forget(lambda view: view.query_id == query_id or view.has_recalled(engram_id))

    def forget_session(self, session_id: str) -> None:
        """A session was deleted: keep nothing of its queries here."""
        self._queries.forget(lambda view: view.session_id == session_id)

    def _require_room(self) -> None:
        if len(self._queries.open) >= FEW:
            self.admission.require_room(self._queries)
        elif self.admission.is_measuring:
            self.admission.forget()

    def _begin(
        self, message: QueryReceived, session_id: str | None, user_id: str | None, *, may_be_known: bool
    ) -> LiveQuery:
        if self._is_stopping:
            raise AskerStopping
        if len(self._queries.open) >= MAX_OPEN:
            raise QueryRefused("busy", f"{MAX_OPEN} queries are already open; try again later")
        query = LiveQuery(QueryView(message.query_id, message.query, session_id, user_id=user_id), self._clock)
        self._queries.add(query)
        trace = Trace(message.query_id, None, query.view.session_id, user_id)
        asking = self._see_through(query, message, trace, may_be_known=may_be_known)
        task = asyncio.create_task(asking, name=f"ask {message.query_id}")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        return query

    async def _see_through(self, query: LiveQuery, message: QueryReceived, trace: Trace, *, may_be_known: bool) -> None:
        limit = self._timeouts.until_accepted
        try:
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

    async def _look_in_journal(self, query: LiveQuery) -> None:
        """Raises `QueryDeleted`, `RequestTimeout`, `RecordUnreadable`."""
        heard_at = query.heard_at
        for message, envelope in await read_query(self._bus, query.view.query_id, self._timeouts.last_look):
            query.receive(message, envelope)
        query.heard_at = heard_at  # recorded messages are no sign of life

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
            query.receive(message, envelope)
