"""An exchange as batches of events, for whatever streams it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from local.apps.api.sse import ticking
from local.apps.exchange import Event, Exchange

Batches = AsyncGenerator[list[Event], None]


async def batches(exchange: Exchange, after: int | None, *, tick_seconds: float, trail_seconds: float = 0.0) -> Batches:
    """The events after number `after` up to the end and its trail; those that are ready together are one batch.

    An empty batch every `tick_seconds` says that nothing has happened. After an answer the next event, a critique, is
    waited for `trail_seconds`.
    """
    with exchange.watched() as changed, ticking(tick_seconds, changed.set):
        seen = after
        while not exchange.has_nothing_after(seen):
            changed.clear()
            events = exchange.after(seen)
            seen = events[-1].number if events else seen
            yield events
            if not exchange.ended:
                await changed.wait()
        if exchange.response is None:
            return
        try:
            async with asyncio.timeout(trail_seconds):
                while exchange.has_nothing_after(seen):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return
        yield exchange.after(seen)
