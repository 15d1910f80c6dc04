"""An exchange as batches of events, for whatever streams it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass

from local.apps.api.sse import ticking
from local.apps.exchange import Event, Exchange

Batches = AsyncGenerator[list[Event], None]


@dataclass(frozen=True, slots=True)
class Trail:
    """How long the judgements of an answer are waited for, and which of them; see `Judgements.kinds`."""

    seconds: float = 0.0
    awaited: frozenset[str] = frozenset()


NO_TRAIL = Trail()


async def batches(exchange: Exchange, after: int | None, *, tick_seconds: float, trail: Trail = NO_TRAIL) -> Batches:
    """The events after number `after` up to the end and its trail; those that are ready together are one batch.

    An empty batch every `tick_seconds` says that nothing has happened. The trail ends as soon as all that it waits for
    is there.
    """
    with exchange.watched() as changed, ticking(tick_seconds, changed.set):
        seen, clock = after, asyncio.get_running_loop().time
        while not exchange.has_nothing_after(seen):
            changed.clear()
            events = exchange.after(seen)
            seen = events[-1].number if events else seen
            yield events
            if not exchange.ended:
                await changed.wait()
        until = clock() + trail.seconds
        while exchange.lacks(trail.awaited) and clock() < until:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):  # never around a yield, which may end in another task
                    await changed.wait()
            changed.clear()
            if events := exchange.after(seen):
                seen = events[-1].number
                yield events
