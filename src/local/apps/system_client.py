"""A program's hold on a running system over HTTP: ask, look at its health, follow its bus. Quick to import."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from local.apps.utf8_text import as_utf8
from local.environment import environment
from local.errors import NoAnswer

CONNECT_SECONDS = 10.0
LISTED = 10  # of the ids that may be meant
WHOLE_ID = 32  # characters of an id that is made by us
ANSWER_SECONDS = 600.0
TOO_MANY = "too_many_queries"
STOPPING = "stopping"
DOORS = 3  # that may close, one after the other, while one request is made
RETRY_SECONDS = 1.0  # where a refusal does not say after how long to ask again
SILENT_SECONDS = 40.0  # a stream has a comment every 15

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event: what it is, what it says, and the id to go on after it."""

    name: str
    data: Json
    event_id: str


class _DoorCloses(NoAnswer):
    """The API ends, perhaps to start again: whoever connects next is served by the next one."""


class SystemClient:
    """Talks to one system, each request on a connection of its own. Every method raises `NoAnswer`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """`token` is shown where LOCAL2_API_TOKEN has none; see `owner_token`."""
        self._url = url.rstrip("/")
        try:
            parts = urlsplit(self._url)
            self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        except ValueError as error:
            raise self._unreachable(error) from None
        if not self._host or parts.scheme not in ("http", "https"):
            raise self._unreachable("no address of the form http://host:port")
        self._path = parts.path
        token = environment().api_token or token
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def health(self) -> Json:
        """What GET /health says, whatever the system's state."""
        return self.request("GET", "/health", also=(503,))

    def ask(self, query: str, session_id: str) -> Json:
        """Ask and wait for the whole answer; a system that has too much to do is asked again when it says."""
        body, end = {"query": query, "session_id": session_id}, time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self.request("POST", "/query", body)
            except NoAnswer as error:
                pause = error.retry_after or RETRY_SECONDS
                if error.kind != TOO_MANY or time.monotonic() + pause > end:
                    raise
                time.sleep(pause)

    def rate(self, query_id: str, rating: int) -> None:
        """Rate an answer: 1 or -1."""
        self.request("POST", "/feedback", {"query_id": query_id, "rating": rating})

    def recall(self, query: str) -> list[Json]:
        """What GET /memory finds, best first."""
        hits: list[Json] = self.request("GET", f"/memory?{urlencode({'query': query})}")["hits"]
        return hits

    def session(self, session_id: str) -> Json:
        """What GET /sessions/{id} says."""
        return self.request("GET", f"/sessions/{quote(session_id, safe='')}")

    def export(self, session_id: str, form: str = "markdown") -> str:
        """A whole conversation as Markdown, or as JSON."""
        path = f"/sessions/{quote(session_id, safe='')}/export?format={form}"
        with self._reporting(), closing(self._connection(ANSWER_SECONDS)) as connection:
            return self._answer(connection, "GET", path, None, {}).read().decode()

    def sessions(self) -> list[Json]:
        """What GET /sessions lists, the latest first."""
        sessions: list[Json] = self.request("GET", "/sessions")["sessions"]
        return sorted(sessions, key=lambda session: -float(session["updated_at"]))  # pinned ones come first there

    def trace(self, query_id: str) -> Json:
        """What GET /query/{id}/trace says."""
        return self.request("GET", f"/query/{quote(query_id, safe='')}/trace")

    def whole_id(self, beginning: str) -> str:
        """The id of the one session that begins so, or what was given if none does. Raises `NoAnswer` if several do."""
        return _the_one(beginning, (each["session_id"] for each in self.sessions()), "sessions")

    def whole_engram_id(self, beginning: str) -> str:
        """The id of the one engram that begins so, as `whole_id` finds a session's. Raises `NoAnswer` if several do."""
        if len(beginning) >= WHOLE_ID:
            return beginning
        return _the_one(beginning, (each["engram_id"] for each in self._engrams()), "engrams")

    def _engrams(self) -> Iterator[Json]:
        page = self.request("GET", "/memory?limit=100")
        yield from page["engrams"]
        while page["cursor"]:
            page = self.request("GET", f"/memory?{urlencode({'limit': 100, 'cursor': page['cursor']})}")
            yield from page["engrams"]

    def attach(self, name: str, content: bytes) -> Json:
        """Send a file; gives what is known of it, its id among it."""
        return self.request("POST", f"/attachments?{urlencode({'name': name})}", content)

    def query_events(self, body: Json) -> Iterator[StreamEvent]:
        """Ask, and follow what happens from the moment the query is on record."""
        return self._events("POST", "/query", body)

    def events_after(self, query_id: str, event_id: str) -> Iterator[StreamEvent]:
        """Follow a query from after an event, or from its beginning if that is empty; nothing if no more will come."""
        return self._events("GET", f"/query/{query_id}/events", headers={"Last-Event-ID": event_id} if event_id else {})

    @contextmanager
    def follow(self, subjects: Sequence[str], seconds: float) -> Iterator[Iterator[Json]]:
        """The envelopes on these subjects from now on; the iterator ends `seconds` after its first use."""
        path = f"/events?{urlencode([('subject', subject) for subject in subjects])}"
        with self._reporting(), closing(self._connection(CONNECT_SECONDS)) as connection:
            response = self._answer(connection, "GET", path, None, {"Accept": "text/event-stream"})
            response.readline()  # a comment: the subscriptions are in place
            yield self._envelopes(connection, response, seconds)

    def insist(self, method: str, path: str, body: Json | None = None, also: Sequence[int] = ()) -> Json:
        """As `request`, of what may be done twice: where the door closes meanwhile, the next one is asked."""
        for _ in range(DOORS):
            with suppress(_DoorCloses):
                return self._request(method, path, body, also)
        return self._request(method, path, body, also)

    def request(self, method: str, path: str, body: Json | bytes | None = None, also: Sequence[int] = ()) -> Json:
        """One request and its answer as JSON; those with a status in `also` count as answers."""
        if method == "GET":
            return self.insist(method, path, also=also)
        return self._request(method, path, body, also)

    def _request(self, method: str, path: str, body: Json | bytes | None, also: Sequence[int]) -> Json:
        with self._reporting(), closing(self._connection(ANSWER_SECONDS)) as connection:
            response = self._answer(connection, method, path, body, {}, also)
            text = response.read()
        try:
            value: Json = json.loads(text or b"{}")
            return value
        except ValueError:
            raise NoAnswer("unreadable", f"{self._url}{path} answered with something that is not JSON") from None

    def _events(
        self, method: str, path: str, body: Json | None = None, headers: dict[str, str] | None = None
    ) -> Iterator[StreamEvent]:
        accept = {"Accept": "text/event-stream", **(headers or {})}
        with self._reporting(), closing(self._connection(SILENT_SECONDS)) as connection:
            yield from _parsed(self._answer(connection, method, path, body, accept))

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host or "", self._port, timeout=seconds)

    def _answer(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Json | bytes | None,
        headers: dict[str, str], also: Sequence[int] = (),
    ) -> http.client.HTTPResponse:  # fmt: skip
        content, kind = (body, {}) if body is None or isinstance(body, bytes) else _as_json(body)
        with suppress(BrokenPipeError, ConnectionResetError):  # who refuses a body reads no more of it, and says why
            connection.request(method, f"{self._path}{path}", content, {**self._headers, **kind, **headers})
        response = connection.getresponse()
        if response.status >= 400 and response.status not in also:
            raise _refusal(response, f"{self._url}{path}")
        return response

    def _envelopes(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, seconds: float
    ) -> Iterator[Json]:
        end = time.monotonic() + seconds
        connection.sock.settimeout(seconds)
        with suppress(TimeoutError):
            while (line := response.readline()) and time.monotonic() < end:
                if line.startswith(b"data:"):
                    yield json.loads(line.removeprefix(b"data:"))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Say in our own words what keeps a server from answering."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, why: object) -> NoAnswer:
        return NoAnswer("unreachable", f"no answer from {self._url}: {str(why) or type(why).__name__}")


def _the_one(beginning: str, ids: Iterable[str], what: str) -> str:
    found = [each for each in ids if each.startswith(beginning)]
    if beginning in found or not found:
        return beginning
    if len(found) > 1:
        text = f"{len(found)} {what} begin with {beginning!a}: {', '.join(found[:LISTED])}; give more of it"
        raise NoAnswer("ambiguous", text)
    return found[0]


def _as_json(body: Json) -> tuple[bytes, dict[str, str]]:
    return as_utf8(json.dumps(body, ensure_ascii=False)), {"Content-Type": "application/json"}


def _refusal(response: http.client.HTTPResponse, url: str) -> NoAnswer:
    pause = response.headers.get("Retry-After", "")
    seconds = float(pause) if pause.isdecimal() else None
    try:
        error = json.loads(response.read())["error"]
        sentence = f"{error['message']} (HTTP {response.status}, {error['kind']})"
        kind = _DoorCloses if error["kind"] == STOPPING else NoAnswer
        return kind(error["kind"], sentence, response.status, seconds)
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return NoAnswer("refused", f"HTTP {response.status} from {url}, without a reason", response.status, seconds)


def _parsed(response: http.client.HTTPResponse) -> Iterator[StreamEvent]:
    fields: dict[str, str] = {}
    while line := response.readline():
        name, _, value = line.decode("utf-8").rstrip("\r\n").partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield StreamEvent(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id", ""))
            fields = {}
