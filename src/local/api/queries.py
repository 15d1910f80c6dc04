"""Finds queries for their followers: in this process, or else in the record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from pydantic_core import to_json

from local.api.clients import BusRequests, ParticipantAway, ParticipantRefused
from local.api.http import KEEP_ALIVE, Chunks, sse, ticking
from local.api.participants import ParticipantTable
from local.api.security import Principal
from local.bus.envelope import Envelope
from local.permissions.messages import PermissionRequest, PermissionResult
from local.queries.asker import LiveQuery
from local.queries.errors import QueryDeleted
from local.queries.session import LoCALSession
from local.queries.view import CRITIQUE, PAIRWISE, QueryEvent, QueryView

# One query as server-sent events.

Batches = AsyncGenerator[list[QueryEvent], None]


@dataclass(frozen=True, slots=True)
class JudgementWindow:
    """The time after an answer in which its judgements are waited for: at most `seconds`, and only those that are
    `awaited()` at this moment; see `Judgements.settled`. `clock` returns seconds since 1970.
    """

    seconds: float
    awaited: Callable[[], frozenset[str]]
    clock: Callable[[], float] = time.time

    def seconds_left(self, query: LiveQuery) -> float:
        """Return how long an event may still come; zero or less if none will."""
        if not query.lacks(self.awaited()):
            return 0.0
        return min(query.view.answered_at + self.seconds - self.clock(), self.seconds)


NO_TRAIL = JudgementWindow(0.0, frozenset)


async def batches(
    query: LiveQuery, after: int | None, *, tick_seconds: float, trail: JudgementWindow = NO_TRAIL
) -> Batches:
    """Yield the events after number `after` up to the end and its trail; those that are ready together are one batch.

    An empty batch every `tick_seconds` means that nothing has happened. The trail ends as soon as nothing is awaited,
    which is checked as often.
    """
    with query.watched() as changed, ticking(tick_seconds, changed.set):
        seen = after
        while True:
            changed.clear()
            events = query.events.after(seen)
            seen = events[-1].number if events else seen
            yield events
            left = trail.seconds_left(query) if query.view.ended else None
            if left is not None and left <= 0 and query.has_nothing_after(seen):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left):  # never around a yield, which may end in another task
                    await changed.wait()


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of a query's event stream. `instance` begins every event's id; `keep_alive_seconds` is the time
    between two comments."""

    instance: str
    trail: JudgementWindow
    keep_alive_seconds: float


def number_after(last_event_id: str | None, instance: str) -> int | None:
    """The last event that a client has seen: 0 for none yet, None if the id is not one of this process."""
    if not last_event_id:
        return 0
    of, _, number = last_event_id.rpartition("-")
    return int(number) if of == instance and number.isascii() and number.isdecimal() and len(number) < 16 else None


async def query_chunks(query: LiveQuery, after: int | None, settings: StreamSettings) -> Chunks:
    """The events after number `after` up to the answer and its trail."""
    followed = batches(query, after, tick_seconds=settings.keep_alive_seconds, trail=settings.trail)
    async with aclosing(followed):
        async for events in followed:
            yield b"".join([_event(event, query, settings.instance) for event in events]) or KEEP_ALIVE


def payload_of(event: QueryEvent, query: LiveQuery) -> bytes:
    """Return an event for followers: one line of JSON; of the answer with its ratings so far."""
    return to_json(query.view.as_json(), by_alias=True) if event.kind == "response" else event.payload


def _event(event: QueryEvent, query: LiveQuery, instance: str) -> bytes:
    return sse(event.kind, payload_of(event, query), f"{instance}-{event.number}")


CRITIC, SECOND_RESPONDENT, GATEKEEPER = "critic", "generator_b", "gatekeeper"


class QueryFinder:
    """The queries for routes: known to this process, or recorded. `trail_seconds` is how long judgements of an answer
    are waited for; `clock` returns seconds.
    """

    def __init__(
        self,
        session: LoCALSession,
        requests: BusRequests,
        participants: ParticipantTable,
        trail_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._session, self._requests = session, requests
        self._participants, self._clock = participants, clock
        self.trail = JudgementWindow(trail_seconds, self._awaited)

    async def find(self, query_id: str, caller: Principal) -> tuple[LiveQuery | None, QueryView]:
        """Return a query as it is known here, or else as recorded, without a `LiveQuery`. Raises as `Asker.recall`, and
        `RequestRefused` (not_found) for one of another user.
        """
        live = self._session.live(query_id)
        try:
            is_known = live is not None and live.view.failure is None
            live, view = (live, live.view) if live and is_known else (None, await self._session.recall(query_id))
        except QueryDeleted as error:
            caller.require(error.user_id, f"query {query_id}")
            raise
        caller.require(view.user_id, f"query {query_id}")
        return live, view

    async def follow(self, query_id: str, caller: Principal) -> LiveQuery:
        """A query that is on record, to be followed until it ends. Raises as `find` does."""
        query, view = await self.find(query_id, caller)
        if query is not None:
            return query
        query = self._session.ask(
            view.query or "",
            query_id=query_id,
            session_id=view.session_id,
            user_id=view.user_id,
            is_on_record=True,
        )
        await query.accepted()
        await self._session.recall_judgements(query)
        if not query.view.ended:
            await self._recall_approvals(query)
        return query

    async def _recall_approvals(self, query: LiveQuery) -> None:
        """Add the approvals that a query waits for, asked before it was followed here; none without a gatekeeper."""
        request = PermissionRequest(verb="list", of_user=query.view.user_id)
        with suppress(ParticipantAway, ParticipantRefused):
            for asked in (await self._requests.ask(GATEKEEPER, request, PermissionResult)).waiting:
                if query.query_id in (asked.query_id, asked.root_query_id):
                    query.receive(asked, Envelope(asked.subject, "", "", "", 1, asked.query_id, b""))

    def _awaited(self) -> frozenset[str]:
        """Return the judgements of an answer that are still expected, by the participants that exist now."""
        table, now = self._participants, self._clock()
        if not table.is_expected(CRITIC, now):
            return frozenset()
        judges = table.details(CRITIC, now).get("judges", f"{CRITIQUE}, {PAIRWISE}")
        possible = (CRITIQUE, PAIRWISE) if table.is_expected(SECOND_RESPONDENT, now) else (CRITIQUE,)
        return frozenset(kind for kind in possible if kind in judges)
