"""Requests that wait for their answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from local.backoff import Backoff
from local.bus.retry_table import Retry, RetryTable
from local.errors import BusClosed, RequestTimeout
from local.protocol.envelope import Envelope

MAX_LATE = 1024
FIRST_RESEND_SECONDS = 0.5
LAST_RESEND_SECONDS = 5.0


class Requests:
    """Which requests are open, by envelope id, and which were given up lately."""

    def __init__(self, resend: Callable[[bytes], object]) -> None:
        """`resend(frame)` sends a request once more, if that is possible now."""
        self._open: RetryTable[Envelope] = RetryTable(resend)
        self._given_up: deque[str] = deque(maxlen=MAX_LATE)

    def begin(self, request_id: str, seconds: float, silence: Callable[[], RequestTimeout]) -> Retry[Envelope]:
        """Open a request; its answer is an envelope, what `silence()` makes after `seconds`, or `BusClosed`."""
        backoff = Backoff(FIRST_RESEND_SECONDS, LAST_RESEND_SECONDS)
        return self._open.open(request_id, backoff, seconds, silence)

    def left(self, request: Retry[Envelope], frame: bytes) -> None:
        """A request was sent; on silence it goes again."""
        self._open.left(request, frame)

    def end(self, request: Retry[Envelope]) -> None:
        """Nobody waits for the answer any more."""
        self._open.end(request)
        answer = request.answer
        if not answer.done() or answer.cancelled() or answer.exception() is not None:
            self._given_up.append(request.frame_id)

    def settle(self, request_id: str, reply: Envelope) -> bool:
        """Give a reply to its request, if that is open. False for a reply that comes too late for a request of ours."""
        if request_id not in self._open:
            return request_id not in self._given_up
        self._open.answered(request_id, reply)
        return True

    def reconnected(self, send_first: Callable[[bytes], object]) -> None:
        """What was on its way when the connection broke is lost: send it again, ahead of what waits."""
        self._open.hasten(send_first)

    def close(self) -> None:
        """Fail what is open with `BusClosed`."""
        self._open.close(partial(BusClosed, "the bus was closed"))
