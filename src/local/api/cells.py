"""Users of other cells: the cell that a request belongs to, and passing it on to that cell.

A cell is one running LoCAL2, and each user lives in one of them, which alone has their content, their token and their
sign-ins. Any cell can receive a user's requests and passes them on to the right one.

- A token, an invitation and the key of a sign-in end with `@` and the user's name. That is an address and proves
  nothing: the user's cell checks the whole, as it does for a request that comes directly. The cell that receives a
  request says nothing about who sends it, so it cannot turn one user into another.
- The key that all cells share proves that another cell passed the request on. That cell has checked Host and Origin,
  which the user's cell then does not: they name the first one. The key makes nobody a user.
- A request that was passed on is never passed on again, and never counts as the owner's: not by a token, and not by the
  Unix user, though another cell on the same machine has the same one.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, SecretStr, model_validator
from starlette.types import Receive, Scope, Send

from local.api.http import ClientLeft, RequestRefused, error_response
from local.core.config import Settings, load
from local.core.secrets import LEAST_CHARACTERS, SecretStore, with_secrets

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

CELL_HEADER = "x-local2-cell"
SIGN_IN_PATH = "/sign-in"
KNOWN_PATH = "/sign-ins"  # open to every user: its status says whether a cell knows one

CONNECT_SECONDS, CHECK_SECONDS = 2.0, 5.0
ANSWER_SECONDS = 1860.0  # between two parts of an answer: longer than a tool that a client calls may take
REUSE_SECONDS = 2.0  # less than an API keeps an idle connection open
# A machine that is gone does not close its connections: the kernel asks it, and gives up after 15 seconds.
_TCP = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 15_000}
_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _TCP.items() if hasattr(socket, name)),
]

_OF_ONE_CONNECTION = frozenset(
    b"connection keep-alive proxy-connection te trailer transfer-encoding upgrade expect proxy-authorization".split()
)
_NOT_SENT = _OF_ONE_CONNECTION | {b"host", b"via", CELL_HEADER.encode()}
_NOT_RETURNED = _OF_ONE_CONNECTION | {b"date", b"x-content-type-options", b"cross-origin-resource-policy"}  # added here
_COOKIES = (b"local2-", b"__Host-local2-")  # those of other programs on the same host are not sent
_CREDENTIALS = (b"authorization", b"x-local2-key", b"cookie")

Headers = Sequence[tuple[bytes, bytes]]


class CellEntry(Settings):
    """One cell in `cells.yaml`: the address of its API, and the users who live there."""

    url: str = Field(pattern=r"^https?://[^\s/?#@]+/?$")
    users: tuple[str, ...] = ()


class CellsConfig(Settings):
    """`cells.yaml`: every cell by its name, which of them `this` one is, and the key that they share."""

    this: str = ""
    key: SecretStr | None = None
    cells: dict[str, CellEntry] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.cells:
            return self
        if self.this not in self.cells:
            raise ValueError(f"this: {self.this!r} is none of the cells; expected one of {', '.join(self.cells)}")
        if self.key is None or len(self.key.get_secret_value()) < LEAST_CHARACTERS:
            raise ValueError("key: is missing; write secret:cells, and store it with `local2 secret set cells`")
        users = [user for cell in self.cells.values() for user in cell.users]
        if twice := next((user for user in users if users.count(user) > 1), None):
            raise ValueError(f"cells: {twice} is listed twice; a user lives in one cell")
        return self


def load_cells(layers: Sequence[Path], data_dir: Path) -> Cells | None:
    """Return the cells of `cells.yaml`, None for one machine. Raises `ConfigError`."""
    config = with_secrets(load("cells", CellsConfig, layers), "cells", SecretStore(data_dir).get)
    return Cells(config) if config.cells else None


class Cells:
    """The other cells of this one, and who lives there."""

    def __init__(self, config: CellsConfig) -> None:
        assert config.key is not None, "the settings were checked"
        self.this, self._key = config.this, config.key.get_secret_value()
        self._homes: dict[str, Cell] = {}
        for name, entry in config.cells.items():
            if name != config.this:
                self._homes |= dict.fromkeys(entry.users, Cell(name, entry.url.rstrip("/"), self._key))

    def home_of(self, user: str | None) -> Cell | None:
        """Return the cell in which a user lives; None for this one, where the users live whom no cell names."""
        return self._homes.get(user or "")

    def require_here(self, user: str | None) -> None:
        """Raise `RequestRefused` (elsewhere) for a user of another cell."""
        if (home := self.home_of(user)) is not None:
            raise RequestRefused("elsewhere", f"{user} lives in cell {home.name}, not in {self.this}: ask there")

    def has_passed_on(self, headers: Mapping[str, str]) -> bool:
        """Whether another cell passed this request on. Raises `RequestRefused` (forbidden) for a wrong key."""
        given = headers.get(CELL_HEADER)
        if given is not None and not hmac.compare_digest(given.encode(), self._key.encode()):
            raise RequestRefused(
                "forbidden",
                f"{CELL_HEADER} does not have the key of cell {self.this}: store the same one in every cell, with"
                " `local2 secret set`",
            )
        return given is not None

    async def close(self) -> None:
        """Close every connection to the others."""
        for cell in set(self._homes.values()):
            await cell.close()


class Cell:
    """Another cell and the connections to its API."""

    def __init__(self, name: str, url: str, key: str) -> None:
        self.name, self._url = name, url
        self._own = [(b"via", b"1.1 local2"), (CELL_HEADER.encode(), key.encode())]
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def require_known(self, scope: Scope) -> None:
        """Require that this cell knows the sender of a request. Raises `RequestRefused` with the cell's reason."""
        shown = [(name, value) for name, value in scope["headers"] if name in _CREDENTIALS]
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                response = await self._send("GET", KNOWN_PATH.encode(), _kept(shown, _NOT_SENT), is_read=True)
        except TimeoutError:
            raise self._silent() from None
        if response.status_code != 200:
            try:
                error = response.json()["error"]
                raise RequestRefused(error["kind"], error["message"])
            except (ValueError, LookupError, TypeError):
                raise self._away(f"it answers with status {response.status_code}, without a reason") from None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and send the answer back while it comes; a client that leaves cancels it there. A sign-in,
        of somebody unknown, is not waited for as long as what a user asks for.
        """
        is_read = asyncio.Event()

        async def client_left() -> None:
            await is_read.wait()
            while (await receive())["type"] != "http.disconnect":
                pass

        passing = asyncio.create_task(self._pass_on(scope, receive, send, is_read))
        leaving = asyncio.create_task(client_left())
        try:
            await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()
        finally:
            passing.cancel()
            leaving.cancel()
            await asyncio.wait({passing, leaving})

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, is_read: asyncio.Event) -> None:
        async def body() -> AsyncIterator[bytes]:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft  # so that the body stays incomplete
                more = message.get("more_body", False)
                yield message.get("body", b"")
            is_read.set()

        headers = _kept(scope["headers"], _NOT_SENT)
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        if not has_body:
            is_read.set()
        target = scope["raw_path"] + (b"?" if scope["query_string"] else b"") + scope["query_string"]
        try:
            async with asyncio.timeout(CHECK_SECONDS if scope["path"] == SIGN_IN_PATH else None):
                response = await self._send(scope["method"], target, headers, body() if has_body else None)
        except (RequestRefused, TimeoutError) as error:
            refusal = error if isinstance(error, RequestRefused) else self._silent()
            await error_response(scope["path"], refusal)(scope, receive, send)
            return
        try:
            returned = _kept(response.headers.raw, _NOT_RETURNED)
            await send({"type": "http.response.start", "status": response.status_code, "headers": returned})
            async for chunk in response.aiter_raw():  # a failure here cuts the client's connection
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await response.aclose()

    async def _send(
        self, method: str, target: bytes, headers: Headers, content: AsyncIterator[bytes] | None = None, *,
        is_read: bool = False,
    ) -> httpx.Response:  # fmt: skip
        """Send a request and return the answer, whose body is to be read unless it `is_read`. The `target` is sent as
        it is: with other dots or signs it could be another route than the one that was checked. Raises
        `RequestRefused`.
        """
        import httpx  # takes long, and is rarely needed

        if not target.startswith(b"/"):
            raise RequestRefused("malformed", "the address of a request begins with /")
        if self._transport is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=REUSE_SECONDS)
            secure = self._url.startswith("https:")
            self._transport = httpx.AsyncHTTPTransport(verify=secure, limits=limits, socket_options=_ALIVE)
        times = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS).as_dict()
        try:
            request = httpx.Request(
                method, self._url, headers=[*headers, *self._own], content=content,
                extensions={"timeout": times, "target": target},
            )  # fmt: skip
            response = await self._transport.handle_async_request(request)
            if is_read:
                await response.aread()
            return response
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise self._away("it cannot be reached") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._away(f"the connection to it has failed ({type(error).__name__})") from error

    def _silent(self) -> RequestRefused:
        return self._away(f"it was silent for {CHECK_SECONDS:g} s")

    def _away(self, why: str) -> RequestRefused:
        log.warning("cell %s at %s: %s", self.name, self._url, why)
        told = f"cell {self.name}, where this user lives, does not answer: {why}"
        return RequestRefused("unavailable", f"{told}; start LoCAL2 there, or correct its url in cells.yaml")

    async def close(self) -> None:
        """Close every connection to this cell."""
        if self._transport is not None:
            await self._transport.aclose()


def _kept(headers: Headers, dropped: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """Return headers in lower case, without those to be dropped, those that `Connection` names, and foreign cookies."""
    lower = [(name.lower(), value) for name, value in headers]
    named = {one.strip().lower() for name, value in lower if name == b"connection" for one in value.split(b",")}
    kept = [(name, value) for name, value in lower if name not in dropped and name not in named]
    return [(name, _own_cookies(value) if name == b"cookie" else value) for name, value in kept]


def _own_cookies(value: bytes) -> bytes:
    return b"; ".join(each for each in map(bytes.strip, value.split(b";")) if each.startswith(_COOKIES))
