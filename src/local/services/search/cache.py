"""Recent answers, kept for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """At most `size` values, each for `seconds`; the oldest goes first. Times are those the caller passes in."""

    def __init__(self, *, seconds: float, size: int) -> None:
        self._seconds, self._size = seconds, size
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K, now: float) -> V | None:
        """The value, if it is there and not older than `seconds`."""
        entry = self._entries.get(key)
        return entry[1] if entry and now - entry[0] < self._seconds else None

    def put(self, key: K, value: V, now: float) -> None:
        """Keep `value` from `now` on."""
        self._entries.pop(key, None)
        self._entries[key] = (now, value)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)
