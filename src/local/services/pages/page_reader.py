"""Reading a web page, part by part: fetch, extract, cut."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local.errors import ToolError
from local.services.pages.address_guard import AddressGuard
from local.services.pages.article import Article, Link, read_article
from local.services.pages.fetcher import Fetcher, Resolver, elsewhere, resolve_host
from local.services.pages.reading_limit import MOST_STEPS, ReadingLimit, TooMuchWork
from local.services.pages.web_url import parse_web_url

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？]|(?=\n)")
_WORD_END = re.compile(r"(?=\s)")
_JOINER = "\u200d"
_LONGEST_CLUSTER = 64


def part_end(text: str, start: int, limit: int) -> int:
    """The index at which a part that begins at `start` and has at most `limit` (≥ 1) characters ends; > start."""
    hard = start + limit
    if hard >= len(text):
        return len(text)
    floor = start + max(1, limit // 2)
    for pattern in (_SENTENCE_END, _WORD_END):
        # One character more is looked at: an end at `hard` is known by what follows it.
        ends = [match.end() for match in pattern.finditer(text, floor, hard + 1) if match.end() <= hard]
        if ends:
            return ends[-1]
    return _character_end(text, start, hard)


def next_start(text: str, end: int) -> int | None:
    """Where the part after one that ended at `end` begins: at the next character that is not white space."""
    return next((index for index in range(end, len(text)) if not text[index].isspace()), None)


def _character_end(text: str, start: int, hard: int) -> int:
    for end in range(hard, max(start, hard - _LONGEST_CLUSTER), -1):
        if not _continues(text, end):
            return end
    return hard


def _continues(text: str, index: int) -> bool:
    """Whether the character at `index` belongs to the one before it: accent, joined emoji, skin tone, surrogate."""
    character, before = text[index], text[index - 1]
    return (
        unicodedata.category(character).startswith("M")
        or _JOINER in (character, before)
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or ("\udc00" <= character <= "\udfff" and "\ud800" <= before <= "\udbff")
    )


@dataclass(frozen=True, slots=True)
class CachedPage:
    """An article, the address it finally came from, and when it was put away (monotonic seconds)."""

    url: str
    article: Article
    stored_at: float


class PageCache:
    """At most `max_chars` characters of text (the newest page always fits), none older than `ttl_seconds`."""

    def __init__(self, *, max_chars: int = 4_000_000, ttl_seconds: float = 300.0) -> None:
        self._max_chars = max_chars
        self._ttl_seconds = ttl_seconds
        self._pages: dict[str, CachedPage] = {}  # by final address, oldest first
        self._final_urls: dict[str, str] = {}  # by the address that was asked for

    def get(self, url: str, now: float) -> CachedPage | None:
        """The page last put away under this address, unless it has grown old. `now`: monotonic seconds."""
        page = self._pages.get(self._final_urls.get(url, url))
        return page if page and self._is_fresh(page, now) else None

    def put(self, requested_url: str, page: CachedPage) -> None:
        """Keep a page under the address asked for and the one it came from; forget old ones, and the oldest if full."""
        self._pages.pop(page.url, None)
        kept = {url: old for url, old in self._pages.items() if self._is_fresh(old, page.stored_at)}
        kept[page.url] = page
        while len(kept) > 1 and sum(len(one.article.text) for one in kept.values()) > self._max_chars:
            del kept[next(iter(kept))]
        self._pages = kept
        self._final_urls[requested_url] = page.url
        self._final_urls = {asked: final for asked, final in self._final_urls.items() if final in kept}

    def _is_fresh(self, page: CachedPage, now: float) -> bool:
        return now - page.stored_at < self._ttl_seconds


@dataclass(frozen=True, slots=True)
class Page:
    """One part of a page's text: characters `start` to `end` of `total_chars`.

    `url` is where the page was finally found; `title` may be empty; `next_start` is what to ask for to read on, None at
    the end; `links` are the first ones of the whole page.
    """

    url: str
    title: str
    text: str
    start: int
    end: int
    total_chars: int
    next_start: int | None
    links: tuple[Link, ...] = ()


class PageReader:
    """Reads public web pages (and the hosts in `allow_hosts`: "host" or "host:port") as plain text."""

    def __init__(
        self,
        *,
        fetch_max_chars: int = 8000,
        timeout_seconds: float = 20.0,
        most_steps: int = MOST_STEPS,
        allow_hosts: Sequence[str] = (),
        resolve: Resolver = resolve_host,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fetch_max_chars` is the length of a part; `timeout_seconds` limits the fetch; reading the page may then
        take four times as long."""
        self._fetch_max_chars = fetch_max_chars
        self._limit = ReadingLimit(timeout_seconds, most_steps)
        self._guard = AddressGuard(allow_hosts)
        self._fetcher = Fetcher(self._guard, timeout_seconds=timeout_seconds, resolve=resolve)
        self._clock = clock
        self._cache = PageCache()

    async def read(self, url: str, start: int = 0, *, same_host: bool = False) -> Page:
        """The part of a page that begins at character `start`; with `same_host`, of no page on another host.

        `ToolError`, besides the fetcher's kinds: no_text for a page without any, bad_start for a start beyond its end.
        """
        checked = self._guard.check_url(url)
        requested = str(checked)
        page = self._cache.get(requested, self._clock()) or await self._load(requested, same_host=same_host)
        if same_host and parse_web_url(page.url).host != checked.host:
            raise elsewhere(page.url, requested)
        return self._part(page.url, page.article, start)

    async def _load(self, url: str, *, same_host: bool) -> CachedPage:
        document = await self._fetcher.fetch(url, same_host=same_host)
        try:
            article = await self._limit.within(lambda: read_article(document))
        except TooMuchWork:
            raise ToolError(f"{document.url} is too complicated to be read", kind="timeout") from None
        if not article.text:
            raise ToolError(f"{document.url} has no readable text; it may need a browser to show any", kind="no_text")
        page = CachedPage(document.url, article, self._clock())
        self._cache.put(url, page)
        return page

    def _part(self, url: str, article: Article, start: int) -> Page:
        total = len(article.text)
        if not 0 <= start < total:
            raise ToolError(f"start is {start}, but the text of {url} goes from 0 to {total}", kind="bad_start")
        end = part_end(article.text, start, self._fetch_max_chars)
        following = next_start(article.text, end)
        text = article.text[start:end]
        return Page(url, article.title, text, start, end, total, following, article.links)
