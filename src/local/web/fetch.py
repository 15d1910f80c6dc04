"""Fetching one document from the public web: guarded at every step, capped in bytes and in time."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.client import responses as _PHRASES
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Annotated, Self
from urllib.parse import urljoin

import httpx
from pydantic import Field

from local.core.attachments import picture_type
from local.core.config import Settings
from local.core.errors import FetchRefused, ToolError
from local.core.excerpts import next_start, part_end
from local.core.web_text import Article, Document, Link, read_article
from local.core.web_url import AddressGuard, MediaType, WebUrl, check_is_text, parse_web_url, readable_type
from local.runtime.participant import Resources
from local.tools.tool import Tool, ToolOutput

_GZIP = 16 + zlib.MAX_WBITS


async def read_body(chunks: AsyncIterator[bytes], encoding: str, max_bytes: int) -> bytes:
    """Join the chunks of a body with content encoding "", "identity" or "gzip".

    `ToolError` of kind too_large beyond `max_bytes` (sent or decompressed), unsupported_type if it cannot be decoded.
    """
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ToolError(
            f"the page is compressed as {encoding[:40]!r}, which was not asked for", kind="unsupported_type"
        )
    inflater = zlib.decompressobj(_GZIP) if encoding.endswith("gzip") else None
    body = bytearray()
    wire_bytes = 0
    async for chunk in chunks:
        wire_bytes += len(chunk)
        body += _inflate(inflater, chunk, max_bytes + 1 - len(body)) if inflater else chunk
        if max(wire_bytes, len(body)) > max_bytes:
            raise too_large(max_bytes)
    return bytes(body)


def too_large(max_bytes: int) -> ToolError:
    """The error for a page beyond the cap."""
    return ToolError(f"the page is larger than the {max_bytes:,} bytes that are read of one page", kind="too_large")


def elsewhere(target: str, url: str) -> FetchRefused:
    """The error for an address that leads to another host where it must not."""
    return FetchRefused(target, f"{url} redirects there, and that host is not on the list always_readable")


def _inflate(inflater: zlib._Decompress, chunk: bytes, room: int) -> bytes:
    """Return at most `room` bytes, which makes a bomb harmless; data after the end of the stream is ignored."""
    try:
        return b"" if inflater.eof else inflater.decompress(chunk, room)
    except zlib.error as error:
        raise ToolError(f"the page is not the gzip it says it is ({error})", kind="unsupported_type") from None


Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host name and port to IP addresses, best first; raises `OSError` if there are none."""

MAX_REDIRECTS = 5
_MAX_ADDRESSES = 3
_CONNECT_SECONDS = 5.0
_LOCATION = "location"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; LoCAL2/0.1; a local assistant reading one page for its user)",
    "Accept": "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/json;q=0.8, */*;q=0.1",
    "Accept-Language": "en, *;q=0.5",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The operating system's answer, each address once."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Fetcher:
    """A client that fetches documents from public addresses. A name is resolved once per hop, and the connection goes
    to exactly the address that was checked.

    Every failure is a `ToolError` of kind refused, timeout, too_large, http_status, unsupported_type, connect, dns or
    redirect. Nothing is kept between two fetches: no cookies, no connections.
    """

    accept = _HEADERS["Accept"]

    def __init__(
        self,
        guard: AddressGuard,
        *,
        timeout_seconds: float = 20.0,
        max_bytes: int = 5_000_000,
        resolve: Resolver = resolve_host,
    ) -> None:
        self._guard = guard
        self._timeout_seconds = timeout_seconds
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str, *, same_host: bool = False) -> Document:
        """Follow an address to its document within `timeout_seconds` in all; with `same_host`, to no other host."""
        try:
            async with asyncio.timeout(self._timeout_seconds), self._client() as client:
                return await self._follow(client, self._guard.check_url(url), same_host=same_host)
        except TimeoutError:
            message = f"{url} did not answer completely within {self._timeout_seconds:g} s"
            raise ToolError(message, kind="timeout") from None

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[httpx.AsyncClient]:
        if self._tls is None:
            self._tls = await asyncio.to_thread(httpx.create_ssl_context)
        async with httpx.AsyncClient(
            verify=self._tls,
            trust_env=False,
            headers={**_HEADERS, "Accept": self.accept},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            event_hooks={"response": [_take_location]},
            timeout=httpx.Timeout(self._timeout_seconds, connect=min(_CONNECT_SECONDS, self._timeout_seconds)),
            # A connection is to an address under one name's certificate; another name must never get it.
            limits=httpx.Limits(max_keepalive_connections=0),
        ) as client:
            yield client

    async def _follow(self, client: httpx.AsyncClient, url: WebUrl, *, same_host: bool) -> Document:
        visited = {url}
        while True:
            step = await self._get(client, url)
            if isinstance(step, Document):
                return step
            if same_host and step.host != url.host:
                raise elsewhere(str(step), str(url))
            url = step
            if url in visited:
                raise ToolError(f"{url} redirects in a circle", kind="redirect")
            if len(visited) > MAX_REDIRECTS:
                raise ToolError(f"more than {MAX_REDIRECTS} redirects, the last one to {url}", kind="redirect")
            visited.add(url)

    async def _get(self, client: httpx.AsyncClient, url: WebUrl) -> Document | WebUrl:
        """Fetch one hop: the document, or the checked address it redirects to."""
        response = await self._connect(client, url)
        try:
            location = response.extensions[_LOCATION]
            if response.status_code in _REDIRECTS and location is not None:
                return self._redirect(url, location)
            _check_status(url, response.status_code)
            return await self._document(url, response)
        except httpx.HTTPError as error:
            raise _broken(url, error) from None
        finally:
            await response.aclose()

    async def _connect(self, client: httpx.AsyncClient, url: WebUrl) -> httpx.Response:
        """The response's headers, from the first of the judged addresses that takes a connection."""
        failure: httpx.HTTPError | None = None
        for address in await self._addresses(url):
            request = client.build_request(
                "GET",
                httpx.URL(str(url)).copy_with(host=address),
                headers={"Host": url.netloc},
                extensions={"sni_hostname": url.host},  # also the name that the certificate is checked against
            )
            try:
                return await client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
            except httpx.HTTPError as error:
                raise _broken(url, error) from None
        message = f"no connection to {url.netloc}: {failure or 'its name has no address'}"
        raise ToolError(message, kind="connect")

    async def _addresses(self, url: WebUrl) -> Sequence[str]:
        """Return the addresses to connect to. One forbidden address among them refuses all, because an honest name has
        none.
        """
        if url.address is not None:
            return [url.host]
        try:
            addresses = await self._resolve(url.host, url.port)
        except (OSError, UnicodeError) as error:
            raise ToolError(f"the name {url.host} could not be resolved ({error})", kind="dns") from None
        for address in addresses:
            self._guard.check_address(url, address)
        return addresses[:_MAX_ADDRESSES]

    def _redirect(self, url: WebUrl, location: str) -> WebUrl:
        if "\\" in location:
            raise FetchRefused(location, f"{url} redirects there, but with a backslash it is no address")
        try:
            return self._guard.check_url(urljoin(str(url), location.strip().replace(" ", "%20")))
        except FetchRefused as error:
            raise FetchRefused(error.url, f"{url} redirects there, but {error.reason}") from None
        except ValueError:
            raise FetchRefused(location, f"{url} redirects there, but it is no address") from None

    async def _document(self, url: WebUrl, response: httpx.Response) -> Document:
        headers = response.headers
        media_type = readable_type(headers.get("content-type", ""))
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes:
            raise too_large(self._max_bytes)
        encoding = headers.get("content-encoding", "").strip().lower()
        body = await read_body(response.aiter_raw(), encoding, self._max_bytes)
        check_is_text(body, media_type.charset)
        return Document(str(url), media_type, body)


class PictureFetcher(Fetcher):
    """A client that fetches PNG, JPEG, GIF and WebP pictures; the bytes decide, not the type that the server names."""

    accept = "image/webp, image/png, image/jpeg, image/gif;q=0.9"

    async def _document(self, url: WebUrl, response: httpx.Response) -> Document:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        body = await read_body(response.aiter_raw(), encoding, self._max_bytes)
        kind = picture_type(body)
        if kind is None:
            text = f"{url} is no PNG, JPEG, GIF or WebP picture"
            raise ToolError(text, kind="unsupported_type")
        return Document(str(url), MediaType(kind), body)


async def _take_location(response: httpx.Response) -> None:
    """Remove the address from httpx's view, which fails on an invalid one even if it is not to follow it."""
    response.extensions[_LOCATION] = response.headers.pop("location", None)


def _check_status(url: WebUrl, status: int) -> None:
    if 200 <= status < 300:
        return
    raise ToolError(f"{url} answered {status} ({_PHRASES.get(status, 'unknown status')})", kind="http_status")


def _broken(url: WebUrl, error: httpx.HTTPError) -> ToolError:
    if isinstance(error, httpx.TimeoutException):
        return ToolError(f"{url} stopped answering", kind="timeout")
    return ToolError(f"the connection to {url.netloc} broke: {error or type(error).__name__}", kind="connect")


# Reading a web page, part by part: fetch, extract, cut.

READING_FACTOR = 4.0
"""Reading a page may last this many times the seconds of a fetch. The work is bounded and takes few seconds; this is
for a machine that is busy with other things."""


@dataclass(frozen=True, slots=True)
class CachedPage:
    """An article, the address it finally came from, and when it was stored (monotonic seconds)."""

    url: str
    article: Article
    stored_at: float


class PageCache:
    """A cache of recently read pages: at most `max_chars` characters of text (the newest page always fits), none older
    than `ttl_seconds`.
    """

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

    `url` is where the page was finally found; `title` may be empty; `next_start` is the position to request next, None
    at the end; `links` are the first ones in the part.
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
    """A reader of public web pages (and the hosts in `allow_hosts`: "host" or "host:port") as plain text."""

    def __init__(
        self,
        *,
        fetch_max_chars: int = 8000,
        timeout_seconds: float = 20.0,
        allow_hosts: Sequence[str] = (),
        resolve: Resolver = resolve_host,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fetch_max_chars` is the length of a part; `timeout_seconds` limits the fetch; reading the page may then
        take four times as long."""
        self._fetch_max_chars = fetch_max_chars
        self._reading_seconds = READING_FACTOR * timeout_seconds
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
            async with asyncio.timeout(self._reading_seconds):
                article = await asyncio.to_thread(read_article, document)
        except TimeoutError:
            message = f"{document.url} could not be read within {self._reading_seconds:g} s: the machine is too busy"
            raise ToolError(message, kind="timeout") from None
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
        links = tuple(link for link in article.links if link.text in text)[:MOST_LINKS_OF_A_PART]
        return Page(url, article.title, text, start, end, total, following, links)


# The tool that reads one web page.

MOST_LINKS_OF_A_PART, LINKS_CHARS, LINK_TEXT_CHARS = 15, 1000, 80


class WebFetchConfig(Settings):
    """The settings in `web_fetch.yaml`; the comments there explain each key."""

    fetch_max_chars: int = Field(8000, ge=200, le=200_000)
    timeout_seconds: float = Field(15, gt=0)
    allow_hosts: tuple[str, ...] = ()


class WebFetchTool(Tool):
    """Read one web page by its URL. The URL is known, for example from web_search. A long page comes in parts: call
    again with the start that the result names to read on."""

    name = "web_fetch"
    replaces = "curl, wget"
    Config = WebFetchConfig
    effect = "read"
    safety = "L0"
    category = "web"
    repeatable = False

    def __init__(self, config: WebFetchConfig, reader: PageReader) -> None:
        super().__init__(config)
        self._reader = reader
        # Fetching and extracting have a limit each; the second one more lets their errors come first.
        self.timeout_seconds = (1.0 + READING_FACTOR) * config.timeout_seconds + 1.0

    @classmethod
    def build(cls, config: WebFetchConfig, resources: Resources) -> Self:
        """Build the tool with a reader that is limited by `allow_hosts` and the address table."""
        reader = PageReader(
            fetch_max_chars=config.fetch_max_chars,
            timeout_seconds=config.timeout_seconds,
            allow_hosts=config.allow_hosts,
        )
        return cls(config, reader)

    async def run(
        self,
        url: Annotated[str, "An http or https address"],
        start: Annotated[int, Field(ge=0, description="The character to begin at; 0 is the beginning")] = 0,
    ) -> ToolOutput:
        """The page's address, title and text, or the part of it that begins at `start`."""
        page = await self._reader.read(url, start, same_host=self.stays_on_host())
        return ToolOutput(_render(page), (page.url,), links=tuple(link.url for link in page.links))


def _render(page: Page) -> str:
    title = f"Title: {page.title}\n" if page.title else ""
    more = ""
    if page.next_start is not None:
        more = (
            f"\n\n[Characters {page.start} to {page.end} of {page.total_chars}."
            f" To read on, call web_fetch with start={page.next_start}.]"
        )
    return f"URL: {page.url}\n{title}Extracted text:\n{page.text}{more}{_listed(page.links)}"


def _listed(links: Sequence[Link]) -> str:
    """The first links of a part, as many as have room, so that the model can follow them."""
    lines, room = list[str](), LINKS_CHARS
    for link in links:
        line = f"- {link.text[:LINK_TEXT_CHARS]}: {link.url}"
        room -= len(line) + 1
        if room >= 0:
            lines.append(line)
    return "\n\nLinks in the text:\n" + "\n".join(lines) if lines else ""
