"""Search with fallback: the first provider that can look answers."""

from __future__ import annotations

import asyncio
import difflib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx

from local.errors import ConfigError, SearchUnavailable, ToolError
from local.services.search.hit import SearchHit, SearchOutcome
from local.services.search.providers import (
    BraveProvider,
    DdgsProvider,
    MockProvider,
    SearchProvider,
    SearxngProvider,
    TavilyProvider,
)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """At most `size` values, each for `seconds`; the oldest goes first. Times are those the caller passes in."""

    def __init__(self, *, seconds: float, size: int) -> None:
        self._seconds, self._size = seconds, size
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K, now: float) -> V | None:
        """The value, if it is there and not older than `seconds`."""
        entry = self._entries.get(key)
        return entry[1] if entry and now - entry[0] < self._seconds else None

    def put(self, key: K, value: V, now: float) -> None:
        """Keep `value` from `now` on."""
        self._entries.pop(key, None)
        self._entries[key] = (now, value)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)


@dataclass
class _Flight(Generic[V]):
    task: asyncio.Task[V]
    waiting: int = 0


class SharedFlights(Generic[K, V]):
    """Runs one task for each key; whoever asks for a running key waits for the same result or error.

    The callers own the task together: it goes on while one of them waits, and the last to give up takes it down.
    """

    def __init__(self) -> None:
        self._flights: dict[K, _Flight[V]] = {}

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The result of `work`, or of the `work` that is already under way for `key`."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(work()))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                del self._flights[key]
                await _end(flight.task)


async def _end(task: asyncio.Task[Any]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


class Lane:
    """Leads queries to one provider. `clock` is monotonic, in seconds."""

    def __init__(self, provider: SearchProvider, clock: Callable[[], float]) -> None:
        self.name = provider.name
        self._provider, self._clock = provider, clock
        self._turn = asyncio.Lock()
        self._paused_until = clock()

    async def search(self, query: str, max_results: int, seconds: float) -> list[SearchHit]:
        """Ask, at most `seconds` long, waiting in line included. Raises SearchUnavailable."""
        try:
            async with asyncio.timeout(seconds), self._turn:
                self._refuse_while_paused()
                return await self._provider.search(query, max_results)
        except TimeoutError:
            raise SearchUnavailable(self.name, f"no answer within {seconds:.1f} s") from None
        except SearchUnavailable as failure:
            self._paused_until = self._clock() + (failure.retry_after or 0.0)
            raise

    async def close(self) -> None:
        """Close the provider."""
        await self._provider.close()

    def _refuse_while_paused(self) -> None:
        left = self._paused_until - self._clock()
        if left > 0:
            raise SearchUnavailable(self.name, f"it asked not to be asked again for another {left:.0f} s", left)


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
        raise ConfigError(
            f"searxng_url: '{url.rpartition('@')[2]}' is no address; expected one like http://127.0.0.1:8080"
        )
    return url
