"""What a stream has sent last, for a client that comes back and has missed some of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from local.apps.api.event_stream import ServerEvent, sse

MAX_BYTES = 1024 * 1024


class SentEvents:
    """Numbers events and keeps the last mebibyte of them. `numbers` count up, and no other stream gets the same ones,
    so that an id of a stream that is no more is not taken for one of its successor's."""

    def __init__(self, instance: str, numbers: Iterator[int]) -> None:
        self._instance, self._numbers = instance, numbers
        self._dropped = self.last = next(numbers)  # everything after `_dropped` is kept
        self._kept: deque[tuple[int, bytes]] = deque()
        self._bytes = 0

    def id_of(self, number: int) -> str:
        """The id by which a client names the event."""
        return f"{self._instance}-{number}"

    def add(self, event: ServerEvent) -> bytes:
        """An event is being sent: the same, written."""
        self.last = next(self._numbers)
        written = sse(event.name, event.data, self.id_of(self.last))
        self._kept.append((self.last, written))
        self._bytes += len(written)
        while self._bytes > MAX_BYTES:
            self._dropped, dropped = self._kept.popleft()
            self._bytes -= len(dropped)
        return written

    def after(self, number: int | None) -> list[bytes] | None:
        """What was sent after that; None if it is not all there any more, or the number is none of ours."""
        if number is None or not self._dropped <= number <= self.last:
            return None
        return [written for at, written in self._kept if at > number]
