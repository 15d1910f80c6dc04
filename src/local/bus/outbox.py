"""Frames that wait for a connection or for room, in order."""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from local.bus.handshake import Handshake
from local.bus.transport import Transport
from local.errors import BusClosed, PublishTimeout

PUBLISH_SECONDS = 5.0


class Outbox:
    """Sends at once if it can; otherwise queues behind what already waits, so that order is kept.

    Counts `published`, `waited` (no room at first) and `dropped` in the given counter.
    """

    def __init__(self, transport: Transport, handshake: Handshake, counters: Counter[str]) -> None:
        self._transport, self._handshake, self._counters = transport, handshake, counters
        self._waiting: deque[tuple[bytes, asyncio.Future[None]]] = deque()
        self._flusher: asyncio.Task[None] | None = None
        self._closed = False

    def try_send(self, frame: bytes) -> bool:
        """Send now or not at all."""
        if self._closed or self._waiting or not self._handshake.is_ready or not self._transport.send(frame):
            return False
        self._counters["published"] += 1
        return True

    async def send(self, frame: bytes, subject: str) -> None:
        """Send now, or as soon as there is a connection and room. Raises `PublishTimeout` after 5 s, `BusClosed`."""
        if self._closed:
            raise BusClosed("the bus was closed")
        if self.try_send(frame):
            return
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((frame, sent))
        self._counters["waited"] += 1
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush(), name="bus outbox")
        try:
            async with asyncio.timeout(PUBLISH_SECONDS):
                await sent
        except TimeoutError:
            self._counters["dropped"] += 1
            raise PublishTimeout(subject, PUBLISH_SECONDS) from None

    def close(self) -> None:
        """Fail everything that still waits with `BusClosed`."""
        self._closed = True
        if self._flusher is not None:
            self._flusher.cancel()
        for _, sent in self._waiting:
            if not sent.done():
                sent.set_exception(BusClosed("the bus was closed"))

    async def _flush(self) -> None:
        while self._waiting:
            await self._handshake.wait()
            frame, sent = self._waiting[0]
            if sent.done():  # its publisher gave up
                self._waiting.popleft()
            elif self._transport.send(frame):
                self._waiting.popleft()
                self._counters["published"] += 1
                sent.set_result(None)
            else:
                await self._transport.writable()
