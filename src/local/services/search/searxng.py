"""SearXNG, the metasearch engine that its user runs. API: https://docs.searxng.org/dev/search_api.html"""

from __future__ import annotations

from local.errors import SearchUnavailable
from local.services.search.client import DETAIL_CHARS, ProviderClient
from local.services.search.hit import Hit, hits_of, plain_text

_HINTS = {
    403: "format=json is not enabled there; add 'json' to search.formats in its settings.yml",
    404: "searxng_url must be the address of a SearXNG instance, without /search",
    429: "its limiter refuses programs; allow this machine in its limiter.toml, or turn the limiter off",
}


class SearxngProvider:
    """Asks one SearXNG instance."""

    name = "searxng"

    def __init__(self, base_url: str) -> None:
        self._client = ProviderClient(self.name, base_url, _HINTS)

    async def search(self, query: str, max_results: int) -> list[Hit]:
        """At most `max_results` hits. Raises SearchUnavailable, also when none of its engines answered."""
        answer = await self._client.get("search", {"q": query, "format": "json"})
        results, silent = answer.get("results"), answer.get("unresponsive_engines")
        if not results and silent:
            # HTTP 200 with nothing in it is how SearXNG reports that its own sources refused it.
            raise SearchUnavailable(self.name, f"its engines did not answer: {_named(silent)}")
        return hits_of(self.name, results, max_results, snippet="content")

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()


def _named(engines: object) -> str:
    """`[["google", "CAPTCHA"], …]` as "google (CAPTCHA), …"."""
    pairs = engines if isinstance(engines, list) else [engines]
    words = [f"{p[0]} ({p[1]})" if isinstance(p, list) and len(p) == 2 else str(p) for p in pairs]
    return plain_text(", ".join(words), DETAIL_CHARS)
