"""The body of a streamed answer, bytes in and deltas out, as far as all kinds of servers are alike; thinking that leaks
into the content between tags is separated. No I/O.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from local.core.errors import ModelError
from local.models.chat import (
    ContentDelta,
    Delta,
    Json,
    ServerErrors,
    ThinkingDelta,
    TokenScore,
    TokenScores,
    ToolCall,
    retry_after_seconds,
)
from local.models.settings import is_loopback

MAX_LINE_BYTES = 4 * 1024 * 1024
Piece = ThinkingDelta | ContentDelta

# The opening and closing marks of thinking; an empty close marks a token that is only dropped.
_TAGS = {
    # Qwen, DeepSeek and most others
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    # Gemma 4: the first line names the channel
    "<|channel>": "<channel|>",
    "<|channel>thought": "<channel|>",
    "<|channel>thought\n": "<channel|>",
    # gpt-oss (harmony)
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|channel|>final<|message|>": "",
    "<|start|>assistant": "",
}
_LONGEST_FIRST = sorted(_TAGS, key=len, reverse=True)


class LineBuffer:
    """The line of a stream that is not complete yet, at most `MAX_LINE_BYTES` of it."""

    def __init__(self, errors: ServerErrors) -> None:
        self._errors = errors
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines completed by `data`, without their ends. Raises `ModelError(kind="bad_stream")` for a huge one."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            raise self._errors.bad_stream(f"a line of more than {MAX_LINE_BYTES} bytes")
        return lines


class AnswerStream:
    """One assistant message while it arrives. `heard` is set by new output until the reader resets it; `finished` once
    the model has given a reason to stop, after which only the usage may follow; `done` once `Done` was returned.
    """

    def __init__(self, model: str, errors: ServerErrors) -> None:
        self.heard = self.finished = self.done = False
        self._model, self._errors = model, errors
        self._lines, self._tags = LineBuffer(errors), ThinkTagSplitter()

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[Delta]:
        """Yield the deltas completed by `data`; those before a failure are yielded before it is raised.

        Raises `ModelError`: bad_stream for data that is not in the server's format, bad_call for a call that cannot be
        understood, filtered for an answer that the server suppressed, and the kind that fits for an error within it.
        """

    @abstractmethod
    def end(self) -> Iterator[Delta]:
        """The stream has ended. Raises `ModelError(kind="stream_cut")` unless the model had finished."""

    def _text(self, message: Json, key: str) -> str:
        value = message.get(key)
        if value is not None and not isinstance(value, str):
            raise self._errors.bad_stream(f"{key} that is not text: {value!r:.80}")
        return value or ""

    def _items(self, message: Json, key: str) -> list[Any]:
        value = message.get(key) or []
        if not isinstance(value, list):
            raise self._errors.bad_stream(f"{key} that are no list: {value!r:.80}")
        return value

    def _object(self, value: Any, what: str) -> Json:
        if not isinstance(value, dict):
            raise self._errors.bad_stream(f"{what} that is not an object: {value!r:.80}")
        return value


def json_object(line: bytes, errors: ServerErrors) -> Json:
    """The object that a line holds. Raises `ModelError(kind="bad_stream")` for anything else."""
    try:
        value = from_json(line)
    except ValueError as error:
        raise errors.bad_stream(f"a line that is not JSON ({error}): {line[:80]!r}") from error
    if not isinstance(value, dict):
        raise errors.bad_stream(f"a line that is not a JSON object: {line[:80]!r}")
    return value


def read_call(name: Any, arguments: Any, call_id: Any, model: str) -> ToolCall:
    """Return a call. Missing arguments are empty and a JSON string is read; an unclear call is never guessed, because a
    tool with wrong arguments may do harm. Raises `ModelError(kind="bad_call")`.
    """
    if not isinstance(name, str) or not name:
        raise unclear(f"{model} made a tool call without a name (arguments {arguments!r:.200})")
    return ToolCall(name=name, arguments=_object(name, arguments, model), id=str(call_id or ""))


def unclear(found: str) -> ModelError:
    """The error for a call that cannot be understood."""
    return ModelError(f"{found}; ask again", kind="bad_call")


def _object(name: str, arguments: Any, model: str) -> dict[str, Any]:
    value = arguments or {}
    if isinstance(value, str):
        try:
            value = from_json(value)
        except ValueError:
            value = None
    if not isinstance(value, dict):
        raise unclear(f"{model} called {name} with arguments that are no object: {arguments!r:.200}")
    return value


def token_scores(holder: Any, key: str) -> Iterator[TokenScores]:
    """Return the scores under that key of an object: `[{"token", "logprob", "top_logprobs": [{"token", "logprob"}]}]`.

    None if there are none. They are optional: entries in another form are left out and break no answer.
    """
    entries = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(entries, list) and entries:
        yield TokenScores(tuple(_score(entry) for entry in entries if isinstance(entry, dict)))


def _score(entry: Json) -> TokenScore:
    top = entry.get("top_logprobs")
    found = [entry, *(top if isinstance(top, list) else ())]
    alternatives = {
        str(one.get("token", "")): float(one["logprob"])
        for one in found
        if isinstance(one, dict) and isinstance(one.get("logprob"), int | float)
    }
    return TokenScore(str(entry.get("token", "")), alternatives)


class ThinkTagSplitter:
    """A splitter of content into thinking and answer, in pieces of any size.

    Only text that may still become a tag is held back, so "a < b" passes at once. After an odd number of backticks the
    text is code and is left alone. A block that opens within an answer and never closes was no thinking but an answer
    that mentions the tag: `close()` returns it again, as content, so that nothing of an answer is lost.
    """

    def __init__(self) -> None:
        self._held = ""  # the beginning of a possible tag
        self._closing = ""  # the tag that ends the block of thinking we are in
        self._unclosed: list[str] = []  # that block, if it opened within an answer
        self._backticks = 0
        self._answering = False  # visible content has been seen
        self._trimming = False  # a block has closed and only white space has come since

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are certain once `text` is there."""
        pieces: list[Piece] = []
        if "<" not in text and not (self._held or self._closing):
            self._backticks += text.count("`")
            self._add_text(text, pieces)
        else:
            self._split(text, pieces, final=False)
        return pieces

    def close(self) -> list[Piece]:
        """Return the held text. Call it once, at the end of the content."""
        pieces: list[Piece] = []
        self._split("", pieces, final=True)
        if self._closing and self._unclosed:
            pieces.append(ContentDelta("".join(self._unclosed)))
        return pieces

    def _split(self, text: str, pieces: list[Piece], *, final: bool) -> None:
        text, self._held = self._held + text, ""
        at = 0
        while at < len(text):
            step = self._in_thinking if self._closing else self._in_content
            at = step(text, at, pieces, final)

    def _in_thinking(self, text: str, at: int, pieces: list[Piece], final: bool) -> int:
        closing = self._closing
        end = text.find(closing, at)
        if end < 0:
            stop = len(text) if final else len(text) - _overlap(text, closing)
            self._think(text[at:stop], pieces)
            self._held = text[stop:]
            return len(text)
        self._think(text[at:end], pieces)
        self._closing = ""
        self._trimming = not self._answering
        return end + len(closing)

    def _in_content(self, text: str, at: int, pieces: list[Piece], final: bool) -> int:
        end, tag = self._next_tag(text, at, final)
        self._add_text(text[at:end], pieces)
        if not tag:
            self._held = text[end:]
            return len(text)
        self._closing = _TAGS[tag]
        self._unclosed = [tag] if self._answering else []
        return end + len(tag)

    def _next_tag(self, text: str, at: int, final: bool) -> tuple[int, str]:
        """Return where the content stops: at the returned tag, or (without a tag) at the text to hold back."""
        while (start := text.find("<", at)) >= 0:
            self._backticks += text.count("`", at, start)
            at = start + 1
            tag = "" if self._backticks % 2 else _tag_at(text, start, final)
            if tag is None:
                return start, ""
            if tag:
                return start, tag
        self._backticks += text.count("`", at)
        return len(text), ""

    def _add_text(self, text: str, pieces: list[Piece]) -> None:
        if self._trimming:
            text = text.lstrip()
            self._trimming = not text
        if text:
            self._answering = self._answering or not text.isspace()
            pieces.append(ContentDelta(text))

    def _think(self, text: str, pieces: list[Piece]) -> None:
        if text:
            if self._unclosed:
                self._unclosed.append(text)
            pieces.append(ThinkingDelta(text))


def _tag_at(text: str, start: int, final: bool) -> str | None:
    """The longest tag that begins at `start`: "" for none, None while more text may decide otherwise."""
    rest = text[start : start + len(_LONGEST_FIRST[0])]
    for tag in _LONGEST_FIRST:
        if rest.startswith(tag):
            return tag
        if not final and tag.startswith(rest):
            return None
    return ""


def _overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `tag`."""
    return next((size for size in range(len(tag) - 1, 0, -1) if text.endswith(tag[:size])), 0)


# HTTP to one model server: whole and streamed answers, every failure a `ModelError`.

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
        """Return the answer to one request, within `seconds`."""
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
        """Send a request and return its answer with the body unread. A server may close an idle connection in the
        moment in which it is used again: that is no failure, and the request is sent on a new one.
        """
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
        # Without the client's redirects, cookies and hooks, which a local server does not use, and with an address that
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
        """Read the next bytes of a complete body; a failure counts as its end."""
        try:
            return await self.read()
        except ModelError:
            return b""

    async def drain(self) -> None:
        """Read the end of a complete body, so that its connection can be used again."""
        # A missing end costs one new connection.
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
        """Set the deadline, also for the current wait."""
        self._seconds, self._deadline = seconds, self._time() + seconds
        if self._step is not None and not self._step.expired():
            self._step.reschedule(self._deadline)

    @property
    def seconds(self) -> float:
        """Return the permitted silence of the current wait."""
        return self._seconds

    async def until(self, step: Awaitable[T]) -> T:
        """The outcome of one step, awaited until the deadline. Raises `ModelError`."""
        try:
            async with asyncio.timeout_at(self._deadline) as self._step:
                return await step
        except TimeoutError as error:
            raise self._errors.silent(self._path, self._seconds) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # the second one for a redirect to an invalid address
            raise self._errors.from_transport(error) from error
        finally:
            self._step = None
