"""Pages that were read a moment ago, so that asking for their next part does not fetch them again."""

from __future__ import annotations

from dataclasses import dataclass

from local.services.page_article import Article


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
