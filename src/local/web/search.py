"""Search with fallback: the first provider that can look answers."""

from __future__ import annotations

import asyncio
import difflib
import html
import importlib
import json
import math
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Generic, Protocol, Self, TypeVar
from urllib.parse import urldefrag, urlsplit

import httpx
from pydantic import Field, SecretStr

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.core.config import Settings
from local.core.errors import ConfigError, SearchUnavailable, ToolError
from local.runtime.participant import Resources, on
from local.tools.tool import Tool, ToolOutput
from local.web.messages import SearchTrial, SearchTrialResult

# One search hit, its conversion from a provider's result, and the text of hits for the model.

TITLE_CHARS = 200
SNIPPET_CHARS = 500
URL_CHARS = 2048

# Names are listed because much of the input is plain text, where `List<String>` or `a <b` is not markup.
_TAG = re.compile(
    r"</?(?:a|abbr|article|b|big|blockquote|body|br|center|cite|code|dd|del|div|dl|dt|em|figure|font|form|h[1-6]|head|"
    r"hr|html|i|iframe|img|input|ins|kbd|label|li|link|mark|meta|object|ol|p|picture|pre|q|s|samp|script|section|small|"
    r"span|strike|strong|style|sub|sup|svg|table|tbody|td|th|thead|time|title|tr|tt|u|ul|var|video|wbr)"
    r"(?:[\s/][^<>]*)?>"
    r"|<![^<>]*>",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One page that a provider found. Title and snippet are plain text on one line; the snippet may be empty."""

    title: str
    snippet: str
    url: str


def plain_text(value: object, limit: int) -> str:
    """Return `value` without markup, entities, control characters and runs of whitespace, cut at a word to `limit`
    characters.

    Anything but a string becomes "".
    """
    if not isinstance(value, str):
        return ""
    # Entities come last, so that an escaped "&lt;div&gt;" in a title about HTML survives as text.
    text = _CONTROL.sub(" ", html.unescape(_TAG.sub("", value)))
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    if len(text) <= limit:
        return text
    whole_words = text[: limit - 1].rpartition(" ")[0]
    return (whole_words or text[: limit - 1]) + "…"


def _is_web_address(value: object) -> bool:
    if not isinstance(value, str) or len(value) > URL_CHARS or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def hits_of(provider: str, results: object, max_results: int, *, snippet: str, url: str = "url") -> list[SearchHit]:
    """Return the usable hits of a provider's list of results, at most `max_results`; the keywords name the fields of an
    item.

    Addresses that are not http(s) and repeated pages are dropped. Raises `SearchUnavailable` when `results` is no list
    of objects or none of them has an address at all: such an answer was not understood, which is not "nothing found".
    """
    if not isinstance(results, list) or not all(isinstance(item, Mapping) for item in results):
        raise SearchUnavailable(provider, "its answer has no list of results")
    if results and not any(isinstance(item.get(url), str) for item in results):
        raise SearchUnavailable(provider, f"none of its results has a '{url}'")
    hits = (
        SearchHit(plain_text(item.get("title"), TITLE_CHARS), plain_text(item.get(snippet), SNIPPET_CHARS), item[url])
        for item in results
        if _is_web_address(item.get(url))
    )
    return _distinct(hits, max_results)


def _distinct(hits: Iterable[SearchHit], limit: int) -> list[SearchHit]:
    """The first `limit` pages; two addresses that differ in fragment or final slash alone are one page."""
    pages: dict[str, SearchHit] = {}
    for hit in hits:
        pages.setdefault(urldefrag(hit.url).url.rstrip("/"), hit)
        if len(pages) >= limit:
            break
    return list(pages.values())


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The result of a search that was answered. No hits means that `provider` found nothing.

    `tried` names the providers that failed before it, as (provider, reason).
    """

    query: str
    provider: str
    hits: tuple[SearchHit, ...]
    tried: tuple[tuple[str, str], ...] = ()


def render(outcome: SearchOutcome, today: date) -> str:
    """Return the text for the model: today's date first, then each numbered hit, or that there is none."""
    if outcome.hits:
        body = [_entry(number, hit) for number, hit in enumerate(outcome.hits, start=1)]
    else:
        body = [f'The search worked and found nothing for "{outcome.query}". Provider asked: {outcome.provider}.']
    if outcome.tried:
        failed = "; ".join(f"{provider} could not search ({reason})" for provider, reason in outcome.tried)
        body.append(f"Note: {failed}. {outcome.provider} answered instead.")
    return "\n\n".join([f"Today's date: {today.isoformat()}", *body])


def _entry(number: int, hit: SearchHit) -> str:
    return f"[{number}] Title: {hit.title or hit.url}\n    Snippet: {hit.snippet or '(none)'}\n    URL: {hit.url}"


# The HTTP client of one provider: returns a JSON object, or the reason why there is none.

# No provider limits for more than a month, so a larger number is a timestamp or a mistake.
LONGEST_SECONDS = 31 * 86_400.0


def pause_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds until the server may be asked again, or None if it does not say.

    `headers` must look up names without regard to case; `now` is aware. Uses Retry-After (RFC 9110: seconds or a date)
    and, without one, Brave's pair X-RateLimit-Remaining and X-RateLimit-Reset (seconds), a value for each window.
    """
    stated = headers.get("retry-after", "").strip()
    seconds = _seconds(stated)
    if seconds is None:
        seconds = _seconds_until(stated, now)
    if seconds is None:
        seconds = _exhausted_window(headers)
    return seconds if seconds is not None and seconds <= LONGEST_SECONDS else None


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:  # the result of parsing "-0000"; RFC 9110 knows GMT alone
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _exhausted_window(headers: Mapping[str, str]) -> float | None:
    remaining = headers.get("x-ratelimit-remaining", "").split(",")
    resets = headers.get("x-ratelimit-reset", "").split(",")
    waits = [_seconds(reset) for left, reset in zip(remaining, resets, strict=False) if left.strip() == "0"]
    return max((wait for wait in waits if wait is not None), default=None)


BODY_BYTES = 4 * 1024 * 1024
DETAIL_CHARS = 200
_KEY_HEADERS = {"authorization", "x-subscription-token"}


class ProviderClient:
    """The HTTP client of one search provider. Every way to fail is a SearchUnavailable; no key is ever part of its
    text."""

    def __init__(self, provider: str, base_url: str, hints: Mapping[int, str]) -> None:
        """`hints` are sentences, by HTTP status, on what a person can do about it."""
        self.name, self._hints = provider, hints
        self._address = str(httpx.URL(base_url).copy_with(userinfo=b"")).rstrip("/")
        # The chain bounds the time of a whole search; httpx bounds each read, which one byte a second satisfies.
        self._client = httpx.AsyncClient(
            base_url=base_url,
            timeout=None,
            trust_env=False,
            follow_redirects=False,
            verify=self._address.startswith("https:"),  # plain http has no use for certificates, which take 25 ms
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def get(
        self, path: str, params: Mapping[str, str | int], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """GET a JSON object. Raises SearchUnavailable."""
        return await self._ask(self._client.build_request("GET", path, params=params, headers=headers))

    async def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """POST a JSON object and get one back. Raises SearchUnavailable."""
        return await self._ask(self._client.build_request("POST", path, json=body, headers=headers))

    async def _ask(self, request: httpx.Request) -> dict[str, Any]:
        try:
            response = await self._client.send(request, stream=True)
            try:
                body = await self._read(response)
            finally:
                await response.aclose()
        except httpx.ConnectError as error:
            raise self._unavailable(f"no connection to {self._address} ({error})") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # the second one for a redirect to an invalid address
            # Its text may quote a header, and a header may hold the key.
            raise self._unavailable(f"the exchange with {self._address} broke ({type(error).__name__})") from None
        payload = _parsed(body)
        if response.status_code != httpx.codes.OK:
            raise self._refused(response, payload)
        if not isinstance(payload, dict):
            raise self._unavailable(f"{self._address} answered something that is not a JSON object")
        return payload

    async def _read(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > BODY_BYTES:
                raise self._unavailable(f"{self._address} answered with more than {BODY_BYTES} bytes")
        return bytes(body)

    def _refused(self, response: httpx.Response, payload: object) -> SearchUnavailable:
        status = response.status_code
        said = f"HTTP {status} {response.reason_phrase}".strip()
        if response.has_redirect_location:
            said += f", a redirect to {plain_text(response.headers['location'], DETAIL_CHARS)}"
        parts = [said, _without_keys(_detail(payload), response.request), self._hints.get(status, "")]
        pause = pause_seconds(response.headers, datetime.now(UTC))
        return self._unavailable("; ".join(part for part in parts if part), pause)

    def _unavailable(self, reason: str, retry_after: float | None = None) -> SearchUnavailable:
        return SearchUnavailable(self.name, reason, retry_after)


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _without_keys(text: str, request: httpx.Request) -> str:
    """Return a server's message, without a key that it may repeat."""
    for name in _KEY_HEADERS & request.headers.keys():
        for secret in {request.headers[name], request.headers[name].rpartition(" ")[2]}:
            text = text.replace(secret, "…")
    return text


def _detail(payload: object) -> str:
    """Return the reason of a refusal by Brave ({"error": {"detail"}}) or Tavily ({"detail": {"error"}}), else ""."""
    for outer, inner in (("error", "detail"), ("detail", "error")):
        part = payload.get(outer) if isinstance(payload, dict) else None
        if isinstance(part, dict):
            return plain_text(part.get(inner), DETAIL_CHARS)
    return ""


# The places to search: SearXNG, Brave, Tavily, the `ddgs` package, and one that never leaves the process.


class SearchProvider(Protocol):
    """Base class of search providers. An empty list means that nothing was found; a provider that cannot search
    raises.

    A search may run forever: the chain, which bounds the time, cancels it.
    """

    @property
    def name(self) -> str:
        """The name in the configuration, such as `searxng`."""
        ...

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """Return at most `max_results` hits, best first. Raises `SearchUnavailable`, and no other error of its own."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


def usable_key(provider: str, variable: str, key: str | None) -> str:
    """Return `key`, fit for an HTTP header. Raises `SearchUnavailable` that says how to set it."""
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
    """A client of one SearXNG instance."""

    def __init__(self, base_url: str) -> None:
        super().__init__("searxng", base_url, _SEARXNG_HINTS)

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """Return at most `max_results` hits. Raises `SearchUnavailable`, also when none of its engines answered."""
        answer = await self.get("search", {"q": query, "format": "json"})
        results, silent = answer.get("results"), answer.get("unresponsive_engines")
        if not results and silent:
            # An empty HTTP 200 is how SearXNG reports that its own sources refused it.
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
    """A client of the Brave Search API."""

    def __init__(self, api_key: str | None, *, base_url: str = "https://api.search.brave.com/res/v1") -> None:
        self._key = api_key
        super().__init__("brave", base_url, _BRAVE_HINTS)

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """Return at most `max_results` hits (Brave returns up to 20). Raises `SearchUnavailable`, also for a missing
        key.
        """
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
    """A client of the Tavily search API."""

    def __init__(self, api_key: str | None, *, base_url: str = "https://api.tavily.com") -> None:
        self._key = api_key
        super().__init__("tavily", base_url, _TAVILY_HINTS)

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """Return at most `max_results` hits (Tavily returns up to 20). Raises `SearchUnavailable`, also for a missing
        key.
        """
        token = usable_key(self.name, TAVILY_KEY, self._key)
        answer = await self.post(
            "search", {"query": query, "max_results": max_results}, headers={"Authorization": f"Bearer {token}"}
        )
        return hits_of(self.name, answer.get("results"), max_results, snippet="content")


class DdgsProvider:
    """A search provider that uses `ddgs`, an optional package that is imported at the first search.

    `timeout_seconds` bounds its thread, which cannot be cancelled.
    """

    name = "ddgs"

    def __init__(self, *, timeout_seconds: float = 15.0) -> None:
        self._timeout_seconds = timeout_seconds

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """Return at most `max_results` hits, never none. Raises `SearchUnavailable`.

        ddgs reports "No results found." both when nothing matches and when every engine refused it. The two cannot be
        distinguished, so that is an error here: it must not pass for knowledge that nothing exists.
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
        """Do nothing: no connection is kept between searches."""


class MockProvider:
    """A provider for tests, which returns the same hits to every query; by default two that repeat the query and state
    that they are made up.
    """

    name = "mock"

    def __init__(self, hits: Sequence[SearchHit] | None = None) -> None:
        self._hits = hits

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        """At most `max_results` hits."""
        hits = self._hits if self._hits is not None else [_made_up(query, number) for number in (1, 2)]
        return list(hits[:max_results])

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _made_up(query: str, number: int) -> SearchHit:
    snippet = f"Result {number} of the mock search provider for: {query}. Nothing was searched."
    return SearchHit(f"Mock result {number}", snippet, f"https://example.com/mock/{number}")


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """A cache of at most `size` values, each for `seconds`; the oldest goes first. Times are those the caller passes
    in."""

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
    """The running tasks by key: callers with the key of a running task wait for the same result or error.

    The callers own the task together: it runs while one of them waits, and is cancelled when the last one gives up.
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
    """The queue of one provider: one query at a time. `clock` is monotonic, in seconds."""

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
MAX_RESULTS = 20  # the maximum of Brave and Tavily
QUERY_CHARS = 400  # the maximum of Brave and Tavily

_Key = tuple[str, int]


class SearchChain:
    """A chain of the configured providers, asked in order until one could search; "found nothing" is an answer and
    ends the search, too.

    Answers are kept for `cache_seconds`, identical queries share one request, each provider gets one query at a time,
    and a provider that named a time for the next request is skipped until then. `timeout_seconds` is for the whole
    search; a provider may use its share of the remaining time, so that a hanging one leaves time for the next.
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
    """Return the chain of `provider` and then `fallback_providers`, each name once.

    A missing key is no error here: the provider reports it when it is asked, and a fallback can still answer. Raises
    `ConfigError` for an unknown name and for a `searxng_url` that is no http(s) address.
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


# The tool that looks things up on the web.

AUTO = "auto"  # the provider while none is chosen


class WebSearchConfig(Settings):
    """The settings in `web_search.yaml`; the comments there explain each key. Environment variables may contain the
    API keys, too.
    """

    provider: str = Field(AUTO, json_schema_extra={"enum": [AUTO, "searxng", "brave", "tavily", "ddgs", "mock"]})
    fallback_providers: tuple[str, ...] = ()
    max_results: int = Field(5, ge=1, le=20)
    timeout_seconds: float = Field(15, gt=0)
    searxng_url: str = "http://localhost:8888"
    cache_seconds: float = Field(300, ge=0)
    brave_api_key: SecretStr | None = None
    tavily_api_key: SecretStr | None = None


class WebSearchTool(Tool):
    """Search the web for current facts, news, prices or pages on a topic. Returns today's date and numbered results,
    each with title, snippet and URL. Use web_fetch on a URL to read the whole page."""

    name = "web_search"
    Config = WebSearchConfig
    effect = "read"
    safety = "L0"
    category = "web"
    repeatable = False

    def __init__(self, config: WebSearchConfig, chain: SearchChain) -> None:
        super().__init__(config)
        self._chain = chain
        self._provider, self._max_results = config.provider, config.max_results
        self.timeout_seconds = config.timeout_seconds + 1.0  # the chain's own limit comes first and explains itself

    @classmethod
    def build(cls, config: WebSearchConfig, resources: Resources) -> Self:
        """Build the tool with the configured chain of providers."""
        chain = build_chain(
            provider="searxng" if config.provider == AUTO else config.provider,
            fallback_providers=config.fallback_providers,
            searxng_url=config.searxng_url,
            brave_api_key=_value(config.brave_api_key),
            tavily_api_key=_value(config.tavily_api_key),
            timeout_seconds=config.timeout_seconds,
            cache_seconds=config.cache_seconds,
        )
        return cls(config, chain)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Close the providers' connections at the end."""
        try:
            yield
        finally:
            await self._chain.close()

    def details(self) -> dict[str, str]:
        """Return the chosen provider, "auto" while none is chosen."""
        return {"provider": self._provider}

    async def run(self, query: Annotated[str, "What to search for, in a few words"]) -> ToolOutput:
        """Search, and return the hits, or that nothing was found, or that no provider could search."""
        outcome = await self._chain.search(query, self._max_results)
        return ToolOutput(render(outcome, date.today()), tuple(hit.url for hit in outcome.hits))

    @on(SearchTrial)
    async def try_out(self, asked: SearchTrial, envelope: Envelope) -> SearchTrialResult:
        """Search for an owner who wants to see whether this works."""
        try:
            outcome = await self._chain.search(asked.query, self._max_results)
        except SearchUnavailable as error:
            return SearchTrialResult(error=ErrorInfo(kind="unavailable", message=str(error)))
        except ToolError as error:
            return SearchTrialResult(error=ErrorInfo(kind="invalid", message=str(error)))
        urls = tuple(hit.url for hit in outcome.hits)
        return SearchTrialResult(provider=outcome.provider, text=render(outcome, date.today()), sources=urls)


def _value(key: SecretStr | None) -> str | None:
    return None if key is None else key.get_secret_value()


def key_problem(provider: str, config: WebSearchConfig) -> str | None:
    """Return the problem of the API key of `brave` or `tavily`, or None."""
    variable, key = {
        "brave": (BRAVE_KEY, config.brave_api_key),
        "tavily": (TAVILY_KEY, config.tavily_api_key),
    }[provider]
    try:
        usable_key(provider, variable, _value(key))
    except SearchUnavailable as error:
        return error.reason
    return None
