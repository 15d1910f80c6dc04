"""When a bus is ready: the proxy listens to us, and a probe has come back through our own subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from local.backoff import Backoff
from local.errors import BusClosed, BusNotReady

FIRST_PAUSE_SECONDS = 0.004
LAST_PAUSE_SECONDS = 0.25


class Handshake:
    """Proof of readiness, at the start and again after every reconnection.

    A probe is sent until one comes back; the pauses between probes are a resend schedule, not a guess at when
    the subscriptions arrive.
    """

    def __init__(self, send_probe: Callable[[int], None], on_reconnect: Callable[[], None]) -> None:
        """`send_probe(n)` publishes probe number n; `on_reconnect()` tells that a lost connection is ready again."""
        self._send_probe, self._on_reconnect = send_probe, on_reconnect
        self._linked = asyncio.Event()
        self._ready = asyncio.Event()
        self._returned = asyncio.Event()
        self._sent = self._seen = 0
        self._sent_when_lost = 0  # probes up to this one prove nothing about the present connection
        self._was_ready = self._closed = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether frames handed to the transport now will be heard."""
        return self._ready.is_set()

    async def wait(self) -> None:
        """Wait until `is_ready`."""
        await self._ready.wait()

    def link(self, up: bool) -> None:
        """The transport's word that somebody listens to us, or nobody."""
        if not up:
            self._linked.clear()
            self._ready.clear()
            self._sent_when_lost = self._sent
        elif not self._linked.is_set():
            self._linked.set()
            if self._was_ready and (self._task is None or self._task.done()):
                self._task = asyncio.create_task(self._again(), name="bus handshake")

    def returned(self, number: int) -> None:
        """A probe of ours came back."""
        if self._seen < number <= self._sent:
            self._seen = number
            self._returned.set()

    async def shake(self, address: str, seconds: float) -> None:
        """Prove readiness of everything subscribed so far. Raises `BusNotReady`, `BusClosed`."""
        try:
            async with asyncio.timeout(seconds):
                await self._probe_until_back()
        except TimeoutError:
            raise BusNotReady(address, seconds) from None
        self._was_ready = True
        self._ready.set()

    async def close(self) -> None:
        """Stop a handshake under way; whoever waits in `shake` gets `BusClosed`."""
        self._closed = True
        self._linked.set()
        self._returned.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _again(self) -> None:
        await self._probe_until_back()
        self._ready.set()
        self._on_reconnect()

    async def _probe_until_back(self) -> None:
        before = self._sent
        backoff = Backoff(FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS)
        while self._seen <= max(before, self._sent_when_lost):
            await self._linked.wait()
            if self._closed:
                raise BusClosed("the bus was closed")
            self._sent += 1
            self._returned.clear()
            self._send_probe(self._sent)
            with suppress(TimeoutError):
                async with asyncio.timeout(backoff.next()):
                    await self._returned.wait()
