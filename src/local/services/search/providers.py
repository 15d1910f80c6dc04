"""The places to search: SearXNG, Brave, Tavily, the `ddgs` package, and one that never leaves the process."""

from __future__ import annotations

import asyncio
import importlib
import math
from collections.abc import Sequence
from typing import Any, Protocol

from local.errors import SearchUnavailable
from local.services.search.client import DETAIL_CHARS, ProviderClient
from local.services.search.hit import SearchHit, hits_of, plain_text


class SearchProvider(Protocol):
    """One place to search. An empty list means that it looked and found nothing; when it cannot look, it raises.

    A search may take for ever: the chain, which bounds the time, cancels it.
    """

    @property
    def name(self) -> str:
        """The name in the configuration, such as `searxng`."""
        ...

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """At most `max_results` hits, best first. Raises SearchUnavailable, and no other error of its own."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


def usable_key(provider: str, variable: str, key: str | None) -> str:
    """`key`, fit for an HTTP header. Raises SearchUnavailable that says how to set it."""
    key = (key or "").strip()
    if not key:
        how = f"'local2 secret set {provider}', and {provider}_api_key: secret:{provider} in web_search.yaml"
        raise SearchUnavailable(provider, f"it needs an API key: {how}, or the environment variable {variable}")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SearchUnavailable(provider, f"{variable}, or the secret, holds characters that no key has")
    return key


_SEARXNG_HINTS = {
    403: "format=json is not enabled there; add 'json' to search.formats in its settings.yml",
    404: "searxng_url must be the address of a SearXNG instance, without /search",
    429: "its limiter refuses programs; allow this machine in its limiter.toml, or turn the limiter off",
}


class SearxngProvider(ProviderClient):
    """Asks one SearXNG instance."""

    def __init__(self, base_url: str) -> None:
        super().__init__("searxng", base_url, _SEARXNG_HINTS)

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """At most `max_results` hits. Raises SearchUnavailable, also when none of its engines answered."""
        answer = await self.get("search", {"q": query, "format": "json"})
        results, silent = answer.get("results"), answer.get("unresponsive_engines")
        if not results and silent:
            # HTTP 200 with nothing in it is how SearXNG reports that its own sources refused it.
            raise SearchUnavailable(self.name, f"its engines did not answer: {_named(silent)}")
        return hits_of(self.name, results, max_results, snippet="content")


def _named(engines: object) -> str:
    """`[["google", "CAPTCHA"], …]` as "google (CAPTCHA), …"."""
    pairs = engines if isinstance(engines, list) else [engines]
    words = [f"{p[0]} ({p[1]})" if isinstance(p, list) and len(p) == 2 else str(p) for p in pairs]
    return plain_text(", ".join(words), DETAIL_CHARS)


BRAVE_KEY = "BRAVE_API_KEY"
_BRAVE_HINTS = dict.fromkeys((401, 403), f"check {BRAVE_KEY}") | {422: f"if it means the token, check {BRAVE_KEY}"}


class BraveProvider(ProviderClient):
    """Asks the Brave Search API."""

    def __init__(self, api_key: str | None, *, base_url: str = "https://api.search.brave.com/res/v1") -> None:
        self._key = api_key
        super().__init__("brave", base_url, _BRAVE_HINTS)

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """At most `max_results` hits (Brave gives up to 20). Raises SearchUnavailable, also for a missing key."""
        token = usable_key(self.name, BRAVE_KEY, self._key)
        answer = await self.get(
            "web/search", {"q": query, "count": max_results}, headers={"X-Subscription-Token": token}
        )
        web = answer.get("web")
        if web is None and answer.get("type") == "search":
            return []  # Brave leaves `web` out when no page matches
        return hits_of(
            self.name, web.get("results") if isinstance(web, dict) else None, max_results, snippet="description"
        )


TAVILY_KEY = "TAVILY_API_KEY"
_TAVILY_HINTS = dict.fromkeys((401, 403), f"check {TAVILY_KEY}") | dict.fromkeys(
    (432, 433), "the plan's limit is reached"
)


class TavilyProvider(ProviderClient):
    """Asks the Tavily search API."""

    def __init__(self, api_key: str | None, *, base_url: str = "https://api.tavily.com") -> None:
        self._key = api_key
        super().__init__("tavily", base_url, _TAVILY_HINTS)

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """At most `max_results` hits (Tavily gives up to 20). Raises SearchUnavailable, also for a missing key."""
        token = usable_key(self.name, TAVILY_KEY, self._key)
        answer = await self.post(
            "search", {"query": query, "max_results": max_results}, headers={"Authorization": f"Bearer {token}"}
        )
        return hits_of(self.name, answer.get("results"), max_results, snippet="content")


class DdgsProvider:
    """Asks through `ddgs`, an optional package that is imported at the first search.

    `timeout_seconds` bounds what goes on in its thread, which no cancellation reaches.
    """

    name = "ddgs"

    def __init__(self, *, timeout_seconds: float = 15.0) -> None:
        self._timeout_seconds = timeout_seconds

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """At most `max_results` hits, never none. Raises SearchUnavailable.

        ddgs says "No results found." both when nothing matches and when every engine turned it away. The two cannot be
        told apart, so that is an error here: it must not pass for knowledge that nothing exists.
        """
        try:
            results = await asyncio.to_thread(self._look, query, max_results)
        except ImportError as error:
            reason = f"the package ddgs is missing ({error}); install it with: pip install ddgs"
            raise SearchUnavailable(self.name, reason) from None
        except Exception as error:  # it scrapes pages: any error of a parser or an HTTP client may come out
            raise SearchUnavailable(self.name, plain_text(str(error), DETAIL_CHARS) or type(error).__name__) from error
        return hits_of(self.name, results, max_results, snippet="body", url="href")

    def _look(self, query: str, max_results: int) -> Any:
        package = importlib.import_module("ddgs")
        # Its timeout is for each of the engines, which it asks one after another.
        return package.DDGS(timeout=math.ceil(self._timeout_seconds / 3)).text(query, max_results=max_results)

    async def close(self) -> None:
        """Nothing is kept open between searches."""


class MockProvider:
    """Gives the same hits to every query; without any, two that repeat the query and say that they are made up."""

    name = "mock"

    def __init__(self, hits: Sequence[SearchHit] | None = None) -> None:
        self._hits = hits

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """At most `max_results` hits."""
        hits = self._hits if self._hits is not None else [_made_up(query, number) for number in (1, 2)]
        return list(hits[:max_results])

    async def close(self) -> None:
        """Nothing is open."""


def _made_up(query: str, number: int) -> SearchHit:
    snippet = f"Result {number} of the mock search provider for: {query}. Nothing was searched."
    return SearchHit(f"Mock result {number}", snippet, f"https://example.com/mock/{number}")
