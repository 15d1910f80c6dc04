"""What every door uses to talk to the system: ask, follow, cancel, look up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from local import failpoints
from local.apps.door_errors import DoorStopping, GeneratorSilent, NotAccepted
from local.apps.exchange import KINDS, Exchange, QueryRefused, id_of_another
from local.apps.exchanges import Exchanges
from local.apps.judgements import MAIN_RESPONDENT, Judgements
from local.apps.rating import trace_of_answer
from local.apps.record import query_envelope_id, read_judgements, read_query
from local.bus.bus import Bus
from local.bus.inbox import Inbox
from local.errors import LocalError, MalformedFrame, NotConfirmed, RecordUnreadable, RequestTimeout
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.judgement_messages import UserFeedback
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.messages import (
    ConversationRequest,
    ConversationResult,
    Message,
    QueryCancel,
    QueryReceived,
    ResponseGeneration,
    SessionDeleted,
)

MAX_OPEN = 10_000
DELETE_SECONDS = 15.0  # longer than the generator waits for the journal, so that its reason is heard


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: the first and the longest silence before the record is looked at, and when no more is hoped for."""

    first_look: float = 0.5
    last_look: float = 5.0
    until_accepted: float = 10.0
    while_silent: float = 60.0


class LoCALSession:
    """One door's hold on the bus. Make it before `bus.ready()`, since it subscribes to whatever belongs to queries, and
    use it as `async with`; leaving it stops asking, and what was accepted goes on without us.

    A query is accepted when it is on record. An answer that was lost on its way to this door, or was given before it
    asked, is found on record, too.
    """

    def __init__(
        self, bus: Bus, *, patience: Patience | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bus, self._patience, self._clock = bus, patience or Patience(), clock
        self._exchanges = Exchanges()
        self._inbox = Inbox()
        self._askers: set[asyncio.Task[None]] = set()
        self._stopping = False
        for message in KINDS:
            bus.subscribe(message.subject, self._arrived)
        bus.subscribe(SessionDeleted.subject, self._session_deleted)
        bus.subscribe(MemoryDeleted.subject, self._memory_deleted)

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read(), name="session")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        tasks = {self._reader, *self._askers}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    def stop(self) -> None:
        """Tell everybody who waits here that this door is closing, and ask nothing more."""
        self._stopping = True
        for exchange in self._exchanges.known:
            exchange.refuse(DoorStopping())
            exchange.close()

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
    ) -> Exchange:
        """Begin a query, or join the one of that id. Without a session it is one of its own, under the query's id.

        Raises `QueryRefused` for the id of another query (conflict) or one too many (busy), and `DoorStopping`.
        """
        may_be_known, query_id = query_id is not None, query_id or new_id()
        known = self.exchange(query_id)
        if known is not None and not known.refused:
            if known.query != query:
                raise id_of_another(query_id)
            return known
        if self._stopping:
            raise DoorStopping
        if len(self._exchanges.open) >= MAX_OPEN:
            raise QueryRefused("busy", f"{MAX_OPEN} queries are open already; try again later")
        exchange = Exchange(query_id, session_id or query_id, query, self._clock)
        self._exchanges.add(exchange)
        message = QueryReceived(
            query_id=query_id,
            query=query,
            attachments=tuple(attachments),
            incognito=incognito,
            history=None if history is None else tuple(history),
        )
        trace = Trace(query_id, None, exchange.session_id, user_id)
        asking = self._see_through(exchange, message, trace, may_be_known=may_be_known)
        asker = asyncio.create_task(asking, name=f"ask {query_id}")
        self._askers.add(asker)
        asker.add_done_callback(self._askers.discard)
        return exchange

    def exchange(self, query_id: str) -> Exchange | None:
        """A query that this door knows: one that is open, or one of the last that ended."""
        return self._exchanges.get(query_id)

    async def cancel(self, query_id: str) -> None:
        """Ask for the end of a query, on record. Raises `NotConfirmed`."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    async def look_up(self, verb: str, key: str = "", seconds: float = 5.0) -> dict[str, Any]:
        """Ask for the generator's record. Raises `RequestTimeout`, and `QueryRefused` with the generator's reason."""
        request = ConversationRequest.model_validate({"verb": verb, "key": key})
        result = await self._bus.request(request, ConversationResult, seconds)
        if result.error is not None:
            raise QueryRefused(result.error.kind, result.error.message)
        return result.value or {}

    async def delete(self, session_id: str) -> dict[str, Any]:
        """Remove a session for good, here as well. Raises as `look_up` does; then ask again: it may be half done."""
        deleted = await self.look_up("delete", session_id, DELETE_SECONDS)
        self._exchanges.forget(lambda exchange: exchange.session_id == session_id)
        return deleted

    def forget(self, engram_id: str, query_id: str) -> None:
        """A memory was deleted: keep nothing of its query here, nor what others have recalled of it."""
        self._exchanges.forget(lambda exchange: exchange.query_id == query_id or exchange.has_recalled(engram_id))

    async def rate(
        self, query_id: str, rating: Literal[-1, 1] | None, comment: str = "", respondent_id: str = MAIN_RESPONDENT
    ) -> None:
        """Put a user's word on an answer on record, or with None take it back.

        Raises as `trace_of_answer` and `Bus.publish` do.
        """
        trace = await self._trace_of_answer(query_id, respondent_id)
        feedback = UserFeedback(
            query_id=query_id, respondent_id=respondent_id, rating=rating, comment=comment, rated_at=time.time()
        )
        await self._bus.publish(feedback, trace)

    async def judgements(self, query_id: str, seconds: float = 1.0) -> Judgements:
        """What was said of a query's answer, as this door and the journal know it; the door alone if that is away."""
        exchange = self.exchange(query_id)
        known = Judgements() if exchange is None else exchange.judgements
        with suppress(RequestTimeout, RecordUnreadable):
            for message, envelope in await read_judgements(self._bus, query_id, seconds):
                if exchange is not None:
                    exchange.receive(message, envelope)
                else:
                    known.hear(message, envelope.id)
        return known

    async def recall(self, query_id: str, seconds: float = 5.0) -> dict[str, Any]:
        """A query as the journal has it on record, or, where that is away or has it no more, the generator.

        Raises `QueryRefused` for one that nobody knows, `QueryDeleted` and `RequestTimeout`.
        """
        try:
            recorded = await read_query(self._bus, query_id, seconds)
        except (RequestTimeout, RecordUnreadable):
            recorded = None
        return recorded.as_json() if recorded is not None else await self.look_up("query", query_id, seconds)

    async def _trace_of_answer(self, query_id: str, respondent_id: str) -> Trace:
        """For what follows from an answer; one that this door has given may be on its way to the record yet."""
        exchange = self.exchange(query_id)
        if respondent_id == MAIN_RESPONDENT and exchange is not None and exchange.answer_trace is not None:
            return exchange.answer_trace
        return await trace_of_answer(self._bus, query_id, respondent_id, self._patience.last_look)

    async def _see_through(
        self, exchange: Exchange, message: QueryReceived, trace: Trace, *, may_be_known: bool
    ) -> None:
        query_id, limit = exchange.query_id, self._patience.until_accepted
        try:
            failpoints.reach("api.before_publish")
            exchange.note(message.subject)
            await self._bus.publish(message, trace, envelope_id=query_envelope_id(query_id), seconds=limit)
            failpoints.reach("api.query_committed")
            if may_be_known:
                await self._look_in_journal(exchange)
            exchange.accept()
            await self._look_until_ended(exchange)
        except NotConfirmed:
            exchange.refuse(NotAccepted(limit))
        except LocalError as error:
            exchange.refuse(error)
        finally:
            self._exchanges.put_away(exchange)

    async def _look_until_ended(self, exchange: Exchange) -> None:
        looked_at, pause = self._clock(), self._patience.first_look
        while not await exchange.ends_within(max(exchange.heard_at, looked_at) + pause - self._clock()):
            if self._clock() < max(exchange.heard_at, looked_at) + pause:
                continue  # something was heard meanwhile
            pause = min(pause * 2, self._patience.last_look)
            await self._look(exchange)
            looked_at = self._clock()

    async def _look(self, exchange: Exchange) -> None:
        """See what is on record of a query. Raises as `_look_in_journal`, and `GeneratorSilent`."""
        patience = self._patience
        try:
            await self._look_in_journal(exchange)
            if not exchange.ended:
                known = await self.look_up("query", exchange.query_id, patience.last_look)
                exchange.heard_at = self._clock()
                if known["query"] != exchange.query:
                    raise id_of_another(exchange.query_id)
        except (RequestTimeout, RecordUnreadable):
            pass  # whoever is away comes back; how long to wait for that is said below
        except QueryRefused as error:
            if error.kind != "not_found":  # which is what a generator says that has not been given it yet
                raise
        if not exchange.ended and self._clock() - exchange.heard_at >= patience.while_silent:
            raise GeneratorSilent(patience.while_silent)

    async def _look_in_journal(self, exchange: Exchange) -> None:
        """Raises `QueryRefused` for the id of another query, `QueryDeleted`, `RequestTimeout`, `RecordUnreadable`."""
        recorded = await read_query(self._bus, exchange.query_id, self._patience.last_look)
        if recorded is None:
            return
        if recorded.asked.query != exchange.query:
            raise id_of_another(exchange.query_id)
        exchange.session_id = recorded.envelope.session_id or exchange.session_id
        if recorded.outcome is not None and recorded.outcome_envelope is not None:
            exchange.receive(recorded.outcome, recorded.outcome_envelope)

    def _arrived(self, envelope: Envelope) -> None:
        if self.exchange(envelope.correlation_id) is not None and not self._inbox.offer(envelope):
            self._bus.overflowed(envelope)

    def _session_deleted(self, envelope: Envelope) -> None:
        session_id = SessionDeleted.decode(envelope.payload).deleted_session_id
        self._exchanges.forget(lambda exchange: exchange.session_id == session_id)

    def _memory_deleted(self, envelope: Envelope) -> None:
        deleted = MemoryDeleted.decode(envelope.payload)
        self.forget(deleted.engram_id, deleted.query_id)

    async def _read(self) -> None:
        async for envelope in self._inbox:
            exchange = self.exchange(envelope.correlation_id)
            if exchange is None:
                continue
            try:
                message = await self._bus.decode(_kind_of(envelope.subject), envelope)
            except MalformedFrame as error:
                self._bus.reject(str(error), envelope.payload)
                continue
            if isinstance(message, ResponseGeneration):
                failpoints.reach("api.answer_heard")
            exchange.receive(message, envelope)


def _kind_of(subject: str) -> type[Message]:
    return next(
        kind for kind in KINDS if subject == kind.subject or (kind.family_key and subject.startswith(kind.subject))
    )
