"""Frames that are sent again until an answer that names their id arrives, or a time limit."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from local.backoff import Backoff

T = TypeVar("T")
TICK_SECONDS = 0.05
ROUNDING_SECONDS = 1e-6  # a timer that was set for a tick may go off that much earlier


@dataclass(slots=True, eq=False)
class Retry(Generic[T]):
    """One frame that awaits its `answer`; it is sent again when it has `left` and no answer has come."""

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
            self.answer.exception()  # counts as seen: whoever waits may be ending for a reason of its own


class RetryTable(Generic[T]):
    """Requests that await a reply, messages that await their commit. One id may be awaited several times over.

    One timer serves all of them: a request with timers of its own would spend a third of its round trip on them. Limits
    are kept to a twentieth of a second. No timer runs while nothing is awaited.
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
        """The answer to a frame has come."""
        for retry in self._retries.pop(frame_id, ()):
            if not retry.answer.done():
                retry.answer.set_result(answer)

    def refused(self, frame_id: str, error: Exception) -> None:
        """A frame was refused."""
        for retry in self._retries.pop(frame_id, ()):
            retry.fail(error)

    def end(self, retry: Retry[T]) -> None:
        """Nobody awaits this answer any more."""
        others = [other for other in self._retries.pop(retry.frame_id, ()) if other is not retry]
        if others:
            self._retries[retry.frame_id] = others

    def hasten(self, resend: Callable[[bytes], object] | None = None) -> None:
        """What had left may be lost: it goes again at once, and its pauses start anew."""
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
