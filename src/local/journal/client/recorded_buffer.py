"""The publisher's side of recorded messages: kept until the journal has them, bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from local.backoff import Backoff
from local.bus.retry_table import TICK_SECONDS, Retry, RetryTable

PAUSE = 0.5
WINDOW = 256
MAX_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class _Kept:
    subject: str
    frame: bytes
    sent_at: float
    retry: Retry[None] | None = None


class RecordedBuffer:
    """The oldest are dropped first when there are too many.

    At most `WINDOW` frames, the oldest, are sent again on silence: each that is confirmed lets the next one in.
    """

    def __init__(
        self,
        retries: RetryTable[None],
        dropped: Callable[[Mapping[str, int]], object],
        max_count: int,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`dropped(gaps)` is told, by subject, how many messages were given up unconfirmed."""
        self._retries, self._dropped = retries, dropped
        self._max_count, self._max_bytes = max_count, max_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # by envelope id, oldest first
        self._outside: deque[str] = deque()  # the window; what was confirmed meanwhile is skipped
        self._bytes = self._inside = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, envelope_id: str, subject: str, frame: bytes) -> None:
        """A message is on its way."""
        if envelope_id in self._kept:
            return
        self._kept[envelope_id] = _Kept(subject, frame, self._retries.now())
        self._bytes += len(frame)
        self._outside.append(envelope_id)
        self._fill()
        while len(self._kept) > 1 and (len(self._kept) > self._max_count or self._bytes > self._max_bytes):
            oldest = next(iter(self._kept))
            self._dropped({self._kept[oldest].subject: 1})
            self.confirmed(oldest)

    def confirmed(self, envelope_id: str) -> None:
        """The journal has a message, or nobody will know."""
        kept = self._kept.pop(envelope_id, None)
        if kept is None:
            return
        self._bytes -= len(kept.frame)
        if kept.retry is not None:
            self._inside -= 1
            self._retries.end(kept.retry)
            self._fill()

    def _fill(self) -> None:
        """Let the next ones into the window."""
        while self._inside < WINDOW and self._outside:
            envelope_id = self._outside.popleft()
            kept = self._kept.get(envelope_id)
            if kept is not None:
                self._inside += 1
                first_pause = max(TICK_SECONDS, kept.sent_at + PAUSE - self._retries.now())
                kept.retry = self._retries.open(envelope_id, Backoff(first_pause, PAUSE))
                self._retries.left(kept.retry, kept.frame)
