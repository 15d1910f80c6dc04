"""A provider that never leaves the process, for trying the system out and for tests."""

from __future__ import annotations

from collections.abc import Sequence

from local.services.search.hit import Hit


class MockProvider:
    """Gives the same hits to every query; without any, two that repeat the query and say that they are made up."""

    name = "mock"

    def __init__(self, hits: Sequence[Hit] | None = None) -> None:
        self._hits = hits

    async def search(self, query: str, max_results: int) -> list[Hit]:
        """At most `max_results` hits."""
        hits = self._hits if self._hits is not None else [_made_up(query, number) for number in (1, 2)]
        return list(hits[:max_results])

    async def close(self) -> None:
        """Nothing is open."""


def _made_up(query: str, number: int) -> Hit:
    snippet = f"Result {number} of the mock search provider for: {query}. Nothing was searched."
    return Hit(f"Mock result {number}", snippet, f"https://example.com/mock/{number}")
