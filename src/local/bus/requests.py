"""Requests that wait for their answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from local.errors import BusClosed, RequestTimeout
from local.protocol.envelope import Envelope

MAX_LATE = 1024
TICK_SECONDS = 0.05
FIRST_RESEND_SECONDS = 0.5
LAST_RESEND_SECONDS = 5.0


@dataclass(slots=True)
class _Open:
    subject: str
    seconds: float
    deadline: float
    answer: asyncio.Future[Envelope]
    pause: float  # before the next resend
    resend_at: float = 0.0
    frame: bytes = b""  # once it has left, and may have to leave again


class Requests:
    """Which requests are open, by envelope id, and which were given up lately.

    One timer serves all of them: a request that had a timer of its own for its limit and one for the next resend would
    spend a third of its round trip on them. Limits are kept to a twentieth of a second.
    """

    def __init__(self, resend: Callable[[bytes], object]) -> None:
        """`resend(frame)` sends a request once more, if that is possible now."""
        self._resend = resend
        self._open: dict[str, _Open] = {}
        self._given_up: deque[str] = deque(maxlen=MAX_LATE)
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, request_id: str, subject: str, seconds: float) -> asyncio.Future[Envelope]:
        """Open a request; the future gets its answer, `RequestTimeout` after `seconds`, or `BusClosed`."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Envelope] = loop.create_future()
        self._open[request_id] = _Open(subject, seconds, loop.time() + seconds, answer, FIRST_RESEND_SECONDS)
        if self._timer is None:
            self._timer = loop.call_later(TICK_SECONDS, self._tick, loop)
        return answer

    def left(self, request_id: str, frame: bytes) -> None:
        """A request was sent; on silence it goes again."""
        request = self._open[request_id]
        request.frame = frame
        request.resend_at = asyncio.get_running_loop().time() + request.pause

    def end(self, request_id: str) -> None:
        """Nobody waits for the answer any more."""
        request = self._open.pop(request_id)
        if not request.answer.done() or request.answer.cancelled() or request.answer.exception() is not None:
            self._given_up.append(request_id)

    def settle(self, request_id: str, reply: Envelope) -> bool:
        """Give a reply to its request, if that is open. False for a reply that comes too late for a request of ours."""
        request = self._open.get(request_id)
        if request is None:
            return request_id not in self._given_up
        if not request.answer.done():
            request.answer.set_result(reply)
        return True

    def under_way(self) -> Iterator[bytes]:
        """The frames of those that have left and have no answer."""
        return (request.frame for request in self._open.values() if request.frame and not request.answer.done())

    def close(self) -> None:
        """Fail what is open with `BusClosed`."""
        if self._timer is not None:
            self._timer.cancel()
        for request in self._open.values():
            self._fail(request, BusClosed("the bus was closed"))

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for request in list(self._open.values()):
            if now >= request.deadline:
                self._fail(request, RequestTimeout(request.subject, request.seconds))
            elif request.frame and now >= request.resend_at and not request.answer.done():
                self._resend(request.frame)
                request.pause = min(request.pause * 2, LAST_RESEND_SECONDS)
                request.resend_at = now + request.pause
        self._timer = loop.call_later(TICK_SECONDS, self._tick, loop) if self._open else None

    def _fail(self, request: _Open, error: Exception) -> None:
        if not request.answer.done():
            request.answer.set_exception(error)
            request.answer.exception()  # counts as seen: its request may be ending for a reason of its own
