"""The outermost layer of the HTTP API: who may talk to it, decided from a request's method, path and headers before
anything else happens, and how much they may say."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from local.apps.api.errors import RequestRefused, error_response
from local.apps.api.principals import Principal, Principals
from local.errors.base import without_passwords

log = logging.getLogger(__name__)

PAGE_PATH = "/"  # to which pages of other sites may link
UPLOAD_PATH = "/attachments"  # its bodies are files of any type
MEGABYTE = 1024 * 1024
MAX_BODY = MEGABYTE
HTTP_PORT = 80
_PORT = re.compile(r":\d+$")
BODY_SECONDS = 30.0
# What is read and thrown away before a refusal, so that a client that is still sending gets to see it.
MAX_DISCARDED = 8 * 1024 * 1024
DISCARD_SECONDS = 2.0


def hosts_of(address: str, port: int, more: Iterable[str] = ()) -> frozenset[str]:
    """Every `Host` that names this server: loopback names, the address it is bound to, and `more` names, with port."""
    bound = f"[{address}]" if ":" in address else address
    names = {"localhost", "127.0.0.1", "[::1]", bound, *(name.lower() for name in more if not _PORT.search(name))}
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == HTTP_PORT else frozenset())


def proxied_hosts_of(names: Iterable[str]) -> frozenset[str]:
    """What this server is called behind a proxy that speaks TLS for it: without a port, or with the one in a name."""
    return frozenset(name.lower() for name in names)


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """What is let in. The lists of hosts are what a rebound DNS name does not pass. `max_upload` is in bytes."""

    hosts: frozenset[str]
    max_upload: int = MAX_BODY
    proxied_hosts: frozenset[str] = frozenset()

    def max_body(self, path: str) -> int:
        """The most bytes that a body may hold."""
        return self.max_upload if path == UPLOAD_PATH else MAX_BODY

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raises `RequestRefused`. Header names are in lower case."""
        self._check_host(headers.get("host", "").lower())
        self._check_site(headers, may_be_linked=method == "GET" and path == PAGE_PATH)
        if "transfer-encoding" in headers and "content-length" in headers:
            raise RequestRefused("malformed", "send either Content-Length or Transfer-Encoding, not both")
        if method != "GET" and path != UPLOAD_PATH and _has_body(headers):
            _check_media_type(headers.get("content-type", ""))

    def _check_host(self, host: str) -> None:
        if host not in self.hosts and host not in self.proxied_hosts:
            known = ", ".join(sorted(self.hosts | self.proxied_hosts))
            named = host.rpartition("@")[2][:200]
            raise RequestRefused("forbidden", f"Host {named!r} is not this server; it answers to {known}")

    def _check_site(self, headers: Mapping[str, str], *, may_be_linked: bool) -> None:
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin.lower()):
            raise RequestRefused(
                "forbidden", f"pages of {without_passwords(origin)[:200]!r} may not talk to this server"
            )
        if headers.get("sec-fetch-site") == "cross-site" and not (may_be_linked and _follows_link(headers)):
            raise RequestRefused("forbidden", "pages of other sites may not talk to this server")

    def _is_ours(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return host in {"http": self.hosts, "https": self.proxied_hosts}.get(scheme, ())


class ClientLeft(Exception):
    """The client has gone; there is nobody to answer."""


class GuardMiddleware:
    """ASGI: hands `app` the requests that `policy` lets in of those whom `principals` know, with their bodies read, and
    lets no exception out. Who asks is `principal` in the scope: None, of whom nothing is known, where `is_open(path)`.
    HEAD is answered as GET, without the body."""

    def __init__(
        self, app: ASGIApp, policy: GuardPolicy, principals: Principals, is_open: Callable[[str], bool]
    ) -> None:
        self._app, self._policy, self._principals, self._is_open = app, policy, principals, is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except ClientLeft:
            return
        except Exception as error:  # noqa: BLE001 - the app has answered and logged it, only uvicorn would hear of it
            log.debug("%s: %s", type(error).__name__, error)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Of a header that stands twice the first one counts, so that nothing slips in behind it.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        try:
            self._policy.check(scope["method"], scope["path"], headers)
            scope["principal"] = await self._who_asks(scope, headers)
            body = await _read(receive, headers, self._policy.max_body(scope["path"]))
        except RequestRefused as refusal:
            if "expect" not in headers:
                await _discard(receive)
            await error_response(scope["path"], refusal, _headers_of(refusal))(scope, receive, send)
            return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        if scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET"}, replay, _head_only(send))
        else:
            await self._app(scope, replay, send)

    async def _who_asks(self, scope: Scope, headers: Mapping[str, str]) -> Principal | None:
        try:
            return await self._principals.of(headers, scope.get("state", {}).get("peer"))
        except RequestRefused:
            if not self._is_open(scope["path"]):
                raise
            return None


def _head_only(send: Send) -> Send:
    """Sends the head of an answer and drops the rest. With its head the answer has ended: whoever still streams hears
    from the server that the client has left."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head


async def _read(receive: Receive, headers: Mapping[str, str], max_bytes: int) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    if "transfer-encoding" not in headers and declared in ("", "0"):
        return b""
    body = bytearray()
    more = True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft
                body += message["body"]
                more = message["more_body"]
                if len(body) > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError:
        raise RequestRefused("too_slow", f"the body did not arrive within {BODY_SECONDS:g} s") from None
    return bytes(body)


async def _discard(receive: Receive) -> None:
    size, more = 0, True
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while more and size < MAX_DISCARDED:
                message = await receive()
                more, size = message.get("more_body", False), size + len(message.get("body", b""))
    except TimeoutError:
        return  # it goes on sending, or waits: it is answered now


def _too_large(max_bytes: int) -> RequestRefused:
    return RequestRefused("too_large", f"a body may hold at most {max_bytes} bytes")


def _headers_of(refusal: RequestRefused) -> Mapping[str, str]:
    challenge = {"www-authenticate": "Bearer"} if refusal.kind == "unauthorized" else {}
    return {"connection": "close", **challenge}


def _follows_link(headers: Mapping[str, str]) -> bool:
    """Whether somebody goes to a page of ours, which comes into a window of its own and can be read by nobody else."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _check_media_type(value: str) -> None:
    if value.partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused("unsupported_media_type", f"Content-Type must be application/json, not {value[:200]!r}")
