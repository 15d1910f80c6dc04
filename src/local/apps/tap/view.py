"""How items become lines of output. Plain code; called by the printer's thread alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class View(ABC, Generic[T]):
    """Base of all views. `now` is in seconds on the printer's monotonic clock."""

    @abstractmethod
    def lines(self, item: T, now: float) -> Iterable[str]:
        """The lines to print for an item, and for what it ends."""

    def due(self, now: float) -> Iterable[str]:
        """Lines of earlier items that have been held back long enough."""
        return ()

    def rest(self) -> Iterable[str]:
        """Lines of everything still held back: nothing more will come."""
        return ()


class PlainView(View[str]):
    """Prints text as it is."""

    def lines(self, item: str, now: float) -> Iterable[str]:
        return item.splitlines()
