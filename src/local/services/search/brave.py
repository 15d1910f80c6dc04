"""Brave Search. API: https://api-dashboard.search.brave.com/app/documentation/web-search"""

from __future__ import annotations

from local.services.search.client import ProviderClient
from local.services.search.hit import Hit, hits_of
from local.services.search.key import usable_key

KEY_VARIABLE = "BRAVE_API_KEY"
_HINTS = dict.fromkeys((401, 403), f"check {KEY_VARIABLE}") | {422: f"if it means the token, check {KEY_VARIABLE}"}


class BraveProvider:
    """Asks the Brave Search API."""

    name = "brave"

    def __init__(self, api_key: str | None, *, base_url: str = "https://api.search.brave.com/res/v1") -> None:
        self._key = api_key
        self._client = ProviderClient(self.name, base_url, _HINTS)

    async def search(self, query: str, max_results: int) -> list[Hit]:
        """At most `max_results` hits (Brave gives up to 20). Raises SearchUnavailable, also for a missing key."""
        token = usable_key(self.name, KEY_VARIABLE, self._key)
        answer = await self._client.get(
            "web/search", {"q": query, "count": max_results}, headers={"X-Subscription-Token": token}
        )
        web = answer.get("web")
        if web is None and answer.get("type") == "search":
            return []  # Brave leaves `web` out when no page matches
        return hits_of(
            self.name, web.get("results") if isinstance(web, dict) else None, max_results, snippet="description"
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()
