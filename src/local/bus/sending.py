"""Frames that wait for a connection or for room, in order, and the handshake that proves a connection to be ready."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from local.bus.zeromq import Transport
from local.core.errors import BusClosed, BusNotReady, PublishTimeout
from local.core.files import Backoff

# Frames that are sent again until an answer that names their id arrives, or a time limit.

T = TypeVar("T")
TICK_SECONDS = 0.05
ROUNDING_SECONDS = 1e-6  # a timer that was set for a tick may go off that much earlier


@dataclass(slots=True, eq=False)
class Retry(Generic[T]):
    """One frame that awaits its `answer`; it is sent again if it was sent (`left`) and no answer has come."""

    frame_id: str
    answer: asyncio.Future[T]
    backoff: Backoff
    deadline: float
    too_late: Callable[[], Exception]
    frame: bytes = b""
    due: float = math.inf

    def fail(self, error: Exception) -> None:
        """End the wait for the answer."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # marks the error as seen: the waiting caller may end for another reason


class RetryTable(Generic[T]):
    """The frames that are sent again until they are answered: requests that await a reply, and messages that await
    their commit. An id may be awaited several times.

    One timer serves all of them, because a timer per request would cost a third of its round trip. Deadlines are kept
    to a twentieth of a second. No timer runs while no frame waits.
    """

    def __init__(
        self,
        resend: Callable[[bytes], object],
        clock: Callable[[], asyncio.AbstractEventLoop] = asyncio.get_running_loop,
    ) -> None:
        """`resend(frame)` sends a frame once more, if that is possible now."""
        self._resend, self._clock = resend, clock
        self._retries: dict[str, list[Retry[T]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, frame_id: str) -> bool:
        return frame_id in self._retries

    def __len__(self) -> int:
        return len(self._awaited())

    def now(self) -> float:
        """The time, in seconds of the table's clock."""
        return self._clock().time()

    def open(
        self,
        frame_id: str,
        backoff: Backoff,
        seconds: float = math.inf,
        too_late: Callable[[], Exception] = TimeoutError,
    ) -> Retry[T]:
        """Await the answer to a frame; after `seconds` it fails with `too_late()`."""
        loop = self._clock()
        retry = Retry[T](frame_id, loop.create_future(), backoff, loop.time() + seconds, too_late)
        retry.due = retry.deadline
        self._retries.setdefault(frame_id, []).append(retry)
        self._wake_at(retry.due)
        return retry

    def left(self, retry: Retry[T], frame: bytes) -> None:
        """A frame was sent, or should have been: on silence it goes again."""
        retry.frame = frame
        self._wind(retry, self._clock().time())

    def answered(self, frame_id: str, answer: T) -> None:
        """Record that a frame was answered."""
        for retry in self._retries.pop(frame_id, ()):
            if not retry.answer.done():
                retry.answer.set_result(answer)

    def refused(self, frame_id: str, error: Exception) -> None:
        """A frame was refused."""
        for retry in self._retries.pop(frame_id, ()):
            retry.fail(error)

    def end(self, retry: Retry[T]) -> None:
        """Stop waiting for this answer."""
        others = [other for other in self._retries.pop(retry.frame_id, ()) if other is not retry]
        if others:
            self._retries[retry.frame_id] = others

    def hasten(self, resend: Callable[[bytes], object] | None = None) -> None:
        """Send all sent frames again, because they may be lost, and restart their pauses."""
        now = self._clock().time()
        for retry in self._awaited():
            if retry.frame and now < retry.deadline:
                retry.backoff.reset()
                (resend or self._resend)(retry.frame)
                self._wind(retry, now)

    def close(self, error: Callable[[], Exception]) -> None:
        """Fail everything that is awaited."""
        if self._timer is not None:
            self._timer.cancel()
        for retry in self._awaited():
            retry.fail(error())
        self._retries.clear()

    def _awaited(self) -> list[Retry[T]]:
        return [retry for retries in self._retries.values() for retry in retries if not retry.answer.done()]

    def _wind(self, retry: Retry[T], now: float) -> None:
        retry.due = min(now + retry.backoff.next(), retry.deadline)
        self._wake_at(retry.due)

    def _wake_at(self, due: float) -> None:
        if due == math.inf or (self._timer is not None and self._timer.when() <= due + TICK_SECONDS):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock().call_at(math.ceil(due / TICK_SECONDS) * TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self._clock().time() + ROUNDING_SECONDS
        for retry in [retry for retries in self._retries.values() for retry in retries if retry.due <= now]:
            if retry.answer.done():
                self.end(retry)
            elif now >= retry.deadline:
                self.end(retry)
                retry.fail(retry.too_late())
            else:
                self._resend(retry.frame)
                self._wind(retry, now)
        self._wake_at(min((retry.due for retry in self._awaited()), default=math.inf))


FIRST_PAUSE_SECONDS = 0.004
LAST_PAUSE_SECONDS = 0.25


class SendQueue:
    """The outgoing frames of one bus: sent immediately where possible, otherwise queued behind waiting frames so that
    the order is kept.

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
        """Send a frame again, now or not at all."""
        self._counters["resent"] += self.try_send(frame)

    def resend_first(self, frame: bytes) -> None:
        """Send a frame again, now or not at all, ahead of waiting ones: it was first sent before they came."""
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
            if sent.done():  # its publisher gave up and has not removed it yet
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


class Handshake:
    """The proof that a bus is ready, at the start and after every reconnection.

    A probe is sent until one comes back: the connection is up. Then another probe is sent on a new subscription: when
    it comes back, all earlier subscriptions are in place. The pauses between probes are a resend schedule; no step
    relies on a guessed delay.
    """

    def __init__(
        self, send_probe: Callable[[int], None], listen: Callable[[], None], on_reconnect: Callable[[], None]
    ) -> None:
        """`send_probe(n)` publishes probe number n; `listen()` moves the probe's subscription behind all present ones;
        `on_reconnect()` is called when a lost connection is ready again.
        """
        self._send_probe, self._listen, self._on_reconnect = send_probe, listen, on_reconnect
        self._linked = asyncio.Event()
        self._ready = asyncio.Event()
        self._returned = asyncio.Event()
        self._sent = self._seen = 0
        self._sent_when_lost = 0  # probes up to this one prove nothing about the present connection
        self._was_ready = self._closed = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether frames sent now will reach the bus."""
        return self._ready.is_set()

    async def wait(self) -> None:
        """Wait until `is_ready`."""
        await self._ready.wait()

    def link(self, up: bool) -> None:
        """Receive the transport's report on whether the proxy is connected."""
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
                await self._prove()
        except TimeoutError:
            raise BusNotReady(address, seconds) from None
        self._was_ready = True
        self._ready.set()

    async def close(self) -> None:
        """Stop a running handshake; `shake` raises `BusClosed` in waiting callers."""
        self._closed = True
        self._linked.set()
        self._returned.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _again(self) -> None:
        await self._prove()
        self._ready.set()
        self._on_reconnect()

    async def _prove(self) -> None:
        connection = None
        while connection != self._sent_when_lost:  # lost meanwhile: the next one gets the subscriptions in any order
            await self._probe_until_back()
            connection = self._sent_when_lost
            self._listen()
            await self._probe_until_back()

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
