"""Pauses between attempts that grow."""

from __future__ import annotations


class Backoff:
    """Pauses that double, from `first` to at most `longest` seconds."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest, self._next = first, longest, first

    def next(self) -> float:
        """The pause before the next attempt."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause

    def reset(self) -> None:
        """Something has changed: begin anew with the first pause."""
        self._next = self._first
