"""Fetching one document from the public web: guarded at every step, capped in bytes and in time."""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.client import responses as _PHRASES
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urljoin

import httpx

from local.errors import FetchRefused, ToolError
from local.services.pages.address_guard import AddressGuard
from local.services.pages.media_type import MediaType, check_is_text, readable_type
from local.services.pages.web_url import WebUrl

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
    """At most `room` bytes, which is what makes a bomb harmless; what follows the end of the stream is ignored."""
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


@dataclass(frozen=True, slots=True)
class Document:
    """What an address led to. `url` is the final one, after redirects; `body` is decompressed."""

    url: str
    media_type: MediaType
    body: bytes


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The operating system's answer, each address once."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Fetcher:
    """Gets documents. A name is resolved once for each hop and the connection goes to the very address that was judged.

    Every failure is a `ToolError` of kind refused, timeout, too_large, http_status, unsupported_type, connect, dns or
    redirect. Nothing is kept between two fetches: no cookies, no connections.
    """

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
            headers=_HEADERS,
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
        """One hop: the document, or the checked address it redirects to."""
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
        """Where to connect. One forbidden address among them refuses all: an honest name has none."""
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


async def _take_location(response: httpx.Response) -> None:
    """Out of httpx's sight, which fails of one that is no address, whether it is to follow it or not."""
    response.extensions[_LOCATION] = response.headers.pop("location", None)


def _check_status(url: WebUrl, status: int) -> None:
    if 200 <= status < 300:
        return
    raise ToolError(f"{url} answered {status} ({_PHRASES.get(status, 'unknown status')})", kind="http_status")


def _broken(url: WebUrl, error: httpx.HTTPError) -> ToolError:
    if isinstance(error, httpx.TimeoutException):
        return ToolError(f"{url} stopped answering", kind="timeout")
    return ToolError(f"the connection to {url.netloc} broke: {error or type(error).__name__}", kind="connect")
