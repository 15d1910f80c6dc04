"""A query that is followed while it happens: the asyncio around its view."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from weakref import WeakSet, WeakValueDictionary

from pydantic_core import to_json

from local.errors import LocalError
from local.protocol.envelope import Envelope
from local.protocol.messages import Message, ResponseGeneration
from local.protocol.permission_messages import ApprovalDecision, ApprovalRequest
from local.queries.admission import LineSample
from local.queries.query_events import News, QueryEvents
from local.queries.query_view import QueryView

KEPT_ENDED = 128
OF_AGENTS = frozenset((ApprovalRequest.subject, ApprovalDecision.subject))  # what the user of another query is asked


class LiveQuery:
    """Waiting for what becomes of a query, and its events; `clock` gives monotonic seconds."""

    def __init__(self, view: QueryView, clock: Callable[[], float]) -> None:
        self.view = view
        self.events = QueryEvents(lambda: to_json(view.said_so_far()))
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
        """Wait until it is on record. Raises what `refuse` was given."""
        await self._accepted.wait()
        if self.view.failure is not None:
            raise self.view.failure

    async def outcome(self) -> ResponseGeneration:
        """The answer, as soon as it is there. Raises what `refuse` was given."""
        return await asyncio.shield(self._outcome)

    async def ends_within(self, seconds: float) -> bool:
        """Wait for the end, but no longer than that; says whether it has come."""
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
        self._tell(self.view.receive(message, envelope, self.heard_at - self.asked_at))

    def refuse(self, error: LocalError) -> None:
        """No answer will come."""
        self._tell(self.view.fail(error))

    def close(self) -> None:
        """Whoever still waits for judgements is to go: this process stops."""
        self._is_closed = True
        self._wake()

    @contextmanager
    def watched(self, changed: asyncio.Event | None = None) -> Iterator[asyncio.Event]:
        """An event, one's own or that of whoever watches several queries, that is set at each change for as long as the
        block lasts; whoever waits on it clears it."""
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
        """Whether some of these judgements of its answer may yet come to whoever waits here."""
        return not self._is_closed and self.view.lacks(judgements)

    def _tell(self, news: list[News] | None) -> None:
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
            self._outcome.exception()  # nobody has to ask for it

    def _wake(self) -> None:
        for changed in self._watchers:
            changed.set()


class LiveQueries:
    """The queries that an asker knows: those that are open, the last ones that ended, and older ones that are still
    followed, by query_id."""

    def __init__(self) -> None:
        self._open: dict[str, LiveQuery] = {}
        self._ended: OrderedDict[str, LiveQuery] = OrderedDict()
        self._followed: WeakValueDictionary[str, LiveQuery] = WeakValueDictionary()  # whoever follows one holds it
        self._by_id = (self._open, self._ended, self._followed)
        self._doomed: WeakSet[LiveQuery] = WeakSet()  # open ones of which nothing is to be kept
        self._put_away = 0  # how many, since the start
        self._asked_by_agents: dict[str, str] = {}  # by call_id: the user's query behind a call that wants leave

    def get(self, query_id: str) -> LiveQuery | None:
        """A query, if it is known here."""
        return self._open.get(query_id) or self._ended.get(query_id) or self._followed.get(query_id)

    def told(self, message: Message, envelope: Envelope) -> LiveQuery | None:
        """The query that is told of a message: of what an agent asks, the one from which that agent came."""
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
        return LineSample(len(waiting), self._put_away + begun, min(waiting, default=math.inf))

    def add(self, query: LiveQuery) -> None:
        """A query was asked."""
        self._open[query.view.query_id] = query

    def put_away(self, query: LiveQuery) -> None:
        """A query has ended; the oldest ones beyond what is kept are dropped."""
        query_id = query.view.query_id
        if self._open.get(query_id) is not query:  # one that was refused may have been asked again already
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
