"""Frames that wait for a connection or for room, in order."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict

from local.bus.handshake import Handshake
from local.bus.transport import Transport
from local.errors import BusClosed, PublishTimeout


class SendQueue:
    """Sends at once if it can; otherwise queues behind what already waits, so that order is kept.

    Counts `published`, `waited` (no room at first) and `dropped` in the given counter.
    """

    def __init__(self, transport: Transport, handshake: Handshake, counters: Counter[str]) -> None:
        self._transport, self._handshake, self._counters = transport, handshake, counters
        self._waiting: OrderedDict[asyncio.Future[None], bytes] = OrderedDict()
        self._flusher: asyncio.Task[None] | None = None
        self._closed = False

    def try_send(self, frame: bytes) -> bool:
        """Send now or not at all."""
        return not self._closed and not self._waiting and self._handshake.is_ready and self._hand_over(frame)

    def resend(self, frame: bytes) -> None:
        """Send once more what had left, now or not at all."""
        self._counters["resent"] += self.try_send(frame)

    def resend_first(self, frame: bytes) -> None:
        """Send once more what had left, now or not at all, ahead of what waits: it had left before those came."""
        self._counters["resent"] += not self._closed and self._handshake.is_ready and self._hand_over(frame)

    async def send(self, frame: bytes, subject: str, seconds: float | None) -> None:
        """Send now, or as soon as there is a connection and room.

        Raises `PublishTimeout` after `seconds` (None: never), `BusClosed`.
        """
        if self.try_send(frame):
            return
        if self._closed:
            raise BusClosed("the bus was closed")
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[sent] = frame
        self._counters["waited"] += 1
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush(), name="bus send queue")
        try:
            async with asyncio.timeout(seconds):
                await sent
        except TimeoutError:
            raise PublishTimeout(subject, seconds or 0.0) from None
        finally:
            if self._waiting.pop(sent, None) is not None:
                self._counters["dropped"] += 1

    async def close(self) -> None:
        """Fail everything that still waits with `BusClosed`."""
        self._closed = True
        for sent in self._waiting:
            if not sent.done():
                sent.set_exception(BusClosed("the bus was closed"))
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.wait({self._flusher})

    async def _flush(self) -> None:
        while self._waiting:
            await self._handshake.wait()
            if not self._waiting:  # every publisher gave up meanwhile
                return
            sent, frame = next(iter(self._waiting.items()))
            if sent.done():  # its publisher gave up and has not yet been here to say so
                del self._waiting[sent]
                self._counters["dropped"] += 1
            elif self._hand_over(frame):
                del self._waiting[sent]
                sent.set_result(None)
            else:
                await self._transport.writable()

    def _hand_over(self, frame: bytes) -> bool:
        sent = self._transport.send(frame)
        self._counters["published"] += sent
        return sent
