"""An exchange as batches of events, for whatever streams it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass

from local.apps.api.sse import ticking
from local.apps.exchange import Event, Exchange

Batches = AsyncGenerator[list[Event], None]


@dataclass(frozen=True, slots=True)
class Trail:
    """For how many seconds after an answer was given its judgements are waited for at most, and which are `awaited()`
    at this moment; see `Judgements.settled`. `clock` gives seconds since 1970."""

    seconds: float
    awaited: Callable[[], frozenset[str]]
    clock: Callable[[], float] = time.time

    def seconds_left(self, exchange: Exchange) -> float:
        """How long there may yet be something to wait for; none or less if there is not."""
        if not exchange.lacks(self.awaited()):
            return 0.0
        return min(exchange.answered_at + self.seconds - self.clock(), self.seconds)


NO_TRAIL = Trail(0.0, frozenset)


async def batches(exchange: Exchange, after: int | None, *, tick_seconds: float, trail: Trail = NO_TRAIL) -> Batches:
    """The events after number `after` up to the end and its trail; those that are ready together are one batch.

    An empty batch every `tick_seconds` says that nothing has happened. The trail ends as soon as nothing is awaited any
    more, which is looked at as often.
    """
    with exchange.watched() as changed, ticking(tick_seconds, changed.set):
        seen = after
        while True:
            changed.clear()
            events = exchange.after(seen)
            seen = events[-1].number if events else seen
            yield events
            left = trail.seconds_left(exchange) if exchange.ended else None
            if left is not None and left <= 0 and exchange.has_nothing_after(seen):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left):  # never around a yield, which may end in another task
                    await changed.wait()
