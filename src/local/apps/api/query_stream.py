"""One query as server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from pydantic_core import to_json

from local.apps.api.event_stream import KEEP_ALIVE, Chunks, sse, ticking
from local.queries.live_query import LiveQuery
from local.queries.query_events import QueryEvent

Batches = AsyncGenerator[list[QueryEvent], None]


@dataclass(frozen=True, slots=True)
class Trail:
    """For how many seconds after an answer was given its judgements are waited for at most, and which are `awaited()`
    at this moment; see `Judgements.settled`. `clock` gives seconds since 1970."""

    seconds: float
    awaited: Callable[[], frozenset[str]]
    clock: Callable[[], float] = time.time

    def seconds_left(self, query: LiveQuery) -> float:
        """How long there may yet be something to wait for; none or less if there is not."""
        if not query.lacks(self.awaited()):
            return 0.0
        return min(query.view.answered_at + self.seconds - self.clock(), self.seconds)


NO_TRAIL = Trail(0.0, frozenset)


async def batches(query: LiveQuery, after: int | None, *, tick_seconds: float, trail: Trail = NO_TRAIL) -> Batches:
    """The events after number `after` up to the end and its trail; those that are ready together are one batch.

    An empty batch every `tick_seconds` says that nothing has happened. The trail ends as soon as nothing is awaited any
    more, which is looked at as often.
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
    """`instance` begins every event's id; `keep_alive_seconds` is how often a comment is sent."""

    instance: str
    trail: Trail
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
    """What followers are told by an event: one line of JSON; of the answer with what was said of it so far."""
    return to_json(query.view.as_json(), by_alias=True) if event.kind == "response" else event.payload


def _event(event: QueryEvent, query: LiveQuery, instance: str) -> bytes:
    return sse(event.kind, payload_of(event, query), f"{instance}-{event.number}")
