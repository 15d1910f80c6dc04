"""What a search provider is, as the chain sees it."""

from __future__ import annotations

from typing import Protocol

from local.services.search.hit import Hit


class SearchProvider(Protocol):
    """One place to search. An empty list means that it looked and found nothing; when it cannot look, it raises.

    A search may take for ever: the chain, which bounds the time, cancels it.
    """

    @property
    def name(self) -> str:
        """The name in the configuration, such as `searxng`."""
        ...

    async def search(self, query: str, max_results: int) -> list[Hit]:
        """At most `max_results` hits, best first. Raises SearchUnavailable, and no other error of its own."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
