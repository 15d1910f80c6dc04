"""What every door uses to talk to the system: ask, follow, cancel, look up."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from local.apps.exchange import Exchange, QueryRefused
from local.bus.bus import Bus
from local.bus.inbox import Inbox
from local.errors import LocalError, MalformedFrame
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.messages import (
    AgentTransition,
    AnswerDialog,
    ConversationRequest,
    ConversationResult,
    CritiqueResult,
    GenerationThinking,
    GenerationToken,
    Message,
    QueryAccepted,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)

ACCEPT_SECONDS = 10.0
FIRST_RESEND_SECONDS = 0.5
LAST_RESEND_SECONDS = 5.0
KEPT_EXCHANGES = 1_000

OBSERVED: tuple[type[Message], ...] = (
    QueryAccepted,
    QueryFailed,
    AgentTransition,
    GenerationThinking,
    GenerationToken,
    ToolRequest,
    ToolResult,
    ResponseGeneration,
    AnswerDialog,
    CritiqueResult,
)


class NotAccepted(LocalError):
    """No generator took a query in time."""

    kind = "unavailable"


class LoCALSession:
    """One door's hold on the bus. Make it before `bus.ready()`, since it subscribes to whatever belongs to queries, and
    use it as `async with`; leaving it stops asking, and what was accepted goes on without us.

    A query is sent again until a generator has accepted it, and again after each silence until it has ended: the
    generator knows it by its id, so that repeats cost nothing and a lost answer is told once more.
    """

    def __init__(self, bus: Bus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._bus, self._clock = bus, clock
        self._exchanges: OrderedDict[str, Exchange] = OrderedDict()
        self._inbox = Inbox()
        self._askers: set[asyncio.Task[None]] = set()
        for message in OBSERVED:
            bus.subscribe(message.subject, self._arrived)

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read(), name="session")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = {self._reader, *self._askers}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    def ask(
        self,
        query: str,
        *,
        query_id: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        history: Sequence[dict[str, Any]] | None = None,
    ) -> Exchange:
        """Begin a query, or join the one of that id. Raises `QueryRefused` (conflict) for the id of another query."""
        query_id = query_id or new_id()
        known = self._exchanges.get(query_id)
        if known is not None and not known.refused:
            if known.query != query:
                raise QueryRefused("conflict", f"query_id {query_id} was used for another query; take a new one")
            return known
        exchange = Exchange(query_id, session_id or new_id(), query, self._clock)
        self._exchanges[query_id] = exchange
        while len(self._exchanges) > KEPT_EXCHANGES:
            self._forget_oldest()
        message = QueryReceived(query_id=query_id, query=query, history=None if history is None else tuple(history))
        trace = Trace(query_id, None, exchange.session_id, user_id)
        asker = asyncio.create_task(self._keep_asking(exchange, message, trace), name=f"ask {query_id}")
        self._askers.add(asker)
        asker.add_done_callback(self._askers.discard)
        return exchange

    def exchange(self, query_id: str) -> Exchange | None:
        """A query that this door knows."""
        return self._exchanges.get(query_id)

    async def cancel(self, query_id: str) -> None:
        """Ask for the end of a query."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    async def look_up(self, verb: str, key: str = "", seconds: float = 5.0) -> ConversationResult:
        """Ask the generator's record. Raises `RequestTimeout`."""
        request = ConversationRequest.model_validate({"verb": verb, "key": key})
        return await self._bus.request(request, ConversationResult, seconds)

    async def _keep_asking(self, exchange: Exchange, message: QueryReceived, trace: Trace) -> None:
        envelope: Envelope | None = None
        pause = FIRST_RESEND_SECONDS
        give_up_at = self._clock() + ACCEPT_SECONDS
        try:
            while not exchange.ended:
                if envelope is None:
                    exchange.sent(message.subject)
                    envelope = await self._bus.publish(message, trace, envelope_id=exchange.envelope_id)
                else:
                    await self._bus.send(envelope)
                await exchange.silence(pause)
                pause = min(pause * 2, LAST_RESEND_SECONDS)
                if not exchange.accepted.is_set() and self._clock() > give_up_at:
                    raise NotAccepted(f"no generator accepted the query within {ACCEPT_SECONDS:g} s")
        except LocalError as error:
            exchange.refuse(error)

    def _arrived(self, envelope: Envelope) -> None:
        if envelope.correlation_id in self._exchanges and not self._inbox.offer(envelope):
            self._bus.overflowed(envelope)

    async def _read(self) -> None:
        async for envelope in self._inbox:
            exchange = self._exchanges.get(envelope.correlation_id)
            if exchange is None:
                continue
            try:
                message = await self._bus.decode(_kind_of(envelope.subject), envelope)
                if not _is_for_another(message, envelope, exchange):
                    exchange.receive(message, envelope.subject)
            except MalformedFrame as error:
                self._bus.reject(str(error), envelope.payload)

    def _forget_oldest(self) -> None:
        query_id = next((key for key, exchange in self._exchanges.items() if exchange.ended), None)
        self._exchanges.pop(query_id if query_id is not None else next(iter(self._exchanges)))


def _kind_of(subject: str) -> type[Message]:
    return next(
        kind for kind in OBSERVED if subject == kind.subject or (kind.family_key and subject.startswith(kind.subject))
    )


def _is_for_another(message: Message, envelope: Envelope, exchange: Exchange) -> bool:
    """Somebody else used our query's id for another query, and is told so."""
    conflict = isinstance(message, QueryFailed) and message.error.kind == "conflict"
    return conflict and envelope.cause_id != exchange.envelope_id
