"""From settings to a search chain."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import httpx

from local.errors import ConfigError
from local.services.search.brave import BraveProvider
from local.services.search.chain import SearchChain
from local.services.search.ddgs import DdgsProvider
from local.services.search.mock import MockProvider
from local.services.search.provider import SearchProvider
from local.services.search.searxng import SearxngProvider
from local.services.search.tavily import TavilyProvider


def build_chain(
    *,
    provider: str = "searxng",
    fallback_providers: Sequence[str] = (),
    searxng_url: str = "http://127.0.0.1:8080",
    brave_api_key: str | None = None,
    tavily_api_key: str | None = None,
    timeout_seconds: float = 15.0,
    cache_seconds: float = 300.0,
) -> SearchChain:
    """The chain of `provider` and then `fallback_providers`, each name once.

    A missing key is no error here: the provider says so when it is asked, and a fallback can still answer. Raises
    ConfigError for an unknown name and for a `searxng_url` that is no http(s) address.
    """
    known: dict[str, Callable[[], SearchProvider]] = {
        "searxng": lambda: SearxngProvider(_web_address(searxng_url)),
        "brave": lambda: BraveProvider(brave_api_key),
        "tavily": lambda: TavilyProvider(tavily_api_key),
        "ddgs": lambda: DdgsProvider(timeout_seconds=timeout_seconds),
        "mock": MockProvider,
    }
    names = dict.fromkeys([provider, *fallback_providers])
    for name in names:
        if name not in known:
            raise ConfigError(_unknown("provider" if name == provider else "fallback_providers", name, list(known)))
    chosen = [known[name]() for name in names]
    return SearchChain(chosen, cache_seconds=cache_seconds, timeout_seconds=timeout_seconds)


def _unknown(key: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1)
    guess = f" Did you mean '{near[0]}'?" if near else ""
    return f"{key}: there is no search provider '{name}', only {', '.join(known)}.{guess}"


def _web_address(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError(f"searxng_url: '{url}' is no address; expected one like http://127.0.0.1:8080")
    return url
