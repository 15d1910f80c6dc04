"""A bounded queue of envelopes between the reader of a socket and whoever handles them."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

from local.errors import BusClosed
from local.protocol.envelope import Envelope

MAX_ENVELOPES = 100_000
MAX_BYTES = 64 * 1024 * 1024


class Inbox:
    """One consumer takes, the reader offers. Bounded by number and by payload bytes; never blocks the reader.

    What has waited here for longer than its `ttl_ms` is dropped and counted in `expired`. `clock` gives monotonic
    seconds.
    """

    def __init__(
        self,
        *,
        max_envelopes: int = MAX_ENVELOPES,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.expired = 0
        self._max_envelopes, self._max_bytes, self._clock = max_envelopes, max_bytes, clock
        self._items: deque[tuple[Envelope, float]] = deque()  # each with the time until which it is of use
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def offer(self, envelope: Envelope) -> bool:
        """Append; False if there is no room."""
        size = len(envelope.payload)
        if len(self._items) >= self._max_envelopes or self._bytes + size > self._max_bytes:
            return False
        until = math.inf if envelope.ttl_ms is None else self._clock() + envelope.ttl_ms / 1000
        self._items.append((envelope, until))
        self._bytes += size
        self._wake()
        return True

    async def take(self) -> Envelope:
        """The oldest envelope still of use, as soon as there is one. Raises `BusClosed` when closed and empty."""
        while True:
            while not self._items:
                if self._closed:
                    raise BusClosed("the inbox was closed")
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            envelope, until = self._items.popleft()
            self._bytes -= len(envelope.payload)
            if until == math.inf or self._clock() <= until:
                return envelope
            self.expired += 1

    def discard(self) -> None:
        """Forget what is there: it has another way of coming."""
        self._items.clear()
        self._bytes = 0

    def close(self) -> None:
        """Nothing more will come; what is there can still be taken."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        while True:
            try:
                yield await self.take()
            except BusClosed:
                return
