"""Responses that are written as they come to be: server-sent events, and downloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

Chunks = AsyncGenerator[bytes, None]
KEEP_ALIVE = b": keep-alive\n\n"


class ServerEvent(NamedTuple):
    """One event before it is written: `data` is one line of JSON, `number` what a client may name it by."""

    name: str
    data: bytes
    number: str = ""


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


class Streamed(Response):
    """Writes chunks as they come; when the client leaves, `chunks` is closed at once. What fails before the first chunk
    still gets a status; what fails later cuts the connection, so that nobody takes it for the whole.

    Starlette's own StreamingResponse would do, but for the 20 ms in which the first one imports anyio's backend.
    """

    def __init__(self, chunks: Chunks, headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end or until the client leaves."""
        writing = asyncio.create_task(self._write(send), name="streamed response")
        leaving = asyncio.create_task(_left(receive), name="client of a streamed response")
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            writing.cancel()
            leaving.cancel()
            await asyncio.wait({writing, leaving})
        if not writing.cancelled():
            writing.result()

    async def _write(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            first = await anext(chunks, b"")
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Download(Streamed):
    """Something to be kept as a file; lines of JSON if it is not said what."""

    def __init__(self, chunks: Chunks, name: str, media_type: str = "application/x-ndjson") -> None:
        self.media_type = media_type
        super().__init__(chunks, {"cache-control": "no-store", "content-disposition": f'attachment; filename="{name}"'})


class EventStream(Streamed):
    """Chunks of whole events."""

    media_type = "text/event-stream"

    def __init__(self, chunks: Chunks) -> None:
        super().__init__(chunks, {"cache-control": "no-store", "x-accel-buffering": "no"})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
