"""HTTP to one model server: whole and streamed answers, every failure a `ModelError`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from local.errors import ModelError
from local.models.chat import Json
from local.models.model_errors import ServerErrors, retry_after_seconds
from local.models.server_address import is_loopback

CONNECT_SECONDS = 5.0

# How long a complete answer may keep its connection waiting for the end of the body, to use it again.
_DRAIN_SECONDS = 0.1

# httpx knows one read timeout, but a first token takes longer than the next: we limit each wait ourselves.
_TIMEOUT = httpx.Timeout(None, connect=CONNECT_SECONDS)
CLOSED_UNANSWERED = "Server disconnected without sending a response."  # as httpcore words it
_TIMEOUTS = {"timeout": _TIMEOUT.as_dict()}
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class ModelHttp:
    """The connections to one server, at the base address `errors.server`. `headers` go with every request."""

    def __init__(
        self,
        errors: ServerErrors,
        *,
        headers: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.errors = errors
        server = self._server = errors.server
        self._headers = httpx.Headers({**_HEADERS, **headers})
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
            headers=self._headers,
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
        wait = Wait(self.errors, path, seconds)
        response = await wait.until(self._client.send(self._request(method, path, body)))
        if not response.is_success:
            raise self._explained(response, model)
        try:
            return answer.model_validate_json(response.content)
        except ValidationError as error:
            found = f"an unexpected answer to {path} ({error.errors()[0]['msg']}): {response.content[:80]!r}"
            raise self.errors.bad_stream(found) from error

    @contextlib.asynccontextmanager
    async def stream(self, path: str, content: bytes, *, model: str, wait: Wait) -> AsyncIterator[StreamedAnswer]:
        """Post `content` and read the answer while it comes, for as long as `wait` allows.

        Leaving the context closes the connection unless the answer was read to its end; the server then stops.
        """
        response = await wait.until(self._begin(path, content))
        try:
            if not response.is_success:
                await wait.until(response.aread())
                raise self._explained(response, model)
            yield StreamedAnswer(response, wait)
        finally:
            await response.aclose()

    async def _begin(self, path: str, content: bytes) -> httpx.Response:
        """Send a request and return its answer with the body unread. A server may close a connection that it has kept
        in the moment in which it is used again: that is no failure of its, and it is asked on another one."""
        try:
            return await self._post(path, content)
        except httpx.RemoteProtocolError as error:
            if str(error) != CLOSED_UNANSWERED:
                raise
            return await self._post(path, content)

    async def _post(self, path: str, content: bytes) -> httpx.Response:
        if self._direct is None:
            request = self._client.build_request("POST", path, content=content)
            return await self._client.send(request, stream=True)
        # Without the client's redirects, cookies and hooks, of which a local server has none, and with an address that
        # is parsed once, a turn takes a tenth less.
        url = self._urls.get(path) or self._urls.setdefault(path, httpx.URL(self._server + path))
        request = httpx.Request("POST", url, headers=self._headers, content=content, extensions=_TIMEOUTS)
        return await self._direct.handle_async_request(request)

    def _explained(self, response: httpx.Response, model: str) -> ModelError:
        wish = retry_after_seconds(response.headers)
        return self.errors.explain(response.content, status=response.status_code, model=model, retry_after=wish)

    def _request(self, method: str, path: str, body: Json | None) -> httpx.Request:
        return self._client.build_request(method, path, content=None if body is None else encoded(body))


def encoded(body: Json) -> bytes:
    """A body as JSON."""
    # In ASCII, where a lone surrogate in a message can be sent.
    return json.dumps(body, allow_nan=False).encode()


class StreamedAnswer:
    """The body of one answer while it comes."""

    def __init__(self, response: httpx.Response, wait: Wait) -> None:
        self.content_type: str = response.headers.get("Content-Type", "no content type")
        # Without httpx's layers for compression, which is not asked for, each piece takes 17 µs less [m].
        stream = response.stream if "Content-Encoding" not in response.headers else None
        self._reads = aiter(stream if isinstance(stream, httpx.AsyncByteStream) else response.aiter_bytes())
        self._wait = wait

    def allow(self, seconds: float) -> None:
        """Whatever is read from now on may take `seconds`, counted from now; until then the beginning's limit holds."""
        self._wait.allow(seconds)

    async def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        return await self._wait.until(anext(self._reads, b""))

    async def rest(self) -> bytes:
        """The next bytes of a body that has said all it must; a failure is its end."""
        try:
            return await self.read()
        except ModelError:
            return b""

    async def drain(self) -> None:
        """Read the end of a body that has nothing more to say, so that its connection can be used again."""
        # If there is no end, that costs one new connection.
        self.allow(_DRAIN_SECONDS)
        await self.rest()


class Wait:
    """Waiting for one answer, with one deadline at a time."""

    def __init__(self, errors: ServerErrors, path: str, seconds: float) -> None:
        self._errors, self._path = errors, path
        self._time = asyncio.get_running_loop().time
        self._step: asyncio.Timeout | None = None  # that is awaited now
        self.allow(seconds)

    def allow(self, seconds: float) -> None:
        """Set the deadline, of what is awaited now, too."""
        self._seconds, self._deadline = seconds, self._time() + seconds
        if self._step is not None and not self._step.expired():
            self._step.reschedule(self._deadline)

    @property
    def seconds(self) -> float:
        """How long the silence may last that is waited through now."""
        return self._seconds

    async def until(self, step: Awaitable[T]) -> T:
        """The outcome of one step, awaited until the deadline. Raises `ModelError`."""
        try:
            async with asyncio.timeout_at(self._deadline) as self._step:
                return await step
        except TimeoutError as error:
            raise self._errors.silent(self._path, self._seconds) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # the second one of a redirect to what is no address
            raise self._errors.from_transport(error) from error
        finally:
            self._step = None
