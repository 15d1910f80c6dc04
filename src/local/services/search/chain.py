"""Search with fallback: the first provider that can look answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from local.errors import SearchUnavailable, ToolError
from local.services.search.cache import ExpiringCache
from local.services.search.flights import SharedFlights
from local.services.search.lane import Lane
from local.services.search.outcome import SearchOutcome
from local.services.search.provider import SearchProvider

CACHED_ANSWERS = 256
MAX_RESULTS = 20  # what Brave and Tavily give at most
QUERY_CHARS = 400  # what Brave and Tavily take at most

_Key = tuple[str, int]


class SearchChain:
    """Asks the providers in order until one could look; "found nothing" is an answer and ends the search, too.

    Answers are kept for `cache_seconds`, identical queries under way share one request, each provider gets one query at
    a time, and one that named a time to come back is passed over until then. `timeout_seconds` is for the whole search;
    a provider may use up its share of what is left, so that one that hangs leaves time for the next.
    """

    def __init__(
        self,
        providers: Sequence[SearchProvider],
        *,
        cache_seconds: float = 300.0,
        timeout_seconds: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lanes = [Lane(provider, clock) for provider in providers]
        self._timeout_seconds, self._clock = timeout_seconds, clock
        self._cache = ExpiringCache[_Key, SearchOutcome](seconds=cache_seconds, size=CACHED_ANSWERS)
        self._flights = SharedFlights[_Key, SearchOutcome]()

    async def search(self, query: str, max_results: int) -> SearchOutcome:
        """Search for `query`; `max_results` is brought into 1 to 20.

        Raises SearchUnavailable, naming every provider and its reason, if none could look, and ToolError for a query
        that is empty or longer than 400 characters.
        """
        query, limit = _checked(query), min(max(max_results, 1), MAX_RESULTS)
        key = (query.casefold(), limit)
        cached = self._cache.get(key, self._clock())
        if cached is not None:
            return cached
        return await self._flights.run(key, lambda: self._ask(key, query))

    async def close(self) -> None:
        """Close every provider."""
        for lane in self._lanes:
            await lane.close()

    async def _ask(self, key: _Key, query: str) -> SearchOutcome:
        deadline = self._clock() + self._timeout_seconds
        failures: list[SearchUnavailable] = []
        for place, lane in enumerate(self._lanes):
            share = max(0.0, deadline - self._clock()) / (len(self._lanes) - place)
            try:
                hits = await lane.search(query, key[1], share)
            except SearchUnavailable as failure:
                failures.append(failure)
                continue
            outcome = SearchOutcome(query, lane.name, tuple(hits), tuple((f.provider, f.reason) for f in failures))
            self._cache.put(key, outcome, self._clock())
            return outcome
        raise _all_failed(failures)


def _checked(query: str) -> str:
    query = " ".join(query.split())
    if not query:
        raise ToolError("the search query is empty; say what to search for", kind="bad_argument")
    if len(query) > QUERY_CHARS:
        message = f"the search query has {len(query)} characters; at most {QUERY_CHARS} are possible, use key words"
        raise ToolError(message, kind="bad_argument")
    return query


def _all_failed(failures: Sequence[SearchUnavailable]) -> SearchUnavailable:
    reasons = "; ".join(f"{failure.provider}: {failure.reason}" for failure in failures)
    pauses = [failure.retry_after for failure in failures if failure.retry_after is not None]
    return SearchUnavailable("web search", reasons or "no provider is configured", min(pauses, default=None))
