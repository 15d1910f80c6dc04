"""Asks queries on the bus and sees them through: for doors, and for whoever else has a question."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from local import failpoints
from local.bus.bus import Bus
from local.errors import LocalError, MalformedFrame, NotConfirmed, RecordUnreadable, RequestTimeout
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.journal_messages import JournalRead
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.message import Message
from local.protocol.messages import AnswerOptions, QueryCancel, QueryReceived, ResponseGeneration, SessionDeleted
from local.protocol.query_origin import USER
from local.queries.admission import FEW, AdmissionControl
from local.queries.errors import AskerStopping, GeneratorSilent, NobodyAnswers, NotAccepted, QueryRefused
from local.queries.live_query import OF_AGENTS, LiveQueries, LiveQuery
from local.queries.query_events import EVENT_KINDS, kind_of
from local.queries.query_view import QueryView
from local.queries.record import look_up, read_judgements, read_query, view_of
from local.runtime.participant import Publications
from local.runtime.subscription import Inbox

JOURNAL = "journal"
MAX_OPEN = 10_000
_NAMESPACE = uuid.UUID("a2f8d1a6-0f4e-4a52-9a2e-6f4a3f0f7c11")


def query_envelope_id(query_id: str) -> str:
    """The id of the envelope that asks a query: always the same, so that asking it twice is one query."""
    return uuid.uuid5(_NAMESPACE, query_id).hex


@dataclass(frozen=True, slots=True)
class AskTimeouts:
    """Seconds: the first and the longest silence before the record is looked at, and when no more is hoped for."""

    first_look: float = 0.5
    last_look: float = 5.0
    until_accepted: float = 10.0
    while_silent: float = 60.0


@dataclass(frozen=True, slots=True)
class Absence:
    """Somebody without whom there are no answers is not there, and will not be; `reason` is a sentence about it."""

    participant: str
    reason: str


class Asker:
    """One process's queries. Make it before `bus.ready()`, since it subscribes to whatever belongs to queries, and use
    it as `async with`; leaving it stops asking, and what was accepted goes on without us.

    A query is accepted when it is on record. An answer that was lost on its way here, or was given before this process
    asked, is found on record, too.
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
        What it `hears` of queries has to tell of their ends; the fewer, the less others' turns wake this process."""
        self._bus, self._timeouts, self._clock = bus, timeouts or AskTimeouts(), clock
        self._queries = LiveQueries()
        self._inbox = Inbox()
        self._asking: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.absence: Absence | None = None  # why nobody can answer now: for whoever knows to say
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
        """Tell everybody who waits here that this process stops, and ask nothing more."""
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
        is_on_record: bool = False,
    ) -> LiveQuery:
        """Begin a query, or join the one of that id. Without a session it is one of its own, under the query's id.

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
        )
        return self._begin(message, session_id, user_id, may_be_known=may_be_known)

    def live(self, query_id: str) -> LiveQuery | None:
        """A query that is known here: one that is open, or one of the last that ended."""
        return self._queries.get(query_id)

    async def cancel(self, query_id: str, user_id: str | None = None) -> None:
        """Ask for the end of a query of that user's, on record. Raises `NotConfirmed`."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id, user_id=user_id))

    async def recall_judgements(self, query: LiveQuery | QueryView, seconds: float = 1.0) -> None:
        """Add what the journal has of what was said of a query's answer; nothing while it is away."""
        with suppress(RequestTimeout, RecordUnreadable):
            for message, envelope in await read_judgements(self._bus, query.query_id, seconds):
                query.receive(message, envelope)

    async def recall(self, query_id: str, seconds: float = 5.0) -> QueryView:
        """A query as the journal has it on record, or, where that is away or has it no more, the generator.

        Raises `QueryRefused` for one that nobody knows, `QueryDeleted` and `RequestTimeout`.
        """
        with suppress(RequestTimeout, RecordUnreadable):
            if told := await read_query(self._bus, query_id, seconds):
                return QueryView.of(query_id, told)
        return view_of(await look_up(self._bus, "query", query_id, seconds))

    def forget(self, engram_id: str, query_id: str) -> None:
        """A memory was deleted: keep nothing of its query here, nor what others have recalled of it."""
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
            raise QueryRefused("busy", f"{MAX_OPEN} queries are open already; try again later")
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

    async def _find_answer(self, query: LiveQuery, absence: Absence, *, may_be_known: bool) -> None:
        """Nobody can answer, but an earlier answer may be on record. Raises `NobodyAnswers` if there is none."""
        if may_be_known and absence.participant != JOURNAL:
            await self._look_in_journal(query)
        if not query.view.ended:
            raise NobodyAnswers(absence.reason)

    async def _look_until_ended(self, query: LiveQuery) -> None:
        looked_at, pause = self._clock(), self._timeouts.first_look
        while not await query.ends_within(max(query.heard_at, looked_at) + pause - self._clock()):
            if self._clock() < max(query.heard_at, looked_at) + pause:
                continue  # something was heard meanwhile
            pause = min(pause * 2, self._timeouts.last_look)
            await self._look(query)
            looked_at = self._clock()

    async def _look(self, query: LiveQuery) -> None:
        """See what is on record. Raises `QueryDeleted`, `QueryIdTaken`, `NobodyAnswers`, `GeneratorSilent`."""
        timeouts, view = self._timeouts, query.view
        try:
            await self._look_in_journal(query)
            if not view.ended and self.absence is None:
                await self._look_in_conversation(query)
        except (RequestTimeout, RecordUnreadable):
            pass  # whoever is away comes back; how long to wait for that is said below
        if not view.ended and self.absence is not None:
            raise NobodyAnswers(self.absence.reason, is_accepted=True)
        if not view.ended and self._clock() - query.heard_at >= timeouts.while_silent:
            raise GeneratorSilent(timeouts.while_silent)

    async def _look_in_conversation(self, query: LiveQuery) -> None:
        """Raises `RequestTimeout`, and `QueryIdTaken` if another query has that id."""
        try:
            known = await look_up(self._bus, "query", query.view.query_id, self._timeouts.last_look)
        except QueryRefused as error:
            if error.kind != "not_found":  # which is what a generator says that has not been given it yet
                query.heard_at = self._clock()  # it lives, and cannot read its record now, for want of room perhaps
            return
        query.heard_at = self._clock()
        query.view.require(known["query"], known.get("user_id"))

    async def _look_in_journal(self, query: LiveQuery) -> None:
        """Raises `QueryDeleted`, `RequestTimeout`, `RecordUnreadable`."""
        heard_at = query.heard_at
        for message, envelope in await read_query(self._bus, query.view.query_id, self._timeouts.last_look):
            query.receive(message, envelope)
        query.heard_at = heard_at  # what is on record is no sign of life

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
            query = self._queries.told(message, envelope)
            if query is None or envelope.user_id != query.view.user_id:
                continue  # of nobody here, or of another user's query that has the id already
            if kind is ResponseGeneration:
                failpoints.reach("api.answer_heard")
            query.receive(message, envelope)
