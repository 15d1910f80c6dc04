"""HTTP to one Ollama server: whole and streamed answers, every failure a `ModelError`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from local.errors import ModelError
from local.models.chat import Json
from local.models.ollama_errors import bad_stream, explain, from_transport, silent
from local.models.ollama_host import is_loopback

CONNECT_SECONDS = 5.0

# How long a complete answer may keep its connection waiting for the end of the body, to use it again.
_DRAIN_SECONDS = 0.1

# httpx knows one read timeout, but a first token takes longer than the next: we limit each wait ourselves.
_TIMEOUT = httpx.Timeout(None, connect=CONNECT_SECONDS)
_TIMEOUTS = {"timeout": _TIMEOUT.as_dict()}
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity", "Accept": "application/x-ndjson"}

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class OllamaHttp:
    """The connections to one server. `server` is its base address, as `normalise_host` makes it."""

    def __init__(self, server: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.server = server
        # Loading certificates takes 25 ms, and plain http has no use for them.
        verify = server.startswith("https:")
        # A larger keep-alive pool costs quadratic work; how many are in use at once is the caller's to bound.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        local = is_loopback(server)
        if local and transport is None:
            transport = httpx.AsyncHTTPTransport(verify=verify, trust_env=False, limits=limits)
        self._client = httpx.AsyncClient(
            base_url=server,
            transport=transport,
            timeout=_TIMEOUT,
            limits=limits,
            verify=verify,
            trust_env=not local,
            headers=_HEADERS,
        )
        self._direct = transport if local else None
        self._urls: dict[str, httpx.URL] = {}

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def call(
        self, method: str, path: str, answer: type[M], body: Json | None = None, *, model: str = "", seconds: float
    ) -> M:
        """What one request is answered with, within `seconds`."""
        wait = _Wait(self.server, path, seconds)
        response = await wait.until(self._client.send(self._request(method, path, body)))
        if response.is_error:
            raise explain(response.content, status=response.status_code, model=model, server=self.server)
        try:
            return answer.model_validate_json(response.content)
        except ValidationError as error:
            found = f"an unexpected answer to {path} ({error.errors()[0]['msg']}): {response.content[:80]!r}"
            raise bad_stream(self.server, found) from error

    @contextlib.asynccontextmanager
    async def stream(self, path: str, body: Json, *, model: str, first_seconds: float) -> AsyncIterator[StreamedAnswer]:
        """Post `body` and read the answer while it comes; its beginning may take `first_seconds` from now on.

        Leaving the context closes the connection unless the answer was read to its end; the server then stops.
        """
        wait = _Wait(self.server, path, first_seconds)
        response = await wait.until(self._begin(path, body))
        try:
            if response.is_error:
                explanation = await wait.until(response.aread())
                raise explain(explanation, status=response.status_code, model=model, server=self.server)
            content_type = response.headers.get("Content-Type", "no content type")
            if "json" not in content_type:
                raise bad_stream(self.server, f"{content_type} instead of a JSON stream")
            yield StreamedAnswer(response, wait)
        finally:
            await response.aclose()

    async def _begin(self, path: str, body: Json) -> httpx.Response:
        """Send a request and return its answer with the body unread."""
        if self._direct is None:
            return await self._client.send(self._request("POST", path, body), stream=True)
        # Without the client's redirects, cookies and hooks, of which a local server has none, and with an address that
        # is parsed once, a turn takes a tenth less.
        url = self._urls.setdefault(path, httpx.URL(self.server + path))
        request = httpx.Request("POST", url, headers=_HEADERS, content=_encoded(body), extensions=_TIMEOUTS)
        return await self._direct.handle_async_request(request)

    def _request(self, method: str, path: str, body: Json | None) -> httpx.Request:
        return self._client.build_request(method, path, content=None if body is None else _encoded(body))


def _encoded(body: Json) -> bytes:
    # In ASCII, where a lone surrogate in a message can be sent.
    return json.dumps(body, allow_nan=False).encode()


class StreamedAnswer:
    """The body of one answer while it comes."""

    def __init__(self, response: httpx.Response, wait: _Wait) -> None:
        self._reads = response.aiter_bytes()
        self._wait = wait

    async def read(self, seconds: float | None = None) -> bytes:
        """The next bytes, b"" at the end. Waits `seconds`, or by default as long as the beginning may take."""
        return await self._wait.until(anext(self._reads, b""), seconds)

    async def drain(self) -> None:
        """Read the end of a body that has nothing more to say, so that its connection can be used again."""
        # If there is no end, that costs one new connection.
        with contextlib.suppress(ModelError):
            await self.read(_DRAIN_SECONDS)


class _Wait:
    """Waiting for one answer: its beginning has one deadline, whatever comes later its own."""

    def __init__(self, server: str, path: str, first_seconds: float) -> None:
        self._server, self._path, self._first_seconds = server, path, first_seconds
        self._time = asyncio.get_running_loop().time
        self._deadline = self._time() + first_seconds

    async def until(self, step: Awaitable[T], seconds: float | None = None) -> T:
        """The outcome of one step, awaited until the first deadline or for `seconds`. Raises `ModelError`."""
        try:
            async with asyncio.timeout_at(self._deadline if seconds is None else self._time() + seconds):
                return await step
        except TimeoutError as error:
            raise silent(self._server, self._path, self._first_seconds if seconds is None else seconds) from error
        except httpx.HTTPError as error:
            raise from_transport(error, server=self._server) from error
