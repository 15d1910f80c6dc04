"""Tavily. API: https://docs.tavily.com/documentation/api-reference/endpoint/search"""

from __future__ import annotations

from local.services.search.client import ProviderClient
from local.services.search.hit import Hit, hits_of
from local.services.search.key import usable_key

KEY_VARIABLE = "TAVILY_API_KEY"
_HINTS = dict.fromkeys((401, 403), f"check {KEY_VARIABLE}") | dict.fromkeys((432, 433), "the plan's limit is reached")


class TavilyProvider:
    """Asks the Tavily search API."""

    name = "tavily"

    def __init__(self, api_key: str | None, *, base_url: str = "https://api.tavily.com") -> None:
        self._key = api_key
        self._client = ProviderClient(self.name, base_url, _HINTS)

    async def search(self, query: str, max_results: int) -> list[Hit]:
        """At most `max_results` hits (Tavily gives up to 20). Raises SearchUnavailable, also for a missing key."""
        token = usable_key(self.name, KEY_VARIABLE, self._key)
        answer = await self._client.post(
            "search", {"query": query, "max_results": max_results}, headers={"Authorization": f"Bearer {token}"}
        )
        return hits_of(self.name, answer.get("results"), max_results, snippet="content")

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()
