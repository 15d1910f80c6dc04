"""One query as a door sees it: what has happened so far, and how it ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from local.errors import LocalError
from local.protocol.envelope import new_id
from local.protocol.messages import (
    AgentTransition,
    CritiqueResult,
    GenerationThinking,
    GenerationToken,
    Message,
    QueryAccepted,
    QueryFailed,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)

KEPT_EVENTS = 5_000

KINDS: dict[type[Message], str] = {
    QueryAccepted: "accepted",
    AgentTransition: "state",
    GenerationThinking: "thinking",
    GenerationToken: "token",
    ToolRequest: "tool_call",
    ToolResult: "tool_result",
    ResponseGeneration: "response",
    QueryFailed: "error",
    CritiqueResult: "critique",
}


class QueryRefused(LocalError):
    """A query ended without an answer; `kind` and text are the generator's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `number` counts from 1 within the exchange, `t` is seconds since the query was sent."""

    number: int
    kind: str  # a value of KINDS, or "snapshot"
    t: float
    data: dict[str, Any]


@dataclass(slots=True)
class LogLine:
    """A subject on the exchange's log; `count` equal ones in a row are one line."""

    subject: str
    t: float
    count: int = 1


class Exchange:
    """Collects what belongs to one query. Followers get every event; one that fell far behind gets a snapshot."""

    def __init__(self, query_id: str, session_id: str, query: str, clock: Callable[[], float]) -> None:
        self.query_id, self.session_id, self.query = query_id, session_id, query
        self.envelope_id = new_id()  # of our query.received
        self.log: list[LogLine] = []
        self.accepted = asyncio.Event()
        self.last_heard = clock()
        self._clock, self._started = clock, clock()
        self._events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._count = 0
        self._changed = asyncio.Event()
        self._attempt = 0
        self._texts: dict[str, list[str]] = {"thinking": [], "token": []}
        self._calls: dict[str, dict[str, Any]] = {}
        self._outcome: asyncio.Future[ResponseGeneration] = asyncio.get_running_loop().create_future()

    @property
    def ended(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._outcome.done()

    @property
    def refused(self) -> bool:
        """Whether it ended without an answer."""
        return self._outcome.done() and self._outcome.exception() is not None

    async def silence(self, seconds: float) -> None:
        """Wait until nothing has been heard for that long, or the exchange has ended."""
        while not self.ended and (rest := self.last_heard + seconds - self._clock()) > 0:
            await asyncio.wait({self._outcome}, timeout=rest)

    def sent(self, subject: str) -> None:
        """Note what we published ourselves."""
        self.last_heard = self._clock()
        self._note(subject)

    def receive(self, message: Message, subject: str) -> None:
        """Take in one message of this query."""
        if self.ended and not isinstance(message, CritiqueResult):
            return
        self.last_heard = self._clock()
        self._note(subject)
        self._remember(message)
        kind = KINDS.get(type(message))
        if kind is not None:
            self._count += 1
            self._events.append(
                Event(self._count, kind, self.last_heard - self._started, message.model_dump(mode="json"))
            )
        if isinstance(message, ResponseGeneration):
            self._outcome.set_result(message)
        elif isinstance(message, QueryFailed):
            self.refuse(QueryRefused(message.error.kind, message.error.message))
        self._wake()

    def refuse(self, error: LocalError) -> None:
        """No answer will come."""
        self.accepted.set()
        if not self._outcome.done():
            self._outcome.set_exception(error)
            self._outcome.exception()  # nobody has to ask for it
            self._wake()

    async def outcome(self) -> ResponseGeneration:
        """The answer, as soon as it is there. Raises what `refuse` was given."""
        return await asyncio.shield(self._outcome)

    async def follow(self, after: int | None = 0) -> AsyncIterator[Event]:
        """Every event after number `after`, without end; a snapshot first if those are no longer kept (or `after` is
        None). The caller decides when it has seen enough."""
        seen = after
        while True:
            if seen is None or seen > self._count or (self._events and seen < self._events[0].number - 1):
                seen = self._count
                yield self.snapshot()
            for event in [event for event in self._events if event.number > seen]:
                seen = event.number
                yield event
            if seen == self._count:
                await self._changed.wait()

    def snapshot(self) -> Event:
        """What was said so far, as one event."""
        data = {
            "query_id": self.query_id,
            "thinking": "".join(self._texts["thinking"]),
            "answer": "".join(self._texts["token"]),
            "tool_calls": list(self._calls.values()),
        }
        return Event(self._count, "snapshot", self._clock() - self._started, data)

    def _remember(self, message: Message) -> None:
        match message:
            case GenerationThinking():
                if message.attempt > self._attempt:  # a restarted generator says it again
                    self._attempt = message.attempt
                    self._texts = {"thinking": [], "token": []}
                self._texts[KINDS[type(message)]].append(message.text)
            case ToolRequest():
                self._calls[message.call_id] = {"call_id": message.call_id, "tool": message.tool, "args": message.args}
            case ToolResult():
                settled = message.model_dump(mode="json", exclude={"query_id"})
                self._calls[message.call_id] = {**self._calls.get(message.call_id, {}), **settled}
            case QueryAccepted():
                self.accepted.set()

    def _note(self, subject: str) -> None:
        if self.log and self.log[-1].subject == subject:
            self.log[-1].count += 1
        else:
            self.log.append(LogLine(subject, round(self._clock() - self._started, 6)))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
