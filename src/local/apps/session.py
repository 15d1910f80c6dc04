"""What every door uses to talk to the system: ask, follow, cancel, look up."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from local.apps.exchange import KINDS, Exchange, QueryRefused
from local.bus.bus import Bus
from local.bus.inbox import Inbox
from local.errors import LocalError, MalformedFrame, PublishTimeout
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.messages import (
    ConversationRequest,
    ConversationResult,
    Message,
    QueryCancel,
    QueryFailed,
    QueryReceived,
)

MAX_OPEN = 10_000
KEPT_ENDED = 128


class NotAccepted(LocalError):
    """No generator took a query in time, or the one that took it has fallen silent."""

    kind = "unavailable"


class DoorStopping(LocalError):
    """This door closes; queries that were accepted go on without it."""

    kind = "stopping"

    def __init__(self) -> None:
        super().__init__("this door is closing; an accepted query goes on: ask again with the same query_id")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: the first and the longest silence before a query is sent again, and when no more is hoped for."""

    first_resend: float = 0.5
    last_resend: float = 5.0
    until_accepted: float = 10.0
    while_silent: float = 60.0


class LoCALSession:
    """One door's hold on the bus. Make it before `bus.ready()`, since it subscribes to whatever belongs to queries, and
    use it as `async with`; leaving it stops asking, and what was accepted goes on without us.

    A query is sent again until a generator has accepted it, and again after each silence until it has ended: the
    generator knows it by its id, so that repeats cost nothing and a lost answer is told once more.
    """

    def __init__(
        self, bus: Bus, *, patience: Patience | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bus, self._patience, self._clock = bus, patience or Patience(), clock
        self._open: dict[str, Exchange] = {}
        self._ended: OrderedDict[str, Exchange] = OrderedDict()
        self._inbox = Inbox()
        self._askers: set[asyncio.Task[None]] = set()
        self._stopping = False
        for message in KINDS:
            bus.subscribe(message.subject, self._arrived)

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
        for exchange in list(self._open.values()):
            exchange.refuse(DoorStopping())

    def ask(
        self,
        query: str,
        *,
        query_id: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        history: Sequence[dict[str, Any]] | None = None,
    ) -> Exchange:
        """Begin a query, or join the one of that id. Without a session it is one of its own, under the query's id.

        Raises `QueryRefused` for the id of another query (conflict) or one too many (busy), and `DoorStopping`.
        """
        query_id = query_id or new_id()
        known = self.exchange(query_id)
        if known is not None and not known.refused:
            if known.query != query:
                raise QueryRefused("conflict", f"query_id {query_id} was used for another query; take a new one")
            return known
        if self._stopping:
            raise DoorStopping
        if len(self._open) >= MAX_OPEN:
            raise QueryRefused("busy", f"{MAX_OPEN} queries are open already; try again later")
        exchange = Exchange(query_id, session_id or query_id, query, self._clock)
        self._open[query_id] = exchange
        message = QueryReceived(query_id=query_id, query=query, history=None if history is None else tuple(history))
        trace = Trace(query_id, None, exchange.session_id, user_id)
        asker = asyncio.create_task(self._keep_asking(exchange, message, trace), name=f"ask {query_id}")
        self._askers.add(asker)
        asker.add_done_callback(self._askers.discard)
        return exchange

    def exchange(self, query_id: str) -> Exchange | None:
        """A query that this door knows: one that is open, or one of the last that ended."""
        return self._open.get(query_id) or self._ended.get(query_id)

    async def cancel(self, query_id: str) -> None:
        """Ask for the end of a query. Raises `PublishTimeout`."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    async def look_up(self, verb: str, key: str = "", seconds: float = 5.0) -> dict[str, Any]:
        """Ask for the generator's record. Raises `RequestTimeout`, and `QueryRefused` with the generator's reason."""
        request = ConversationRequest.model_validate({"verb": verb, "key": key})
        result = await self._bus.request(request, ConversationResult, seconds)
        if result.error is not None:
            raise QueryRefused(result.error.kind, result.error.message)
        return result.value or {}

    async def _keep_asking(self, exchange: Exchange, message: QueryReceived, trace: Trace) -> None:
        try:
            exchange.note(message.subject)
            envelope = await self._bus.publish(message, trace, envelope_id=exchange.envelope_id)
            await self._repeat_until_ended(exchange, envelope)
        except LocalError as error:
            exchange.refuse(error)
        finally:
            self._file(exchange)

    async def _repeat_until_ended(self, exchange: Exchange, envelope: Envelope) -> None:
        began_at = sent_at = self._clock()
        pause = self._patience.first_resend
        while not await exchange.ends_within(max(exchange.heard_at, sent_at) + pause - self._clock()):
            now = self._clock()
            self._check_patience(exchange, now, began_at)
            if now < max(exchange.heard_at, sent_at) + pause:
                continue  # something was heard meanwhile
            pause, sent_at = min(pause * 2, self._patience.last_resend), now
            try:
                await self._bus.send(envelope)
            except PublishTimeout:
                continue  # the bus may come back; how long to wait for that is `_check_patience`'s to say

    def _check_patience(self, exchange: Exchange, now: float, began_at: float) -> None:
        patience = self._patience
        if not exchange.is_accepted and now - began_at >= patience.until_accepted:
            raise NotAccepted(f"no generator accepted the query within {patience.until_accepted:g} s")
        if now - exchange.heard_at >= max(patience.while_silent, patience.until_accepted):
            text = "the query is stored and goes on when it is back: ask again with the same query_id"
            raise NotAccepted(f"nothing was heard of the generator for {patience.while_silent:g} s; {text}")

    def _file(self, exchange: Exchange) -> None:
        if self._open.get(exchange.query_id) is exchange:  # one that was refused may have been asked again already
            del self._open[exchange.query_id]
            self._ended[exchange.query_id] = exchange
            self._ended.move_to_end(exchange.query_id)
            while len(self._ended) > KEPT_ENDED:
                self._ended.popitem(last=False)

    def _arrived(self, envelope: Envelope) -> None:
        if self.exchange(envelope.correlation_id) is not None and not self._inbox.offer(envelope):
            self._bus.overflowed(envelope)

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
            if not _is_for_another(message, envelope, exchange):
                exchange.receive(message, envelope)


def _kind_of(subject: str) -> type[Message]:
    return next(
        kind for kind in KINDS if subject == kind.subject or (kind.family_key and subject.startswith(kind.subject))
    )


def _is_for_another(message: Message, envelope: Envelope, exchange: Exchange) -> bool:
    """Somebody else used our query's id for another query, and is told so."""
    conflict = isinstance(message, QueryFailed) and message.error.kind == "conflict"
    return conflict and envelope.cause_id != exchange.envelope_id
