"""All streams of browsers: whose they are, what they need to hear of the bus, and when they are given up."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from pydantic_core import to_json

from local.apps.api.browser_stream import BrowserStream
from local.apps.api.bus_stream import BusWatch, checked_filters, without_overlap
from local.apps.api.changed_sessions import ChangedSessions, Row
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import ServerEvent
from local.apps.api.participant_table import ParticipantTable
from local.apps.api.participant_watch import ParticipantWatch
from local.apps.api.principals import Principal
from local.apps.api.query_finder import QueryFinder
from local.apps.api.sent_events import SentEvents
from local.apps.api.stream_body import BusBody, StreamBody
from local.apps.session import LoCALSession
from local.bus.bus import Bus
from local.errors import MalformedFrame
from local.protocol.envelope import Envelope, session_of
from local.protocol.messages import (
    ConversationResult,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionDeleted,
)
from local.protocol.model_messages import ModelProgress
from local.protocol.permission_messages import ApprovalDecision, ApprovalRequest
from local.queries.live_query import LiveQuery
from local.runtime.subscription import Inbox

Key = tuple[str | None, str]

MAX_STREAMS = 16  # of one principal
IDLE_SECONDS = 60.0  # without a connection
CHANGING = ("change", "branch")  # what a user can do to a session in the list
APPROVALS: dict[str, type[ApprovalRequest | ApprovalDecision]] = {
    ApprovalRequest.subject: ApprovalRequest,
    ApprovalDecision.subject: ApprovalDecision,
}
LIST_SUBJECTS = frozenset(
    {QueryAccepted.subject, ResponseGeneration.subject, QueryFailed.subject, SessionDeleted.subject}
    | {ConversationResult.subject + verb for verb in CHANGING}
)


class BrowserStreams:
    """Streams by whose they are and the id that the browser gave them. `clock` gives the seconds of the table."""

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
        self._changed = ChangedSessions(session, self._tell_row)
        self._ends: dict[str, Callable[[], None]] = {}  # of what is heard for all of them, by subject

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hear what concerns the streams while the block lasts."""
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
        """The stream of that id, made if there is none. Raises `RequestRefused` (busy) for one too many."""
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
        """Have a stream carry what is in the body; what is not stays. Raises `RequestRefused` and `BusNotReady`."""
        given = body.model_fields_set
        filters = checked_filters(body.bus.subjects, "bus.subjects") if body.bus is not None else ()
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
            self._carry_bus(stream, body.bus, filters)
        self._subscribe()
        await self._bus.ready()

    def participants_changed(self) -> None:
        """Somebody has said how they are."""
        for stream in self._streams.values():
            stream.participants_changed()

    def _make_room(self, principal: Principal) -> None:
        """The stream that nobody reads makes room, if there is one."""
        own = [key for key in self._streams if key[0] == principal.user_id]
        if len(own) < MAX_STREAMS:
            return
        unread = next((key for key in own if self._streams[key].connection is None), None)
        if unread is None:
            raise RequestRefused("busy", f"{MAX_STREAMS} streams are open already: close one, or let tabs share one")
        self._remove(unread)

    def _left(self, key: Key) -> None:
        """Nobody may read that stream now: it is given up unless somebody comes."""
        stream = self._streams.get(key)
        if stream is not None:
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._give_up, key, stream, stream.uses)

    def _give_up(self, key: Key, stream: BrowserStream, uses: int) -> None:
        if self._streams.get(key) is stream and stream.connection is None and stream.uses == uses:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        self._streams.pop(key).end()
        self._subscribe()

    def _carry_bus(self, stream: BrowserStream, body: BusBody | None, filters: Sequence[str]) -> None:
        if body is None:
            return stream.carry_bus(None, None, ())
        watch = BusWatch(stream.principal.user_id, with_payload=body.payload == "full", changed=stream.changed)
        ends = [self._bus.subscribe(subject, watch.receive) for subject in without_overlap(filters)]
        return stream.carry_bus(body, watch, ends)

    # What all of them need to hear

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
        """The query that somebody else is asking: the same once more, and so the same query."""
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
            self._tell_list(deleted, envelope.user_id, event)
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

    def _tell_row(self, row: Row) -> None:
        self._tell_list(row["session_id"], row.get("user_id"), ServerEvent("session", to_json(row)))

    def _tell_list(self, session_id: str, user_id: str | None, event: ServerEvent) -> None:
        for stream in self._seeing(user_id):
            if stream.lists_sessions:
                stream.note_latest(session_id, event)

    def _seeing(self, user_id: str | None) -> list[BrowserStream]:
        return [stream for stream in self._streams.values() if stream.principal.sees(user_id)]
