"""Server-sent events: how they are written and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from local.apps.api.streamed import Chunks, Streamed

KEEP_ALIVE = b": keep-alive\n\n"


def sse(event: str, data: bytes, number: str = "") -> bytes:
    """One event. `data` is one line."""
    id_line = f"id: {number}\n" if number else ""
    return b"%sevent: %s\ndata: %s\n\n" % (id_line.encode(), event.encode(), data)


@contextmanager
def ticking(seconds: float, tick: Callable[[], object]) -> Iterator[None]:
    """Call `tick` every so many seconds for as long as the block lasts."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def go_on() -> None:
        nonlocal timer
        tick()
        timer = loop.call_later(seconds, go_on)

    timer = loop.call_later(seconds, go_on)
    try:
        yield
    finally:
        timer.cancel()


class EventStream(Streamed):
    """Chunks of whole events."""

    media_type = "text/event-stream"

    def __init__(self, chunks: Chunks) -> None:
        super().__init__(chunks, {"cache-control": "no-store", "x-accel-buffering": "no"})
