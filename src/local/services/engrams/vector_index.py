"""The closest vectors of one user. What holds them can be made anew from SQLite at any time, and is where in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from local.services.engrams.vectors import VectorEntry


class VectorIndex(Protocol):
    """Knows keys and vectors of length 1, no texts. Blocking, from any thread; it may raise `IndexBroken`."""

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """Put vectors in. The same key again is the same vector again."""
        ...

    def search(self, vector: Any, limit: int) -> list[str]:
        """The keys of the vectors that are closest to a float32 one of shape (dimensions,), closest first."""
        ...

    def keys(self) -> set[str]:
        """The keys of all vectors."""
        ...

    def close(self) -> None:
        """Let go of files and memory."""
        ...
