"""Reading a web page, part by part: fetch, extract, cut."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local.errors import ToolError
from local.services.address_guard import AddressGuard
from local.services.fetcher import Fetcher, Resolver, resolve_host
from local.services.page_article import Article, Link, read_article
from local.services.page_cache import CachedPage, PageCache
from local.services.page_cut import next_start, part_end


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
        allow_hosts: Sequence[str] = (),
        max_bytes: int = 5_000_000,
        resolve: Resolver = resolve_host,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fetch_max_chars` is the length of a part; `timeout_seconds` bounds the fetch, and again the extraction."""
        self._fetch_max_chars = fetch_max_chars
        self._timeout_seconds = timeout_seconds
        self._guard = AddressGuard(allow_hosts)
        self._fetcher = Fetcher(self._guard, timeout_seconds=timeout_seconds, max_bytes=max_bytes, resolve=resolve)
        self._clock = clock
        self._cache = PageCache()

    async def read(self, url: str, start: int = 0) -> Page:
        """The part of a page that begins at character `start`.

        `ToolError`, besides the fetcher's kinds: no_text for a page without any, bad_start for a start beyond its end.
        """
        requested = str(self._guard.check_url(url))
        page = self._cache.get(requested, self._clock()) or await self._load(requested)
        return self._part(page.url, page.article, start)

    async def _load(self, url: str) -> CachedPage:
        document = await self._fetcher.fetch(url)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                article = await asyncio.to_thread(read_article, document)
        except TimeoutError:
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
