"""One stream of a browser: what it carries, and what of that is yet to be sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

from pydantic_core import to_json

from local.apps.api.bus_stream import BusWatch
from local.apps.api.errors import status_of
from local.apps.api.event_stream import KEEP_ALIVE, Chunks, ServerEvent, sse, ticking
from local.apps.api.participant_watch import ParticipantWatch
from local.apps.api.principals import Principal
from local.apps.api.query_stream import Trail
from local.apps.api.sent_events import SentEvents
from local.apps.api.stream_body import BusBody
from local.apps.api.streamed_query import StreamedQuery, query_event
from local.backoff import Backoff
from local.errors import LocalError
from local.queries.live_query import LiveQuery

CHUNK_BYTES = 64 * 1024
MAX_NOTES = 2_000
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between attempts to find a query while the record is away

Find = Callable[[], Awaitable[LiveQuery]]
Hello = Mapping[str, object]


class BrowserStream:
    """Belongs to `principal`, who sees nothing else in it. It outlives its connections, of which the latest counts.
    Nothing is queued for a slow client but notes, which are bounded and counted: all else is taken when there is room.
    """

    def __init__(self, principal: Principal, sent: SentEvents, trail: Trail, left: Callable[[], object]) -> None:
        """`left()` is called when the last connection has gone."""
        self.principal, self._sent, self._trail, self._left = principal, sent, trail, left
        self.sessions: frozenset[str] = frozenset()
        self.queries: dict[str, Find] = {}
        self.lists_sessions = False
        self.changed = asyncio.Event()
        self.connection: object | None = None
        self.uses = 0  # so far, for whoever gives it up
        self._participants: ParticipantWatch | None = None
        self._bus_body: BusBody | None = None
        self._bus: BusWatch | None = None
        self._bus_ends: Sequence[Callable[[], object]] = ()
        self._ended = self._is_idle = self._has_been_read = False
        self._of_sessions: dict[str, str] = {}  # followed because of their session, which is the value
        self._followed: dict[str, StreamedQuery] = {}
        self._finding: dict[str, asyncio.Task[None]] = {}
        self._notes: deque[ServerEvent] = deque()
        self._latest: dict[str, ServerEvent] = {}  # by what it tells of
        self._lost = 0

    # What it carries

    def carry_sessions(self, sessions: Collection[str]) -> None:
        """Follow every query that is asked in these from now on, and no more those that were asked in others."""
        self.sessions = frozenset(sessions)
        for query_id, session_id in list(self._of_sessions.items()):
            if session_id not in self.sessions:
                del self._of_sessions[query_id]
                self._drop_unwanted(query_id)

    def carry_queries(self, queries: dict[str, Find]) -> None:
        """Follow these, and no others but those of the sessions."""
        before, self.queries = self.queries, queries
        for query_id in before.keys() - queries.keys():
            self._drop_unwanted(query_id)
        for query_id in queries.keys() - before.keys():
            self._begin(query_id, queries[query_id])

    def carried(self) -> dict[str, object]:
        """The sessions, queries and lists that the stream carries, as a client is told."""
        return {
            "sessions": sorted(self.sessions),
            "queries": list(self.queries),
            "list": self.lists_sessions,
            "participants": self._participants is not None,
            "bus": self._bus_body,
        }

    def asked(self, query_id: str, session_id: str, query: str, find: Find) -> None:
        """A query is being asked in a session that is followed."""
        if query_id not in self._of_sessions:
            self._of_sessions[query_id] = session_id
            told = to_json({"query_id": query_id, "session_id": session_id, "query": query})
            self._begin(query_id, find, ServerEvent("asked", told))

    def carry_participants(self, participants: ParticipantWatch | None) -> None:
        """Tell who takes part, from now on; all of them first."""
        self._participants = participants
        self.changed.set()

    def participants_changed(self) -> None:
        """Somebody has said how they are."""
        if self._participants is not None:
            self._participants.due = True
            self.changed.set()

    def carry_bus(self, body: BusBody | None, watch: BusWatch | None, ends: Sequence[Callable[[], object]]) -> None:
        """Tell what that watch takes in, as the body wants it, until `ends` are called."""
        for end in self._bus_ends:
            end()
        self._bus_body, self._bus, self._bus_ends = body, watch, ends

    def note(self, event: ServerEvent) -> None:
        """Something is to be told once."""
        if len(self._notes) >= MAX_NOTES:
            self._lost += 1
        else:
            self._notes.append(event)
        self.changed.set()

    def note_latest(self, of: str, event: ServerEvent) -> None:
        """Note how a session in the list or a pull is now; what was to be told of it before is out of date."""
        self._latest.pop(of, None)
        self._latest[of] = event
        self.changed.set()

    def end(self) -> None:
        """Nothing more is to be sent, nor followed."""
        self._ended = True
        for task in self._finding.values():
            task.cancel()
        for followed in self._followed.values():
            followed.close()
        self._followed.clear()
        self.carry_bus(None, None, ())
        self.changed.set()

    def _begin(self, query_id: str, find: Find, announcement: ServerEvent | None = None) -> None:
        if query_id not in self._finding and query_id not in self._followed:
            task = asyncio.create_task(self._follow(query_id, find, announcement), name=f"follow {query_id}")
            self._finding[query_id] = task
            task.add_done_callback(lambda _: self._finding.pop(query_id, None))

    async def _follow(self, query_id: str, find: Find, announcement: ServerEvent | None) -> None:
        pauses = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                query = await find()
                break
            except LocalError as error:
                if status_of(error) == 503:  # whoever is away comes back
                    await asyncio.sleep(pauses.next())
                    continue
                if announcement is None:  # else it was never accepted, which is told to whoever asked
                    data = {"query_id": query_id, "error": {"kind": error.kind, "message": str(error)}}
                    self.note(query_event(query_id, None, "error", to_json(data)))
                return
        if announcement is not None:
            self.note(announcement)
        self._followed[query_id] = StreamedQuery(query, self._trail, self.changed, new=announcement is not None)
        self.changed.set()

    def _drop_unwanted(self, query_id: str) -> None:
        if query_id in self.queries or query_id in self._of_sessions:
            return
        if task := self._finding.get(query_id):
            task.cancel()
        if followed := self._followed.pop(query_id, None):
            followed.close()

    # What is sent

    async def chunks(
        self, last_seen: int | None, hello: Hello, tick_seconds: float, may_hear: Callable[[], bool]
    ) -> Chunks:
        """What comes after the event of that number, until another connection takes over, whoever listens may hear no
        more, or the end. `hello` is told first, with `resumed`: whether nothing is missing in between."""
        this = self.connection = object()
        self.changed.set()  # for the connection before
        missed = self._sent.after(last_seen)
        if missed is None and self._has_been_read:
            self._restart()
        self._has_been_read = True
        at = self._sent.last if missed is None or last_seen is None else last_seen
        greeting = sse("hello", to_json({**hello, "resumed": missed is not None}), self._sent.id_of(at))
        try:
            with ticking(tick_seconds, self._tick):
                yield greeting + b"".join(missed or ())
                while self.connection is this and not self._ended and may_hear():
                    self.changed.clear()
                    chunk = self._take()
                    if not chunk:
                        await self.changed.wait()
                        chunk = KEEP_ALIVE if self._is_idle else b""
                    self._is_idle = False
                    if chunk:
                        yield chunk
        finally:
            if self.connection is this:
                self.connection = None
                self._left()

    def _tick(self) -> None:
        self._is_idle = True
        self.participants_changed()
        self.changed.set()

    def _restart(self) -> None:
        """What was sent has not arrived."""
        for followed in self._followed.values():
            followed.restart()
        for query_id, find in self.queries.items():
            self._begin(query_id, find)
        if self._participants is not None:
            self._participants.restart()

    def _take(self) -> bytes:
        chunk = bytearray()
        for events in self._waiting():
            for event in events:
                chunk += self._sent.add(event)
            if len(chunk) >= CHUNK_BYTES:
                break
        return bytes(chunk)

    def _waiting(self) -> Iterator[list[ServerEvent]]:
        """What there is, a source at a time; a source is left alone until it is come to."""
        notes, self._notes = list(self._notes), deque()
        if self._lost:
            notes.append(ServerEvent("lost", to_json({"what": "asked", "lost": self._lost})))
            self._lost = 0
        yield notes
        for query_id, followed in list(self._followed.items()):
            yield followed.take()
            if followed.is_over:
                del self._followed[query_id]
                self._of_sessions.pop(query_id, None)
                followed.close()
        latest, self._latest = self._latest, {}
        yield list(latest.values())
        if self._participants is not None:
            yield self._participants.take()
        if self._bus is not None:
            yield self._bus.take()
