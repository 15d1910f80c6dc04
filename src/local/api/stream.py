"""The streams of browsers: their owners, the messages they need from the bus, and their end."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from itertools import groupby
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json

from local.api.bus_stream import MAX_MARKS, BusWatch, read_filter
from local.api.http import KEEP_ALIVE, Chunks, Id, RequestRefused, ServerEvent, sse, status_of, ticking
from local.api.participants import ParticipantTable, ParticipantWatch
from local.api.queries import JudgementWindow, QueryFinder, payload_of
from local.api.security import Principal
from local.bus.bus import Bus
from local.bus.envelope import Envelope, session_of
from local.bus.filter import Filter
from local.bus.messages import (
    ConversationResult,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionDeleted,
    SessionTitled,
)
from local.core.errors import LocalError, MalformedFrame, RequestTimeout
from local.core.files import Backoff
from local.memory.messages import MemoryAnnotated, MemoryDeleted, MemoryIngested, UserFacts
from local.models.messages import ModelProgress
from local.permissions.messages import ApprovalDecision, ApprovalRequest
from local.queries.asker import LiveQuery
from local.queries.session import LoCALSession
from local.runtime.participant import Inbox

# The latest events of a stream, for a client that reconnects and has missed some of them.

MAX_BYTES = 1024 * 1024


class SentEvents:
    """The last mebibyte of events that a stream has sent, numbered, for a client that reconnects. `numbers` count up
    over all streams, so that an id of an ended stream is not taken for one of its successor's.
    """

    def __init__(self, instance: str, numbers: Iterator[int]) -> None:
        self._instance, self._numbers = instance, numbers
        self._dropped = self.last = next(numbers)  # everything after `_dropped` is kept
        self._kept: deque[tuple[int, bytes]] = deque()
        self._bytes = 0

    def id_of(self, number: int) -> str:
        """The id by which a client names the event."""
        return f"{self._instance}-{number}"

    def add(self, event: ServerEvent) -> bytes:
        """An event is being sent: the same, written."""
        self.last = next(self._numbers)
        written = sse(event.name, event.data, self.id_of(self.last))
        self._kept.append((self.last, written))
        self._bytes += len(written)
        while self._bytes > MAX_BYTES:
            self._dropped, dropped = self._kept.popleft()
            self._bytes -= len(dropped)
        return written

    def after(self, number: int | None) -> list[bytes] | None:
        """Return the events after that number; None if some are no longer there, or the number is unknown."""
        if number is None or not self._dropped <= number <= self.last:
            return None
        return [written for at, written in self._kept if at > number]


# A browser's request for the content of its stream.

MAX_SESSIONS, MAX_QUERIES = 64, 256


class BusBody(BaseModel):
    """The part of the bus that a stream carries: subjects, families and patterns, with payloads or only their sizes.
    Each event has as `matches` those of the `filters` that match it.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    subjects: Annotated[tuple[str, ...], Field(strict=False)] = ("",)
    payload: Literal["none", "full"] = "none"
    filters: Annotated[tuple[str, ...], Field(max_length=MAX_MARKS, strict=False)] = ()


class StreamBody(BaseModel):
    """The body of POST /stream/{stream_id}. Omitted fields stay unchanged."""

    model_config = ConfigDict(extra="forbid", strict=True)
    sessions: Annotated[tuple[Id, ...], Field(max_length=MAX_SESSIONS, strict=False)] = ()
    queries: Annotated[tuple[Id, ...], Field(max_length=MAX_QUERIES, strict=False)] = ()
    list: bool = False
    participants: bool = False
    bus: BusBody | None = None


# One query as a stream follows it.

FRAGMENTS = ("thinking", "token")
PROGRESS = "progress"  # only the latest one matters


class StreamedQuery:
    """One query as a stream follows it. Its events are taken when there is room for them, so that a slow client costs
    no memory. It begins with a snapshot of the events so far, or with the first event if it is `new` to the client.
    `changed` is set at each change.
    """

    def __init__(self, query: LiveQuery, trail: JudgementWindow, changed: asyncio.Event, *, new: bool = False) -> None:
        self._query, self._trail = query, trail
        self._watching = ExitStack()
        self._watching.enter_context(query.watched(changed))
        self._seen = 0 if new else None

    @property
    def is_over(self) -> bool:
        """Whether everything was taken, and nothing more is awaited."""
        query = self._query
        return query.has_nothing_after(self._seen) and self._trail.seconds_left(query) <= 0

    def restart(self) -> None:
        """Begin again with a snapshot, because the taken events did not arrive."""
        self._seen = None

    def take(self) -> list[ServerEvent]:
        """Return the events since the last call."""
        query = self._query
        if self._seen == query.events.count:
            return []
        events = query.events.after(self._seen)
        self._seen = events[-1].number if events else self._seen
        told = _joined((event.kind, payload_of(event, query)) for event in events)
        return [query_event(query.query_id, query.view.session_id, kind, data) for kind, data in told]

    def close(self) -> None:
        """Stop following the query."""
        self._watching.close()


def query_event(query_id: str, session_id: str | None, kind: str, data: bytes) -> ServerEvent:
    """An event of a query as part of a stream of many."""
    names = to_json({"query_id": query_id, "session_id": session_id, "event": kind})
    return ServerEvent("query", b'%s,"data":%s}' % (names[:-1], data))


def _joined(events: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """The same with fragments that follow each other in one: the text of all `count` of them, the first one's index."""
    for kind, several in groupby(events, key=lambda event: event[0]):
        payloads = [payload for _, payload in several][-1 if kind == PROGRESS else 0 :]
        if kind not in FRAGMENTS or len(payloads) == 1:
            yield from ((kind, payload) for payload in payloads)
            continue
        numbered = enumerate(map(from_json, payloads))
        for _, run in groupby(numbered, key=lambda each: (each[1]["attempt"], each[1]["index"] - each[0])):
            fragments = [fragment for _, fragment in run]
            text = "".join(fragment["text"] for fragment in fragments)
            yield kind, to_json({**fragments[0], "text": text, "count": len(fragments)})


# One stream of a browser: its content, and the unsent part of it.

CHUNK_BYTES = 64 * 1024
MAX_NOTES = 2_000
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between attempts to find a query while the record is away

Find = Callable[[], Awaitable[LiveQuery]]
Hello = Mapping[str, object]


class BrowserStream:
    """One browser's stream: its content, and the unsent part of it. It belongs to `principal`, and carries nothing that
    the principal may not see. It outlives its connections, of which the latest counts. Only notes are queued for a slow
    client, in bounded number: all else is taken when there is room.
    """

    def __init__(
        self, principal: Principal, sent: SentEvents, trail: JudgementWindow, left: Callable[[], object]
    ) -> None:
        """`left()` is called when the last connection has closed."""
        self.principal, self._sent, self._trail, self._left = principal, sent, trail, left
        self.sessions: frozenset[str] = frozenset()
        self.queries: dict[str, Find] = {}
        self.lists_sessions = False
        self.changed = asyncio.Event()
        self.connection: object | None = None
        self.uses = 0  # used to detect a new connection before the stream is given up
        self._participants: ParticipantWatch | None = None
        self.bus_body: BusBody | None = None
        self._bus: BusWatch | None = None
        self._bus_ends: Sequence[Callable[[], object]] = ()
        self._ended = self._is_idle = self._has_been_read = False
        self._of_sessions: dict[str, str] = {}  # followed because of their session, which is the value
        self._followed: dict[str, StreamedQuery] = {}
        self._finding: dict[str, asyncio.Task[None]] = {}
        self._announced: dict[str, tuple[Find, ServerEvent]] = {}  # queries asked while they are looked for
        self._notes: deque[ServerEvent] = deque()
        self._latest: dict[str, ServerEvent] = {}  # by its object
        self._lost = 0

    # The content of the stream

    def carry_sessions(self, sessions: Collection[str]) -> None:
        """Follow every new query in these sessions from now on, and no longer those in others."""
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
        """Return the sessions, queries and lists of the stream, for a client."""
        return {
            "sessions": sorted(self.sessions),
            "queries": list(self.queries),
            "list": self.lists_sessions,
            "participants": self._participants is not None,
            "bus": self.bus_body,
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
        """Note that a participant's status has changed."""
        if self._participants is not None:
            self._participants.due = True
            self.changed.set()

    def carry_bus(self, body: BusBody | None, watch: BusWatch | None, ends: Sequence[Callable[[], object]]) -> None:
        """Send the events of that watch, as the body requests them, until `ends` are called."""
        for end in self._bus_ends:
            end()
        self.bus_body, self._bus, self._bus_ends = body, watch, ends

    def note(self, event: ServerEvent) -> None:
        """Add an event that is sent once."""
        if len(self._notes) >= MAX_NOTES:
            self._lost += 1
        else:
            self._notes.append(event)
        self.changed.set()

    def note_latest(self, of: str, event: ServerEvent) -> None:
        """Add the present state of a session in the list, or of a pull; it replaces unsent earlier ones."""
        self._latest.pop(of, None)
        self._latest[of] = event
        self.changed.set()

    def end(self) -> None:
        """End the stream and everything that it follows."""
        self._ended = True
        for task in self._finding.values():
            task.cancel()
        for followed in self._followed.values():
            followed.close()
        self._followed.clear()
        self.carry_bus(None, None, ())
        self.changed.set()

    def _begin(self, query_id: str, find: Find, announcement: ServerEvent | None = None) -> None:
        if query_id in self._finding and announcement is not None:
            self._announced[query_id] = find, announcement  # used if the lookup, which began earlier, finds nothing
        elif query_id not in self._finding and query_id not in self._followed:
            task = asyncio.create_task(self._follow(query_id, find, announcement), name=f"follow {query_id}")
            self._finding[query_id] = task
            task.add_done_callback(lambda _: (self._finding.pop(query_id, None), self._announced.pop(query_id, None)))

    async def _follow(self, query_id: str, find: Find, announcement: ServerEvent | None) -> None:
        pauses = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                query = await find()
                break
            except LocalError as error:
                if status_of(error) == 503:  # a participant that is away comes back
                    await asyncio.sleep(pauses.next())
                    continue
                if query_id in self._announced:
                    find, announcement = self._announced.pop(query_id)
                    continue
                if announcement is None:  # otherwise it was never accepted, which its asker was informed of
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

    # Sending

    async def chunks(
        self, last_seen: int | None, hello: Hello, tick_seconds: float, may_hear: Callable[[], bool]
    ) -> Chunks:
        """Yield the events after that number, until another connection takes over, the client's permission ends, or the
        stream ends. `hello` is sent first, with `resumed`: whether nothing is missing in between.
        """
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
        """Send everything again, because it did not arrive."""
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
        """Yield what there is, a source at a time; a source is not read before its turn."""
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


# The sessions that have changed, looked up for those who watch the list of them.

log = logging.getLogger(__name__)

MAX_ROWS = 1000  # in one answer

Row = dict[str, Any]


class ChangedSessions:
    """The sessions that have changed since the generator was last asked for their rows. It asks for all of them at
    once, and passes each row to `publish(row)`."""

    def __init__(self, session: LoCALSession, publish: Callable[[Row], object]) -> None:
        self._session, self._publish = session, publish
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()

    def add(self, session_id: str) -> None:
        """Note that a session has changed."""
        self._waiting.add(session_id)
        self._changed.set()

    async def run(self) -> None:
        """Fetch changed sessions until cancelled. While the generator is away, the changes wait for it."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            waiting = sorted(self._waiting)
            asked, self._waiting = waiting[:MAX_ROWS], set(waiting[MAX_ROWS:])
            if self._waiting:
                self._changed.set()
            try:
                found = await self._session.look_up("sessions", among=asked, limit=MAX_ROWS)
            except RequestTimeout:  # which is seconds later
                self._waiting.update(asked)
                self._changed.set()
            except LocalError as error:
                log.warning("changed sessions: %s", error)
            else:
                for row in found["sessions"]:
                    self._publish(row)


Key = tuple[str | None, str]

MAX_STREAMS = 16  # of one principal
IDLE_SECONDS = 60.0  # without a connection
CHANGING = ("change", "branch", "import")  # what a user can do to a session in the list
APPROVALS: dict[str, type[ApprovalRequest | ApprovalDecision]] = {
    ApprovalRequest.subject: ApprovalRequest,
    ApprovalDecision.subject: ApprovalDecision,
}
OF_MEMORY = frozenset(kind.subject for kind in (MemoryIngested, MemoryAnnotated, MemoryDeleted, UserFacts))
LIST_SUBJECTS = OF_MEMORY | frozenset(
    {QueryAccepted.subject, ResponseGeneration.subject, QueryFailed.subject, SessionDeleted.subject}
    | {SessionTitled.subject}
    | {ConversationResult.subject + verb for verb in CHANGING}
)


class BrowserStreams:
    """All browsers' streams, by owner and the id that the browser chose. `clock` returns the seconds of the table."""

    def __init__(
        self,
        bus: Bus,
        session: LoCALSession,
        queries: QueryFinder,
        participants: ParticipantTable,
        clock: Callable[[], float],
    ) -> None:
        self._bus, self._session, self._queries = bus, session, queries
        self._participants, self._clock = participants, clock
        self._streams: dict[Key, BrowserStream] = {}
        self._numbers = itertools.count(1)
        self._inbox = Inbox()
        self._changed = ChangedSessions(session, self._send_row)
        self._ends: dict[str, Callable[[], None]] = {}  # the ends of subscriptions for all of them, by subject

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Receive the messages for the streams while the block lasts."""
        tasks = [
            asyncio.create_task(self._read(), name="streams"),
            asyncio.create_task(self._changed.run(), name="changed sessions"),
        ]
        try:
            yield
        finally:
            self.stop()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def stop(self) -> None:
        """End every stream."""
        for stream in self._streams.values():
            stream.end()
        self._streams.clear()

    def open(self, stream_id: str, principal: Principal) -> BrowserStream:
        """Return the stream of that id, made if there is none. Raises `RequestRefused` (busy) for one too many."""
        key = (principal.user_id, stream_id)
        stream = self._streams.get(key)
        if stream is None:
            self._make_room(principal)
            sent = SentEvents(self._bus.instance, self._numbers)
            stream = BrowserStream(principal, sent, self._queries.trail, lambda: self._left(key))
            self._streams[key] = stream
            self._subscribe()
        stream.uses += 1
        self._left(key)
        return stream

    async def carry(self, stream: BrowserStream, body: StreamBody) -> None:
        """Set the content of a stream as in the body; omitted fields stay unchanged. Raises `RequestRefused` and
        `BusNotReady`.
        """
        given = body.model_fields_set
        bus = body.bus or BusBody()
        wanted = read_filter(None, bus.subjects, subject_param="bus.subjects")
        marks = {text: read_filter(text, param="bus.filters") for text in bus.filters}
        if body.participants and not stream.principal.is_owner:
            raise RequestRefused("forbidden", "participants: they are for the owner of the system alone")
        if "sessions" in given:
            stream.carry_sessions(body.sessions)
        if "queries" in given:
            find = self._queries.follow
            stream.carry_queries({one: partial(find, one, stream.principal) for one in body.queries})
        if "list" in given:
            stream.lists_sessions = body.list
        if "participants" in given:
            watch = ParticipantWatch(self._participants, self._clock)
            stream.carry_participants(watch if body.participants else None)
        if "bus" in given:
            self._carry_bus(stream, body.bus, wanted, marks)
        self._subscribe()
        await self._bus.ready()

    def participants_changed(self) -> None:
        """Note that a participant's status has changed."""
        for stream in self._streams.values():
            stream.participants_changed()

    def _make_room(self, principal: Principal) -> None:
        """End a stream without a connection, if there is one, to make room."""
        own = [key for key in self._streams if key[0] == principal.user_id]
        if len(own) < MAX_STREAMS:
            return
        unread = next((key for key in own if self._streams[key].connection is None), None)
        if unread is None:
            raise RequestRefused("busy", f"{MAX_STREAMS} streams are open already: close one, or let tabs share one")
        self._remove(unread)

    def _left(self, key: Key) -> None:
        """Note that no connection reads that stream now: it is given up unless one comes."""
        stream = self._streams.get(key)
        if stream is not None:
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._give_up, key, stream, stream.uses)

    def _give_up(self, key: Key, stream: BrowserStream, uses: int) -> None:
        if self._streams.get(key) is stream and stream.connection is None and stream.uses == uses:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        self._streams.pop(key).end()
        self._subscribe()

    def _carry_bus(
        self, stream: BrowserStream, body: BusBody | None, wanted: Filter, marks: Mapping[str, Filter]
    ) -> None:
        if body == stream.bus_body:
            return None  # unsent events stay
        if body is None:
            return stream.carry_bus(None, None, ())
        has_payload, user_id = body.payload == "full", stream.principal.user_id
        watch = BusWatch(wanted, user_id, with_payload=has_payload, marks=marks, changed=stream.changed)
        ends = [self._bus.subscribe(subject, watch.receive) for subject in wanted.subscriptions()]
        return stream.carry_bus(body, watch, ends)

    # Subscriptions for all of them

    def _subscribe(self) -> None:
        streams = self._streams.values()
        wanted = {QueryReceived.subject} if any(stream.sessions for stream in streams) else set()
        wanted |= {ModelProgress.subject} if any(stream.principal.is_owner for stream in streams) else set()
        wanted |= set(APPROVALS) if streams else set()
        wanted |= LIST_SUBJECTS if any(stream.lists_sessions for stream in streams) else set()
        for subject in self._ends.keys() - wanted:
            self._ends.pop(subject)()
        for subject in wanted - self._ends.keys():
            self._ends[subject] = self._bus.subscribe(subject, self._inbox.offer)

    async def _read(self) -> None:
        async for envelope in self._inbox:
            try:
                if envelope.subject == QueryReceived.subject:
                    await self._asked(envelope)
                elif envelope.subject == ModelProgress.subject:
                    self._pulled(ModelProgress.decode(envelope.payload))
                elif envelope.subject in APPROVALS:
                    await self._approval(APPROVALS[envelope.subject], envelope)
                elif envelope.subject in OF_MEMORY:
                    event = ServerEvent("memory", to_json({"what": envelope.subject.removeprefix("memory.")}))
                    self._send_list("memory", envelope.user_id, event)
                else:
                    self._session_changed(envelope)
            except MalformedFrame as error:
                self._bus.reject(str(error), envelope.payload)

    async def _asked(self, envelope: Envelope) -> None:
        session_id = session_of(envelope, envelope.correlation_id)
        streams = [one for one in self._seeing(envelope.user_id) if session_id in one.sessions]
        if streams:
            message = await self._bus.decode(QueryReceived, envelope)
            find = partial(self._join, message, envelope)
            for stream in streams:
                stream.asked(message.query_id, session_id, message.query, find)

    async def _join(self, message: QueryReceived, envelope: Envelope) -> LiveQuery:
        """Return the query that another client is asking: the same query_id is the same query."""
        query = self._session.ask(
            message.query,
            attachments=message.attachments,
            query_id=message.query_id,
            session_id=envelope.session_id,
            user_id=envelope.user_id,
            incognito=message.incognito,
            history=message.history,
            is_on_record=True,
        )
        await query.accepted()
        return query

    def _session_changed(self, envelope: Envelope) -> None:
        if envelope.subject == SessionDeleted.subject:
            deleted = SessionDeleted.decode(envelope.payload).deleted_session_id
            event = ServerEvent("session_deleted", to_json({"session_id": deleted}))
            self._send_list(deleted, envelope.user_id, event)
        elif envelope.subject.startswith(ConversationResult.subject):
            value = ConversationResult.decode(envelope.payload).value or {}
            if session_id := value.get("session_id"):
                self._changed.add(session_id)
        else:
            self._changed.add(session_of(envelope, envelope.correlation_id))

    def _pulled(self, progress: ModelProgress) -> None:
        event = ServerEvent("pull", to_json({**progress.model_dump(exclude={"model"}), "name": progress.model}))
        for stream in self._streams.values():
            if stream.principal.is_owner:
                stream.note_latest(f"pull {progress.model}", event)

    async def _approval(self, kind: type[ApprovalRequest | ApprovalDecision], envelope: Envelope) -> None:
        message = await self._bus.decode(kind, envelope)
        for stream in self._seeing(envelope.user_id):
            stream.note_latest(f"approval {message.call_id}", ServerEvent("approval", message.encode()))

    def _send_row(self, row: Row) -> None:
        self._send_list(row["session_id"], row.get("user_id"), ServerEvent("session", to_json(row)))

    def _send_list(self, session_id: str, user_id: str | None, event: ServerEvent) -> None:
        for stream in self._seeing(user_id):
            if stream.lists_sessions:
                stream.note_latest(session_id, event)

    def _seeing(self, user_id: str | None) -> list[BrowserStream]:
        return [stream for stream in self._streams.values() if stream.principal.sees(user_id)]
