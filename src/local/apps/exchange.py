"""One query as a door sees it: what has happened so far, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from pydantic_core import to_json

from local.apps.judgements import (
    CRITIQUE,
    FEEDBACK,
    MAIN_RESPONDENT,
    PAIRWISE,
    Judgement,
    Judgements,
    leaves_nothing_to_compare,
)
from local.errors import LocalError
from local.protocol.envelope import Envelope, Trace
from local.protocol.judgement_messages import CritiqueResult, PairwiseResult, UserFeedback
from local.protocol.memory_messages import RECALLED
from local.protocol.messages import (
    AgentTransition,
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
KEPT_LOG_LINES = 5_000

KINDS: dict[type[Message], str] = {
    QueryAccepted: "accepted",
    AgentTransition: "state",
    GenerationThinking: "thinking",
    GenerationToken: "token",
    ToolRequest: "tool_call",
    ToolResult: "tool_result",
    ResponseGeneration: "response",
    QueryFailed: "error",
    CritiqueResult: CRITIQUE,
    PairwiseResult: PAIRWISE,
    UserFeedback: FEEDBACK,
}


class QueryRefused(LocalError):
    """A query ended without an answer; `kind` and text are the generator's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def id_of_another(query_id: str) -> QueryRefused:
    """The refusal of a query under the id of one with another text."""
    return QueryRefused("conflict", f"query_id {query_id} was used for another query; take a new one")


class Event(NamedTuple):
    """Something that happened. `number` counts from 1 within the exchange, `t` is seconds since the query was sent."""

    number: int
    kind: str  # a value of KINDS, or "snapshot"
    t: float
    payload: bytes  # one line of JSON


@dataclass(slots=True)
class LogLine:
    """A subject on the exchange's log; `count` equal ones in a row are one line."""

    subject: str
    t: float
    count: int = 1


class Exchange:
    """Collects what belongs to one query; the events are those of the main respondent.

    An event of kind "snapshot" replaces what was said before it. It stands for events that are no longer kept, and for
    a turn that a restarted generator says again.
    """

    def __init__(self, query_id: str, session_id: str, query: str, clock: Callable[[], float]) -> None:
        self.query_id, self.session_id, self.query = query_id, session_id, query
        self.log: list[LogLine] = []
        self.judgements = Judgements()
        self.answer_trace: Trace | None = None  # for what follows from an answer, as soon as there is one
        self.answered_at = 0.0  # seconds since 1970, 0 until there is an answer
        self._clock, self._started = clock, clock()
        self.heard_at = self._started
        self._accepted = asyncio.Event()
        self._outcome: asyncio.Future[ResponseGeneration] = asyncio.get_running_loop().create_future()
        self._watchers: set[asyncio.Event] = set()
        self._events: list[Event] = []
        self._count = self._final = 0
        self._attempt = self._next_index = 0
        self._complete = self._closed = False
        self._texts: dict[str, list[str]] = {"thinking": [], "token": []}
        self._calls: dict[str, dict[str, Any]] = {}

    @property
    def ended(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._outcome.done()

    @property
    def refused(self) -> bool:
        """Whether it ended without an answer."""
        return self._outcome.done() and self._outcome.exception() is not None

    @property
    def response(self) -> ResponseGeneration | None:
        """The answer, if there is one."""
        return None if not self.ended or self.refused else self._outcome.result()

    @property
    def is_accepted(self) -> bool:
        """Whether it is on record, or has ended."""
        return self._accepted.is_set()

    async def accepted(self) -> None:
        """Wait until it is on record. Raises what `refuse` was given."""
        await self._accepted.wait()
        if self.refused:
            self._outcome.result()

    async def outcome(self) -> ResponseGeneration:
        """The answer, as soon as it is there. Raises what `refuse` was given."""
        return await asyncio.shield(self._outcome)

    async def ends_within(self, seconds: float) -> bool:
        """Wait for the end, but no longer than that; says whether it has come."""
        await asyncio.wait({self._outcome}, timeout=max(seconds, 0.0))
        return self.ended

    # What happens

    def accept(self) -> None:
        """It is on record: from now on it will be answered, whatever happens."""
        self._accepted.set()

    def note(self, subject: str) -> None:
        """Write a subject on the log."""
        if self.log and self.log[-1].subject == subject:
            self.log[-1].count += 1
        elif len(self.log) < KEPT_LOG_LINES:
            self.log.append(LogLine(subject, round(self._clock() - self._started, 6)))

    def receive(self, message: Message, envelope: Envelope) -> None:
        """Take in one message of this query."""
        self.heard_at = self._clock()
        if leaves_nothing_to_compare(message):
            self.judgements.rule_out(PAIRWISE)
            self._wake()
        if not self._is_news(message, envelope.id):
            return
        self.note(envelope.subject)
        self._begin_attempt(message)
        if isinstance(message, QueryAccepted):
            self._add("accepted", to_json({**message.model_dump(), "session_id": self.session_id}))
            self._accepted.set()
        elif isinstance(message, ResponseGeneration) and message.query != self.query:
            self.refuse(id_of_another(self.query_id))
        elif isinstance(message, ResponseGeneration):
            self.session_id = envelope.session_id or self.session_id
            self.answer_trace = envelope.trace() if message.status == "answered" else None
            self.answered_at = envelope.sent_at
            self._end("response", message.encode(), lambda: self._outcome.set_result(message))
        elif isinstance(message, QueryFailed):
            self.refuse(QueryRefused(message.error.kind, message.error.message))
        else:
            self._remember(message)
            self._add(KINDS[type(message)], message.encode())

    def refuse(self, error: LocalError) -> None:
        """No answer will come."""
        if not self.ended:
            payload = to_json({"query_id": self.query_id, "error": {"kind": error.kind, "message": str(error)}})
            self._end("error", payload, lambda: self._outcome.set_exception(error))
            self._outcome.exception()  # nobody has to ask for it

    def close(self) -> None:
        """Whoever still waits for judgements is to go: this door closes."""
        self._closed = True
        self._wake()

    # Following

    @contextmanager
    def watched(self) -> Iterator[asyncio.Event]:
        """An event that is set at each change for as long as the block lasts; whoever waits on it clears it."""
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            yield changed
        finally:
            self._watchers.discard(changed)

    def after(self, number: int | None) -> list[Event]:
        """The events after that number; if they are no longer kept, or for None, a snapshot and what it leaves out."""
        before_kept = self._count - len(self._events)
        if number is not None and before_kept <= number <= self._count:
            return self._events[number - before_kept :]
        at = self._final - 1 if self._final else self._count
        return [self._snapshot(at), *self._events[at - before_kept :]]

    def has_nothing_after(self, number: int | None) -> bool:
        """Whether it has ended and that number is its last."""
        return self.ended and number == self._count

    def lacks(self, judgements: Collection[str]) -> bool:
        """Whether it has an answer of the sort that is judged, and some of these judgements of it may yet come."""
        response = self.response
        is_judged = response is not None and response.status == "answered" and not response.incognito
        return is_judged and not self._closed and not self.judgements.settled.issuperset(judgements)

    def has_recalled(self, engram_id: str) -> bool:
        """Whether a tool's result is made of that engram."""
        calls = () if self.response is None else self.response.tool_calls
        sources = chain(*(call.sources for call in calls), *(call.get("sources", ()) for call in self._calls.values()))
        return RECALLED + engram_id in sources

    def said_so_far(self) -> dict[str, Any]:
        """What was thought, said and called; `complete` if this door is sure to have heard all of it."""
        return {
            "query_id": self.query_id,
            "session_id": self.session_id,
            "attempt": self._attempt,
            "complete": self._complete,
            "thinking": "".join(self._texts["thinking"]),
            "answer": "".join(self._texts["token"]),
            "tool_calls": list(self._calls.values()),
        }

    def _is_news(self, message: Message, envelope_id: str) -> bool:
        if isinstance(message, Judgement):
            return self.judgements.hear(message, envelope_id)
        if self.ended or getattr(message, "respondent_id", MAIN_RESPONDENT) != MAIN_RESPONDENT:
            return False
        if isinstance(message, QueryAccepted):
            return message.attempt > self._attempt
        return not isinstance(message, GenerationThinking) or message.attempt >= self._attempt

    def _begin_attempt(self, message: Message) -> None:
        """A restarted generator says what it was saying again, from the last step it had stored."""
        if not isinstance(message, QueryAccepted | GenerationThinking) or message.attempt <= self._attempt:
            return
        said = any(self._texts.values())
        self._attempt, self._next_index, self._complete = message.attempt, 0, False
        self._texts = {"thinking": [], "token": []}
        if said:
            self._add("snapshot", to_json(self.said_so_far()))

    def _remember(self, message: Message) -> None:
        match message:
            case AgentTransition(from_state="IDLE"):  # what a later attempt has from an earlier one is not said again
                self._complete = self._attempt == 1
            case GenerationThinking():
                self._complete = self._complete and message.index == self._next_index
                self._next_index = message.index + 1
                self._texts[KINDS[type(message)]].append(message.text)
            case ToolRequest():
                call = {"call_id": message.call_id, "tool": message.tool, "args": message.args}
                self._calls.setdefault(message.call_id, call)
            case ToolResult():
                settled = message.model_dump(mode="json", exclude={"query_id"})
                self._calls[message.call_id] = {**self._calls.get(message.call_id, {}), **settled}

    def _snapshot(self, number: int) -> Event:
        return Event(number, "snapshot", self._clock() - self._started, to_json(self.said_so_far()))

    def _end(self, kind: str, payload: bytes, settle: Callable[[], None]) -> None:
        settle()
        self._add(kind, payload)
        self._final = self._count
        self._accepted.set()

    def _add(self, kind: str, payload: bytes) -> None:
        self._count += 1
        self._events.append(Event(self._count, kind, self._clock() - self._started, payload))
        if len(self._events) >= 2 * KEPT_EVENTS:
            del self._events[:-KEPT_EVENTS]
        self._wake()

    def _wake(self) -> None:
        for changed in self._watchers:
            changed.set()
