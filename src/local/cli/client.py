"""The HTTP client of a running system: ask, check its health, follow its bus. Quick to import."""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import quote, urlencode, urlsplit

import typer

from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found, write_lines
from local.core.data_dir import NotRunning, RunDirectory, holder, owner_token
from local.core.environment import data_dir, environment
from local.core.environment import data_dir as find_data_dir
from local.core.errors import LocalError, NoAnswer, NoApi
from local.core.text import as_utf8

CONNECT_SECONDS = 10.0
LISTED = 10  # of the ids that may be meant
WHOLE_ID = 32  # characters of an id that is made by us
ANSWER_SECONDS = 600.0
TOO_MANY = "too_many_queries"
STOPPING = "stopping"
DOORS = 3  # that may close, one after the other, while one request is made
RETRY_SECONDS = 1.0  # after a refusal without a time
SILENT_SECONDS = 40.0  # a stream has a comment every 15

Json = dict[str, Any]


class NoBrowser(LocalError):
    """The error for a machine without a browser that could show the page."""

    kind = "no_browser"

    def __init__(self, address: str) -> None:
        super().__init__(
            f"no browser could be started here; open {address} in one yourself, and sign in with the code that `local2"
            " code` prints"
        )


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event: its kind, its data, and the id from which to resume the stream."""

    name: str
    data: Json
    event_id: str


class _ApiCloses(NoAnswer):
    """The error for an API that is stopping, perhaps to restart: a new connection reaches the next one."""


class SystemClient:
    """An HTTP client of one system, with a connection for each request. Every method raises `NoAnswer`."""

    def __init__(self, url: str, token: str | None = None, answer_seconds: float = ANSWER_SECONDS) -> None:
        """`token` is shown where LOCAL2_API_TOKEN has none; see `owner_token`. An answer may take
        `answer_seconds`."""
        self._answer_seconds = answer_seconds
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

    @property
    def url(self) -> str:
        """The address of the system's API and page."""
        return self._url

    def health(self) -> Json:
        """Return the answer of GET /health, whatever the system's state."""
        return self.request("GET", "/health", also=(503,))

    def ask(self, query: str, session_id: str, query_id: str | None = None) -> Json:
        """Ask and wait for the whole answer; a busy system is asked again after the time that it names."""
        body, end = {"query": query, "session_id": session_id}, time.monotonic() + self._answer_seconds
        body |= {"query_id": query_id} if query_id else {}
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
        """Return the hits of GET /memory, best first."""
        hits: list[Json] = self.request("GET", f"/memory?{urlencode({'query': query})}")["hits"]
        return hits

    def sign_in_link(self) -> str:
        """The address of the page with a new one-time code, which signs a browser of this Unix user in."""
        return f"{self._url}/#code={self._code(link=True)}"

    def sign_in_code(self) -> str:
        """A new one-time code to be typed on the page."""
        return self._code(link=False)

    def sign_out_all(self) -> int:
        """Sign every browser of the caller out; returns how many that were."""
        return int(self.insist("POST", "/sign-out", {"everywhere": True})["signed_out"])

    def sign_ins(self) -> list[Json]:
        """The browsers of the caller that are signed in."""
        found: list[Json] = self.request("GET", "/sign-ins")["sign_ins"]
        return found

    def sign_out_one(self, name: str) -> None:
        """Sign one browser out, named as `sign_ins` has it."""
        self.insist("DELETE", f"/sign-ins/{quote(name, safe='')}")

    def _code(self, *, link: bool) -> str:
        return str(self.insist("POST", "/sign-in/codes", {"link": link})["code"])

    def session(self, session_id: str) -> Json:
        """Return the answer of GET /sessions/{id}."""
        return self.request("GET", f"/sessions/{quote(session_id, safe='')}")

    def export(self, session_id: str, form: str = "markdown") -> str:
        """A whole conversation as Markdown, or as JSON."""
        path = f"/sessions/{quote(session_id, safe='')}/export?format={form}"
        with self._reporting(), closing(self._connection(ANSWER_SECONDS)) as connection:
            return self._answer(connection, "GET", path, None, {}).read().decode()

    def sessions(self) -> list[Json]:
        """Return the sessions of GET /sessions, the latest first."""
        sessions: list[Json] = self.request("GET", "/sessions")["sessions"]
        return sorted(sessions, key=lambda session: -float(session["updated_at"]))  # pinned ones come first there

    def _all_sessions(self) -> list[Json]:
        sessions: list[Json] = self.request("GET", "/sessions?archived=any")["sessions"]
        return sessions

    def answer(self, query_id: str) -> Json:
        """Return the answer of GET /query/{id}."""
        return self.request("GET", f"/query/{quote(query_id, safe='')}", also=(502,))

    def trace(self, query_id: str) -> Json:
        """Return the answer of GET /query/{id}/trace."""
        return self.request("GET", f"/query/{quote(query_id, safe='')}/trace")

    def whole_id(self, beginning: str) -> str:
        """Return the id of the only session that begins with this text, or the text if none does. Raises `NoAnswer` if
        several do.
        """
        return _the_one(beginning, (each["session_id"] for each in self._all_sessions()), "sessions")

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
        """Upload a file; returns its description with its id."""
        return self.request("POST", f"/attachments?{urlencode({'name': name})}", content)

    def query_events(self, body: Json) -> Iterator[StreamEvent]:
        """Ask, and follow the query's events from the moment it is recorded."""
        return self._events("POST", "/query", body)

    def events_after(self, query_id: str, event_id: str) -> Iterator[StreamEvent]:
        """Follow a query from after an event, or from its beginning if that is empty; yields nothing if no more will
        come.
        """
        return self._events("GET", f"/query/{query_id}/events", headers={"Last-Event-ID": event_id} if event_id else {})

    @contextmanager
    def follow(self, subjects: Sequence[str], seconds: float) -> Iterator[Iterator[Json]]:
        """Yield the envelopes on these subjects from now on; the iterator ends `seconds` after its first use."""
        path = f"/events?{urlencode([('subject', subject) for subject in subjects])}"
        with self._reporting(), closing(self._connection(CONNECT_SECONDS)) as connection:
            response = self._answer(connection, "GET", path, None, {"Accept": "text/event-stream"})
            response.readline()  # a comment: the subscriptions are in place
            yield self._envelopes(connection, response, seconds)

    def insist(self, method: str, path: str, body: Json | None = None, also: Sequence[int] = ()) -> Json:
        """Make a request that may be repeated: if the API stops in between, the request goes to its successor."""
        for _ in range(DOORS):
            with suppress(_ApiCloses):
                return self._request(method, path, body, also)
        return self._request(method, path, body, also)

    def request(self, method: str, path: str, body: Json | bytes | None = None, also: Sequence[int] = ()) -> Json:
        """Send one request and return its answer as JSON; those with a status in `also` count as answers."""
        if method == "GET":
            return self.insist(method, path, also=also)
        return self._request(method, path, body, also)

    def _request(self, method: str, path: str, body: Json | bytes | None, also: Sequence[int]) -> Json:
        with self._reporting(), closing(self._connection(self._answer_seconds)) as connection:
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
        with suppress(BrokenPipeError, ConnectionResetError):  # it may refuse the body, and answer
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
        """Raise `NoAnswer` with a clear message for failures of the connection."""
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
        text = f"{len(found)} {what} begin with {beginning!a}: {', '.join(found[:LISTED])}; type more of it"
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
        kind = _ApiCloses if error["kind"] == STOPPING else NoAnswer
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


# The system that answers: the one that runs on the data directory, or else one that is started for a while.

LOOK_SECONDS = 0.05  # between two looks at a system that another process is starting


def running_system(api: str | None, directory: Path | None) -> SystemClient:
    """Return a client of the system at that address, else on that data directory. Raises `NotRunning`, `NoApi`."""
    return AnsweringSystem(api, directory, may_start=False).find()


class AnsweringSystem:
    """The system that a command uses, found by its address, or again each time by its data directory, because it may
    have restarted at another port. Use as `with`: a system that was started for the command ends with it.
    """

    def __init__(
        self, api: str | None, directory: Path | None, *, may_start: bool, flags: Sequence[str] = (),
        workspace: Path | None = None,
    ) -> None:  # fmt: skip
        """`flags` and the `workspace` are for a system that is started; if a running one works elsewhere, a warning is
        printed.
        """
        self._api, self._directory, self._may_start, self._flags = api, data_dir(directory), may_start, flags
        self._workspace, self._has_told = workspace, False
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def find(self) -> SystemClient:
        """Return a client of the current system. Raises `NotRunning`, `NoApi`, `SystemDidNotStart`."""
        if self._api is not None:
            return SystemClient(self._api)
        try:
            return self._running()
        except NotRunning:
            if not self._may_start:
                raise
        self._start()
        return self._running()

    def find_again(self) -> SystemClient:
        """Find a system again that was available: it comes back, or its owner restarts it. Raises `NoAnswer`."""
        try:
            return self.find()
        except LocalError as error:
            raise NoAnswer("unreachable", str(error)) from None

    def _running(self) -> SystemClient:
        facts = RunDirectory(self._directory).read()
        if facts.api_url is None:
            raise NoApi(f"the system on {self._directory} serves no HTTP API; start it with --api")
        self._report_workspace(facts.workspace)
        return SystemClient(facts.api_url, owner_token(self._directory))

    def _report_workspace(self, used: str) -> None:
        if self._workspace is None or used == str(self._workspace) or self._has_told:
            return
        self._has_told = True
        line = f"the running system works in {used}, not here; restart it with `local2 run --workspace .`"
        print(visible(line), file=sys.stderr)  # noqa: T201

    def _start(self) -> None:
        from local.cli.temporary_system import (
            START_SECONDS,  # few questions do
            SystemDidNotStart,  # few questions do
            TemporarySystem,  # few questions do
        )

        print("starting LoCAL2 …", file=sys.stderr)  # noqa: T201
        flags = [*self._flags, *(["--workspace", str(self._workspace)] if self._workspace else [])]
        try:
            self._stack.enter_context(TemporarySystem(self._directory, flags=flags))
        except SystemDidNotStart:
            if not self._is_started_elsewhere(time.monotonic() + START_SECONDS):
                raise

    def _is_started_elsewhere(self, until: float) -> bool:
        """Whether another process was starting a system here; it is waited for while that process lives."""
        while holder(self._directory) is not None and time.monotonic() < until:
            with suppress(NotRunning):
                RunDirectory(self._directory).read()
                return True
            time.sleep(LOOK_SECONDS)
        return False


# `local2 restart NAME`: restart one participant of the running system, with its present settings.

API, TOLD = "api", "participant"

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the participant, as `local2 status` shows it.")]


def restart(name: Name, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Restart a participant with the current settings, or start one that was added to the settings after start-up.

    Example: local2 restart web_search
    """
    child = _restarted(name, api, data_dir)
    if _has_failed(child):
        typer.echo(_said(child), err=True)
        raise typer.Exit(1)
    typer.echo(_said(child) + (f", process {child['pid']}" if child["pid"] else ""))


def taken_over(name: str, directory: Path | None) -> str:
    """Restart a participant in the running system, if one runs, so that a decision takes effect; returns a description
    of the result.
    """
    try:
        child = _restarted(name, None, directory)
    except NotRunning:
        return "no system runs; the change applies to the next start"
    except LocalError as error:
        why = f"the running system has no {name}" if error.kind == "not_found" else visible(str(error))
        return f"the running system has not applied the change: {why}"
    return (
        f"in the running system {_said(child)}" if _has_failed(child) else "the running system has applied the change"
    )


def _restarted(name: str, api: str | None, directory: Path | None) -> dict[str, Any]:
    with running_system(api, directory) as client:
        path = f"/participants/{quote(name, safe='')}/restart"
        child: dict[str, Any] = _api_restarted(client, path) if name == API else client.insist("POST", path, {})[TOLD]
    return child


def _api_restarted(client: SystemClient, path: str) -> dict[str, Any]:
    """Restart the API itself, once. If the API closes before it has answered, it is restarting, and its successor
    reports the result.
    """
    try:
        child: dict[str, Any] = client.request("POST", path, {})[TOLD]
    except NoAnswer as error:
        if error.kind != STOPPING:
            raise
        child = next(each for each in client.request("GET", "/participants")["participants"] if each["name"] == API)
    return child


def _has_failed(child: dict[str, Any]) -> bool:
    return bool(child["state"] == "failed")


def _said(child: dict[str, Any]) -> str:
    if child["state"] == "gone":
        return f"{child['name']} is no longer a participant: {child['detail']}"
    why = f"has failed: {visible(child['detail'])}" if _has_failed(child) else f"is {child['state']}"
    return f"{child['name']} {why}"


# `local2 open` and `local2 code`: the page of the running system, and signing in to it.

UNAUTHORIZED = 401


def open_page(api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Open the page of the running system in the browser, and sign the browser in. Start the system first with
    `local2 run`.

    Example: local2 open
    """
    import webbrowser  # no other command needs it

    client = running_system(api, data_dir)
    client.health()
    address = f"{client.url}/"
    try:
        # Other users of this machine see a browser's command line: a link's code works for this user alone.
        link = client.sign_in_link()
    except NoAnswer as error:
        if error.status != UNAUTHORIZED:
            raise
        link = address
    if not webbrowser.open(link):
        raise NoBrowser(address)
    typer.echo(f"opened {address}{'' if link != address else ' (the page asks you to sign in)'}")


def sign_in_code(
    api: ApiOption = None,
    data_dir: DataDir = None,
    sign_out: Annotated[bool, typer.Option("--sign-out", help="Sign every browser of yours out instead.")] = False,
) -> None:
    """Print a code that signs one browser in as you: once, within ten minutes. Enter it on the page, on this machine or
    another one. After five wrong codes it is withdrawn.

    Example: local2 code
    """
    client = running_system(api, data_dir)
    if sign_out:
        number = client.sign_out_all()
        typer.echo(f"{number} browser{' was' if number == 1 else 's were'} signed out")
        return
    code = client.sign_in_code()
    typer.echo(f"enter this code on {client.url}/ within ten minutes; it works once:", err=True)
    typer.echo(code)


browsers_app = typer.Typer(help="Browsers that are signed in to the page: list, sign-out.")


@browsers_app.command("list")
def list_browsers(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """List your browsers that are signed in, the one that was used last first.

    Example: local2 browsers list
    """
    found = running_system(api, data_dir).sign_ins()
    lines = map(_browser_line, found)
    write_found({"sign_ins": found}, lines, as_json=as_json, nothing="no browser is signed in")


@browsers_app.command("sign-out")
def sign_out_browser(
    browser: Annotated[str, typer.Argument(metavar="ID", help="A browser; the beginning of its id will do.")],
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Sign one browser out. `local2 code --sign-out` signs out all of yours.

    Example: local2 browsers sign-out 3f2a0c81d5e7
    """
    running_system(api, data_dir).sign_out_one(browser)
    typer.echo(f"{browser} was signed out")


def _browser_line(row: Json) -> str:
    day = date_and_time(row["used_at"]).partition(" ")[0]
    since = date_and_time(row["begun_at"])
    return f"{row['id']}  {visible(row['browser']) or 'unknown browser':24}  signed in {since}, used {day}"


# `local2 status`: how the system is, with every process of it.

NOT_WELL = 1


def status(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show how the system is: its model, and each participant with its state, restarts and troubles.

    Exit status: 0 if all is well, 1 if it starts or something is wrong, 2 if no system runs.

    Example: local2 status
    """
    with AnsweringSystem(api, data_dir, may_start=False) as system:
        try:
            health = system.find().health()
        except NoApi:
            health = _on_bus(data_dir)
    write_lines([json.dumps(health)] if as_json else status_lines(health))
    if health["status"] != "ok":
        raise typer.Exit(NOT_WELL)


def status_lines(health: Json) -> Iterator[str]:
    """Format the answer of GET /health: a line for the system, its problems, and a line per participant."""
    said = [health["status"], health.get("model"), _on(health.get("backend")), _version(health.get("version"))]
    yield visible("  ".join(str(each) for each in said if each))
    for name in ("problem", "notice"):
        if health.get(name):
            yield visible(f"{name}: {health[name]}")
    if not health.get("participants"):
        return
    form = "{:<18} {:<8} {:<9} {:>7} {:>8}  {}"
    yield form.format("participant", "kind", "state", "process", "restarts", "").rstrip()
    for row in health["participants"]:
        figures = [row["name"], row.get("kind") or "", row["state"], row.get("pid") or "-", row.get("restarts") or 0]
        yield visible(form.format(*figures, _trouble(row))).rstrip()


def _on(backend: str | None) -> str:
    return f"on {backend}" if backend else ""


def _version(version: str | None) -> str:
    return f"version {version}" if version else ""


def _trouble(row: Json) -> str:
    problem = (row.get("details") or {}).get("problem")
    return "; ".join(str(each) for each in (problem, row.get("detail")) if each)


def _on_bus(data_dir: DataDir) -> Json:
    """Return the status of a system without an HTTP API."""
    import asyncio  # these two take longer than all that others import

    from local.cli.bus_health import health_on_bus

    return asyncio.run(health_on_bus(find_data_dir(data_dir)))
