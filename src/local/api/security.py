"""The outermost layer of the HTTP API: it decides from a request's method, path and headers who may use it, before
anything else happens, and limits the size of requests.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from local.api.cells import SIGN_IN_PATH, Cell, Cells
from local.api.http import ID_PATTERN, ClientLeft, RequestRefused, error_response
from local.api.server import Peer
from local.api.sign_ins import KEY_HEADER, SignIns
from local.bus.message import parse_object
from local.core.data_dir import TOKEN_PREFIX
from local.core.errors import LocalError, without_passwords
from local.core.users import Users
from local.memory.messages import OWNER

# Who asks: the owner, who may act for any user, or one user, who sees nothing of the others.

# A proxy that forwards requests sends one of these; its own Unix user then proves nothing.
_FORWARDING = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip"})
_PORT = re.compile(r":\d*$")
# Another port of this machine is the same site, and serves pages of other programs.
_FOREIGN_SITES = frozenset({"cross-site", "same-site"})
_FORWARDING_PARTS = ("x-forwarded", "forwarded-for", "connecting-ip", "x-envoy-external")
_UNKNOWN = (
    "a token is missing: send 'Authorization: Bearer …' with a token that `local2 user add` gave, or the owner token,"
    " which is LOCAL2_API_TOKEN or in the file api_token in the data directory"
)
OWNERS_TOKEN = (
    "this requires the owner: sign in on the page with the code that `local2 code` prints; a program sends the owner"
    " token as 'Authorization: Bearer …', which is LOCAL2_API_TOKEN or in the file api_token in the data directory"
)
SIGNED_OUT = "this browser is signed out: run `local2 open`, or enter the code that `local2 code` prints"
_NO_ORIGIN = "a signed-in browser has to say from which page a change comes: Origin is missing"
_DATA_GONE = "the data directory, which holds the tokens, is gone: put it back, or restart LoCAL2"
_NOT_KNOWN = "this token is unknown, or was withdrawn; `local2 user add` gives a new one"


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request. Without `user_id` it is the owner; `by_token` says whether a token was shown, or a
    sign-in, whose id is `sign_in`. Content without a user belongs to the owner.
    """

    user_id: str | None = None
    by_token: bool = False
    sign_in: str | None = None

    @property
    def is_owner(self) -> bool:
        """Whether everything is to be seen."""
        return self.user_id is None

    @property
    def name(self) -> str:
        """The user_id under which the memory and files know the principal."""
        return self.user_id or OWNER

    def sees(self, user_id: str | None) -> bool:
        """Whether that user's content is visible to the caller."""
        return self.user_id is None or self.user_id == (user_id or OWNER)

    def require(self, user_id: str | None, what: str) -> None:
        """Raise `RequestRefused` (not_found) for content of another user, as if it did not exist."""
        if not self.sees(user_id):
            raise RequestRefused("not_found", f"there is no {what}")

    def require_token(self) -> None:
        """Raises `RequestRefused` (unauthorized) for one who was known by the Unix user alone."""
        if not self.by_token:
            raise RequestRefused("unauthorized", OWNERS_TOKEN)

    def require_owner(self) -> None:
        """Raise `RequestRefused` (forbidden) unless the caller is the owner."""
        if not self.is_owner:
            raise RequestRefused("forbidden", "only the owner of the system may do this")

    def acting_for(self, user_id: str | None) -> Principal:
        """Return the principal with that user's permissions. Raises `RequestRefused` (not_found) unless the caller is
        the owner or that user.
        """
        if user_id is None or user_id == self.user_id:
            return self
        if not self.is_owner:
            raise RequestRefused("not_found", f"there is no user {user_id}", "user_id")
        return replace(self, user_id=user_id)


class Principals:
    """Identifies the caller: by a token, by a sign-in, or by the Unix user. `owner_token()` is called each time: its
    file may be replaced. With `must_know` a token has to be known; without, an unknown one is taken for the key that
    OpenAI's clients have to send, and the Unix user counts.
    """

    def __init__(
        self, owner_token: Callable[[], str | None], users: Users, sign_ins: SignIns | None = None, *,
        must_know: bool = False,
    ) -> None:  # fmt: skip
        self._owner_token, self._users, self._must_know = owner_token, users, must_know
        self._sign_ins = sign_ins

    async def of(self, headers: Mapping[str, str], peer: Peer | None) -> Principal:
        """Raises `RequestRefused` (unauthorized). Header names are in lower case."""
        if known := self._by_authorization(headers.get("authorization", "")):
            return known
        if self._sign_ins is not None and KEY_HEADER in headers:
            if found := self._sign_ins.of(headers):
                return Principal(found.user, by_token=True, sign_in=found.id)
            if self._users.are_gone:
                raise RequestRefused("unavailable", _DATA_GONE)
            raise RequestRefused("unauthorized", SIGNED_OUT)
        if is_sent_here(headers) and await is_own_user(headers, peer):
            return Principal()
        raise RequestRefused("unauthorized", _UNKNOWN)

    def addressee(self, headers: Mapping[str, str], secret: str = "") -> str:
        """Return the name of the user to whom the credentials of a request, or the secret of a sign-in, are addressed;
        empty for the owner's.
        """
        shown = secret or bearer_token(headers.get("authorization", "")) or headers.get(KEY_HEADER, "")
        return "" if self._is_owners(shown) else shown.partition("@")[2]

    def _by_authorization(self, authorization: str) -> Principal | None:
        token = bearer_token(authorization)
        return self.holder_of(token) if token else None

    def _is_owners(self, token: str) -> bool:
        # Encoded, because compare_digest takes text only if it is ASCII.
        return hmac.compare_digest(token.encode(), (self._owner_token() or "").encode())

    def holder_of(self, token: str) -> Principal | None:
        """Return the holder of that token; None for one that need not be known. Raises `RequestRefused` (unauthorized,
        unavailable).
        """
        if self._is_owners(token):
            return Principal(by_token=True)
        if name := self._users.name_of(token):
            return Principal(name, by_token=True)
        if self._must_know or token.startswith(TOKEN_PREFIX):
            raise (
                RequestRefused("unavailable", _DATA_GONE)
                if self._users.are_gone
                else RequestRefused("unauthorized", _NOT_KNOWN)
            )
        return None


def bearer_token(authorization: str) -> str:
    """Return the token in an `Authorization` header; empty for another scheme."""
    scheme, _, given = authorization.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def principal_of(request: Request) -> Principal:
    """Return the caller, as the guard has identified it; at /health it may be None, an unknown caller."""
    principal: Principal = request.scope["principal"]
    return principal


async def _caller(request: Request, user_id: Annotated[str | None, Query(pattern=ID_PATTERN)] = None) -> Principal:
    return principal_of(request).acting_for(user_id)


Caller = Annotated[Principal, Depends(_caller)]
"""Who asks, for the user whom `?user_id=` names if it is the owner."""


async def is_own_user(headers: Mapping[str, str], peer: Peer | None) -> bool:
    """Whether the other end is the Unix user that runs this process, and does not forward a request of another."""
    if any(name in _FORWARDING or any(part in name for part in _FORWARDING_PARTS) for name in headers):
        return False
    if peer is not None and peer.is_own_user is None:
        await peer.look_up()
    return peer is not None and bool(peer.is_own_user)


def is_sent_here(headers: Mapping[str, str]) -> bool:
    """Whether a request was sent to this machine by a name that means it everywhere."""
    host = _PORT.sub("", headers.get("host", "").lower())
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# Whom each route is for: declared at its function, and checked where it is served.

F = TypeVar("F", bound=Callable[..., Any])


class Access(StrEnum):
    """The callers that a route is for."""

    ANYBODY = "anybody"  # the route itself decides what it shows to whom
    USERS = "users"  # each user sees their own content, which the route checks; the owner sees all
    OWNER = "owner"
    TOKEN = "token"  # the owner, with the token itself: for changes that loosen the owner's decisions


class Undeclared(TypeError):
    """A route without a declared access."""


def open_to(access: Access) -> Callable[[F], F]:
    """Declare the access to a route's function; every route needs one."""

    def declare(endpoint: F) -> F:
        endpoint.access = access  # type: ignore[attr-defined]
        return endpoint

    return declare


def access_of(route: Route) -> Access:
    """Return a route's declared access. Raises `Undeclared`."""
    access = getattr(route.endpoint, "access", None)
    if not isinstance(access, Access):
        raise Undeclared(f"{route.path} does not say whom it is for: mark its function with @open_to(Access.…)")
    return access


def enforce(routes: Sequence[BaseRoute]) -> None:
    """Have every route refuse callers without access. Raises `Undeclared`."""
    for route in routes:
        if not isinstance(route, Route):
            raise Undeclared(f"{route} is no plain route: whom it is for cannot be declared")
        access = access_of(route)
        if access in (Access.OWNER, Access.TOKEN):  # the guard has let in only known users
            route.app = _only_for(access, route.app)


def open_to_anybody(routes: Sequence[BaseRoute]) -> Callable[[str], bool]:
    """Return a function that says whether a path is open to unknown callers."""
    reached = [route.path_regex for route in routes if isinstance(route, Route) and access_of(route) is Access.ANYBODY]
    return lambda path: any(each.match(path) for each in reached)


def _only_for(access: Access, app: ASGIApp) -> ASGIApp:
    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        _check(access, scope["principal"])
        await app(scope, receive, send)

    return checked


def _check(access: Access, principal: Principal) -> None:
    principal.require_owner()
    if access is Access.TOKEN:
        principal.require_token()


log = logging.getLogger(__name__)

SAFE_METHODS = frozenset({"GET", "HEAD"})  # they change nothing
PAGE_PATH = "/"  # the page that other sites may link to
UPLOAD_PATH = "/attachments"  # its bodies are files of any type
IMPORT_PATH = "/sessions/import"  # so are these; they are streamed to the disk
MEGABYTE = 1024 * 1024
MAX_BODY = MEGABYTE
MAX_IMPORT = 512 * MEGABYTE
HTTP_PORT = 80
_GUARD_MIDDLEWARE_PORT = re.compile(r":\d+$")
BODY_SECONDS = 30.0
MAX_UNFINISHED = 32  # requests of one known caller with incomplete bodies
# What an unknown caller sends is the secret of a sign-in. All of them together may hold so many connections with
# incomplete bodies, which is fewer than there are.
UNKNOWN_BODY, UNKNOWN_SECONDS, MAX_UNKNOWN = 4096, 2.0, 256
IPV6_NETWORK = 64  # bits: the part of an IPv6 address that its holder does not choose
# The body read and dropped before a refusal, so that a client that is still sending receives it.
MAX_DISCARDED = 8 * 1024 * 1024
DISCARD_SECONDS = 2.0


def hosts_of(address: str, port: int, more: Iterable[str] = ()) -> frozenset[str]:
    """Every `Host` that names this server: loopback names, the address it is bound to, and `more` names, with port."""
    bound = f"[{address}]" if ":" in address else address
    names = {
        "localhost",
        "127.0.0.1",
        "[::1]",
        bound,
        *(name.lower() for name in more if not _GUARD_MIDDLEWARE_PORT.search(name)),
    }
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == HTTP_PORT else frozenset())


def proxied_hosts_of(names: Iterable[str]) -> frozenset[str]:
    """Return the names of this server behind a proxy that terminates TLS for it: without a port, or with the one in a
    name.
    """
    return frozenset(name.lower() for name in names)


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """The rules for requests that are let in. The lists of hosts stop a rebound DNS name. `max_upload` is in bytes."""

    hosts: frozenset[str]
    max_upload: int = MAX_BODY
    proxied_hosts: frozenset[str] = frozenset()

    def max_body(self, path: str) -> int:
        """The most bytes that a body may hold."""
        return {UPLOAD_PATH: self.max_upload, IMPORT_PATH: MAX_IMPORT}.get(path, MAX_BODY)

    def check(self, method: str, path: str, headers: Mapping[str, str], *, is_passed_on: bool = False) -> None:
        """Raises `RequestRefused`. Header names are in lower case. Of a request that is passed on, another cell has
        checked the host and the site.
        """
        if not is_passed_on:
            self._check_host(headers.get("host", "").lower())
            self._check_site(headers, may_be_linked=method == "GET" and path == PAGE_PATH)
        if "transfer-encoding" in headers and "content-length" in headers:
            raise RequestRefused("malformed", "send either Content-Length or Transfer-Encoding, not both")
        if method != "GET" and path not in (UPLOAD_PATH, IMPORT_PATH) and _has_body(headers):
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
        if headers.get("sec-fetch-site") in _FOREIGN_SITES and not (may_be_linked and _follows_link(headers)):
            raise RequestRefused("forbidden", "pages of other sites may not talk to this server")

    def _is_ours(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return host in {"http": self.hosts, "https": self.proxied_hosts}.get(scheme, ())


class UnfinishedRequests:
    """The requests whose bodies have not arrived yet, counted by sender, so that one sender alone cannot hold all
    connections with bodies that never end. A known caller's request too many is refused. Of unknown callers it takes
    the place of the oldest one from the address that has the most, so that they cannot keep others from signing in.
    """

    def __init__(self) -> None:
        self._known: Counter[str] = Counter()
        self._unknown = defaultdict[str, dict[asyncio.Timeout, None]](dict)  # by address, the oldest first

    @contextmanager
    def of_known(self, name: str) -> Iterator[None]:
        """While a known caller's body is read. Raises `RequestRefused` (overloaded) for one too many."""
        if self._known[name] >= MAX_UNFINISHED:
            raise RequestRefused("overloaded", f"{MAX_UNFINISHED} requests of yours wait for the rest of their bodies")
        self._known[name] += 1
        try:
            yield
        finally:
            self._known[name] -= 1
            if not self._known[name]:
                del self._known[name]

    @contextmanager
    def of_unknown(self, address: str, limit: asyncio.Timeout) -> Iterator[None]:
        """While an unknown caller's body is read within `limit`, which ends early if others need the place."""
        self._unknown[address][limit] = None
        if sum(map(len, self._unknown.values())) > MAX_UNKNOWN:
            most = max(self._unknown.values(), key=len)
            oldest = next(iter(most))
            del most[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        try:
            yield
        finally:
            self._unknown[address].pop(limit, None)
            if not self._unknown[address]:
                del self._unknown[address]


class GuardMiddleware:
    """ASGI middleware: passes to `app` the requests that `policy` permits of callers whom `principals` know, with their
    bodies read, and lets no exception out. The caller is `principal` in the scope: None, unknown, where
    `is_open(path)`. HEAD is answered as GET, without the body. Requests of users of other `cells` go there.
    """

    def __init__(
        self, app: ASGIApp, policy: GuardPolicy, principals: Principals, is_open: Callable[[str], bool],
        cells: Cells | None = None,
    ) -> None:  # fmt: skip
        self._app, self._policy, self._principals, self._is_open = app, policy, principals, is_open
        self._unfinished, self._cells = UnfinishedRequests(), cells

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
        # Of a repeated header the first one counts, so that a second one cannot override it.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        try:
            is_passed_on = self._cells is not None and self._cells.has_passed_on(headers)
            self._policy.check(scope["method"], scope["path"], headers, is_passed_on=is_passed_on)
            principal, home = await self._who_asks(scope, headers, is_passed_on=is_passed_on)
            scope["principal"] = principal
            if principal is not None and principal.sign_in and scope["method"] not in SAFE_METHODS:
                check_own_page(headers)
            most = self._policy.max_body(scope["path"]) if principal else UNKNOWN_BODY
            require_size(headers, most)
            is_streamed = scope["method"] == "POST" and scope["path"] == IMPORT_PATH
            body = b"" if is_streamed else await self._body(principal, scope, receive, headers, most)
            if self._cells is not None and scope["path"] == SIGN_IN_PATH:
                name = self._principals.addressee({}, _secret_in(body))
                home = None if is_passed_on else self._cells.home_of(name)
                if is_passed_on and not name:
                    raise _not_directly(self._cells)
        except RequestRefused as refusal:
            # The body of an unknown caller, and one that did not arrive in time, is not waited for.
            if "expect" not in headers and refusal.kind not in ("unauthorized", "too_slow"):
                await _discard(receive)
            await error_response(scope["path"], refusal, _headers_of(refusal))(scope, receive, send)
            return
        app = self._app if home is None else home.answer
        if is_streamed:
            await app(scope, at_most(most, receive), send)
            return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        if scope["method"] == "HEAD":
            await app({**scope, "method": "GET"}, replay, _head_only(send))
        else:
            await app(scope, replay, send)

    async def _body(
        self, principal: Principal | None, scope: Scope, receive: Receive, headers: Mapping[str, str], most: int
    ) -> bytes:
        if not _has_body(headers):
            return b""
        seconds = BODY_SECONDS if principal else UNKNOWN_SECONDS
        try:
            async with asyncio.timeout(seconds) as limit:
                unfinished = self._unfinished
                known = unfinished.of_known(principal.name) if principal else None
                with known or unfinished.of_unknown(_network(scope), limit):
                    return await _read(receive, most)
        except TimeoutError:
            raise RequestRefused("too_slow", f"the body did not arrive within {seconds:g} s") from None

    async def _who_asks(
        self, scope: Scope, headers: Mapping[str, str], *, is_passed_on: bool
    ) -> tuple[Principal | None, Cell | None]:
        """Return the caller, and the cell to which the request is passed on, if it is another one."""
        cells, home, peer = self._cells, None, scope.get("state", {}).get("peer")
        try:
            if cells is not None and not is_passed_on and scope["path"] != SIGN_IN_PATH:
                name = self._principals.addressee(headers)
                home = cells.home_of(name)
                if home is not None:
                    await home.require_known(scope)
                    return Principal(name, by_token=True), home
            principal = await self._principals.of(headers, None if is_passed_on else peer)
        except RequestRefused as refusal:
            if not self._is_open(scope["path"]) or (home is not None and refusal.kind != "unauthorized"):
                raise
            return None, None
        if cells is None:
            return principal, None
        if is_passed_on:
            _require_guest_here(principal, cells)
        for name in parse_qs(scope["query_string"].decode("latin-1")).get("user_id", ()) if principal.is_owner else ():
            cells.require_here(name)
        return principal, cells.home_of(principal.user_id)


def _require_guest_here(principal: Principal, cells: Cells) -> None:
    """Raise `RequestRefused` unless a request that another cell has passed on is of a user of this cell."""
    if principal.is_owner:
        raise _not_directly(cells)
    cells.require_here(principal.user_id)


def _not_directly(cells: Cells) -> RequestRefused:
    return RequestRefused("forbidden", f"the owner uses cell {cells.this} directly: other cells pass on users only")


def _secret_in(body: bytes) -> str:
    """Return the secret of a sign-in; empty if there is none, which its route refuses."""
    try:
        secret = parse_object(body, "body").get("secret")
    except LocalError:
        return ""
    return secret.strip() if isinstance(secret, str) else ""


def _head_only(send: Send) -> Send:
    """Send the head of an answer and drop the rest. The answer then counts as ended: a streaming handler learns from
    the server that the client has left.
    """

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head


def require_size(headers: Mapping[str, str], max_bytes: int) -> None:
    """Raises `RequestRefused` (too_large) for a body that is declared to be larger."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)


def at_most(max_bytes: int, receive: Receive) -> Receive:
    """Receives a body piece by piece; raises `RequestRefused` for one that is too large, or whose next piece does not
    arrive in time."""
    size, is_whole = 0, False

    async def receive_piece() -> Message:
        nonlocal size, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise RequestRefused("too_slow", f"nothing of the body arrived for {BODY_SECONDS:g} s") from None
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if size > max_bytes:
            raise _too_large(max_bytes)
        return message

    return receive_piece


async def _read(receive: Receive, max_bytes: int) -> bytes:
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        body += message["body"]
        more = message["more_body"]
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def _network(scope: Scope) -> str:
    """Return the address that a request comes from; of an IPv6 address the network."""
    host, _ = scope.get("client") or ("", 0)
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv4Address):
        return host
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, IPV6_NETWORK), strict=False))


async def _discard(receive: Receive) -> None:
    size, more = 0, True
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while more and size < MAX_DISCARDED:
                message = await receive()
                more, size = message.get("more_body", False), size + len(message.get("body", b""))
    except TimeoutError:
        return  # it is still sending or waiting: it is answered now


def _too_large(max_bytes: int) -> RequestRefused:
    return RequestRefused("too_large", f"a body may hold at most {max_bytes} bytes")


def _headers_of(refusal: RequestRefused) -> Mapping[str, str]:
    challenge = {"www-authenticate": "Bearer"} if refusal.kind == "unauthorized" else {}
    return {"connection": "close", **challenge}


def check_own_page(headers: Mapping[str, str]) -> None:
    """Raise `RequestRefused` unless the browser reports that the requesting page is our own; `GuardPolicy` has refused
    those of other sites.
    """
    if headers.get("sec-fetch-site") != "same-origin" and "origin" not in headers:
        raise RequestRefused("forbidden", _NO_ORIGIN)


def _follows_link(headers: Mapping[str, str]) -> bool:
    """Whether a user navigates to a page of ours, which opens in its own window and can be read by no other site."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _check_media_type(value: str) -> None:
    if value.partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused("unsupported_media_type", f"Content-Type must be application/json, not {value[:200]!r}")
