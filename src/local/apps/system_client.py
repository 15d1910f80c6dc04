"""A program's hold on a running system over HTTP: ask, look at its health, follow its bus."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self
from urllib.parse import quote

import httpx

from local.environment import environment
from local.errors import LocalError

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 600.0
TOO_MANY = "too_many_queries"

Json = dict[str, Any]


class NoAnswer(LocalError):
    """A system did not answer, or answered with an error; the text is the system's own."""

    def __init__(self, kind: str, message: str, retry_seconds: float = 0.0) -> None:
        """`retry_seconds`: after how long to ask again, if the system has said so."""
        super().__init__(message)
        self.kind, self.retry_seconds = kind, retry_seconds


class SystemClient:
    """Talks to one system; use it as `with`. Every method raises `NoAnswer`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """`token` is shown where LOCAL2_API_TOKEN has none; see `owner_token`."""
        self._url = url.rstrip("/")
        token = environment().api_token or token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx.Timeout(CONNECT_SECONDS, read=ANSWER_SECONDS)
        with self._reporting():  # an address that is none
            self._http = httpx.Client(base_url=self._url, headers=headers, timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def health(self) -> Json:
        """What GET /health says, whatever the system's state."""
        return self._json("GET", "/health", also=(503,))

    def ask(self, query: str, session_id: str) -> Json:
        """Ask and wait for the whole answer; a system that has too much to do is asked again when it says."""
        body, end = {"query": query, "session_id": session_id}, time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self._json("POST", "/query", body)
            except NoAnswer as error:
                if error.kind != TOO_MANY or time.monotonic() + error.retry_seconds > end:
                    raise
                time.sleep(error.retry_seconds)

    def rate(self, query_id: str, rating: int) -> None:
        """Rate an answer: 1 or -1."""
        self._json("POST", "/feedback", {"query_id": query_id, "rating": rating})

    def recall(self, query: str) -> list[Json]:
        """What GET /memory finds, best first."""
        hits: list[Json] = self._json("GET", f"/memory?query={quote(query, safe='')}")["hits"]
        return hits

    def session(self, session_id: str) -> Json:
        """What GET /sessions/{id} says."""
        return self._json("GET", f"/sessions/{quote(session_id, safe='')}")

    @contextmanager
    def follow(self, subjects: Sequence[str], seconds: float) -> Iterator[Iterator[Json]]:
        """The envelopes on these subjects from now on; the iterator ends `seconds` after its first use."""
        timeout = httpx.Timeout(CONNECT_SECONDS, read=seconds)
        with ExitStack() as stack:
            with self._reporting():
                stream = self._http.stream("GET", "/events", params={"subject": list(subjects)}, timeout=timeout)
                response = stack.enter_context(stream)
                if response.is_error:
                    response.read()
                    raise _refusal(response)
                lines = response.iter_lines()
                next(lines)  # a comment: the subscriptions are in place
            yield _envelopes(lines, seconds)

    def _json(self, method: str, path: str, body: object = None, also: Sequence[int] = ()) -> Json:
        with self._reporting():
            response = self._http.request(method, path, json=body)
        if response.is_error and response.status_code not in also:
            raise _refusal(response)
        try:
            value: Json = response.json()
            return value
        except ValueError:
            raise NoAnswer("unreadable", f"{self._url}{path} answered with something that is not JSON") from None

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Say in our own words what keeps a server from answering."""
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            text = f"no answer from {self._url}: {error or type(error).__name__}"
            raise NoAnswer("unreachable", text) from None


def _refusal(response: httpx.Response) -> NoAnswer:
    try:
        error = response.json()["error"]
        text = f"{error['message']} (HTTP {response.status_code}, {error['kind']})"
        return NoAnswer(error["kind"], text, float(response.headers.get("retry-after", 0)))
    except (ValueError, LookupError, TypeError):
        return NoAnswer("refused", f"HTTP {response.status_code} from {response.url}, without a reason")


def _envelopes(lines: Iterator[str], seconds: float) -> Iterator[Json]:
    end = time.monotonic() + seconds
    with suppress(httpx.ReadTimeout):
        for line in lines:
            if time.monotonic() > end:
                return
            if line.startswith("data:"):
                yield json.loads(line.removeprefix("data:"))
