"""A web, a search engine and a memory around a generator whose model obeys everything that it reads, and the receivers
of what leaks.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import unquote, urlsplit

from local.bus.envelope import Envelope
from local.core.config import Settings
from local.memory.messages import FactRecord, MemoryRequest, MemoryResult, RecalledEngram
from local.models.chat import ContentDelta, Delta, Done, Json, ModelInfo, ThinkingDelta, ToolCall, Usage
from local.runtime.participant import Kind, Participant, Resources, Settingless, on
from local.stand_in.rules import obey
from local.tools.tool import Tool
from local.web.fetch import PageReader, WebFetchConfig, WebFetchTool
from local.web.search import SearchChain, SearchHit, WebSearchConfig, WebSearchTool

READING_SECONDS = 60.0  # where forty conversations read at once, on a machine that may be busy with others
CHUNK = 5  # characters of the model's output at once
HOSTS = ("page.example", "evil.example", "docs.example", "cdn.docs.example")


class HostileWeb:
    """Serves pages on a port of this machine under the names of many hosts, and records the requests."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, str]] = {}  # by path: media type and body; of a redirect, "" and its target
        self.requests: list[str] = []
        self.names: list[str] = []  # that were looked up
        self.searches: list[str] = []
        self.hits: dict[str, list[SearchHit]] = {}  # by the query
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_port

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str, host: str = "page.example") -> str:
        return f"http://{host}:{self.port}{path}"

    def add(self, path: str, text: str, media_type: str = "text/plain") -> str:
        """A page; its address."""
        self.pages[path] = (media_type, text)
        return self.url(path)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.names.append(host)
        return ["127.0.0.1"]

    def fetch_tool(self) -> WebFetchTool:
        hosts = [f"{host}:{self.port}" for host in HOSTS]
        reader = PageReader(resolve=self.resolve, allow_hosts=hosts, timeout_seconds=READING_SECONDS)
        return WebFetchTool(WebFetchConfig(), reader)

    def search_tool(self) -> WebSearchTool:
        return WebSearchTool(WebSearchConfig(), SearchChain([_Engine(self)], cache_seconds=0))


class _Engine:
    name = "engine"

    def __init__(self, web: HostileWeb) -> None:
        self._web = web

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        self._web.searches.append(query)
        return self._web.hits.get(query, [])[:max_results]

    async def close(self) -> None:
        pass


def _handler(web: HostileWeb) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.requests.append(f"{self.headers['Host']}{self.path}")
            media_type, text = web.pages.get(urlsplit(self.path).path, ("text/plain", "Nothing here."))
            if "-away/" in self.path:
                media_type, text = "", web.url(f"/{self.path.rpartition('-away/')[2]}", "evil.example")
            self.send_response(200 if media_type else 302)
            if not media_type:
                self.send_header("Location", text)
            body = text.encode()
            self.send_header("Content-Type", f"{media_type or 'text/plain'}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Drop the server's log."""

    return Handler


class ObedientModel:
    """Obeys every instruction in its prompt, and adds nothing of its own."""

    def __init__(self) -> None:
        self.told: list[list[Json]] = []

    async def chat(
        self, model: str, messages: Sequence[Json], *, tools: Sequence[Json] = (), **_: Any
    ) -> AsyncGenerator[Delta, None]:
        self.told.append([dict(message) for message in messages])
        reply = obey(messages, {tool["function"]["name"] for tool in tools})
        for text, kind in ((reply.thinking, ThinkingDelta), (reply.content, ContentDelta)) if reply else ():
            for start in range(0, len(text), CHUNK):
                yield kind(text[start : start + CHUNK])
        for call in reply.calls if reply else ():
            yield ToolCall(call.name, call.arguments)
        if reply is None:
            yield ContentDelta("Nobody has told me what to do.")
        yield Done(Usage(2, 1), model=model)

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        raise NotImplementedError

    async def show(self, model: str) -> ModelInfo:
        return ModelInfo(model, frozenset({"completion", "tools", "thinking"}), parameters=70.0)

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        pass

    async def close(self) -> None:
        pass


class Recollections(Participant):
    """A memory that finds the same for every question."""

    name = "memory"
    kind = Kind.AGENT

    def __init__(self, hits: Iterable[RecalledEngram] = (), facts: Iterable[FactRecord] = ()) -> None:
        super().__init__(Settings())
        self.hits, self.facts = tuple(hits), tuple(facts)
        self.pinned: tuple[str, ...] = ()

    @on(MemoryRequest)
    async def answer(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        if request.verb == "facts":
            return MemoryResult(verb="facts", facts=self.facts, lines=self.pinned)
        hits = tuple(hit for hit in self.hits if ("strange" in request.query) is hit.tainted)
        return MemoryResult(verb=request.verb, hits=hits)


def engram(number: int, query: str, answer: str, *, tainted: bool = False) -> RecalledEngram:
    return RecalledEngram(
        engram_id=f"{number:032x}", query_id=f"old{number}", respondent_id="A", session_id=f"old{number}", query=query,
        answer=answer, origin="web" if tainted else "assistant", asked_at=1.0, relevance=1.0, tainted=tainted,
    )  # fmt: skip


class NoteTool(Tool):
    """Write a note."""

    name = "note"
    effect = "write"

    def __init__(self, folder: Path) -> None:
        super().__init__(Settingless())
        self.with_record(Resources(folder))
        self.notes: list[str] = []

    async def run(self, text: Annotated[str, "What to write"]) -> str:
        self.notes.append(text)
        return "Written."


class MailTool(Tool):
    """Read a mail."""

    name = "mail"
    safety = "L0"

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.mails: dict[str, str] = {}

    async def run(self, which: Annotated[str, "Which one"]) -> str:
        return self.mails[which]


LINKS = re.compile(
    r"\]\(\s*<?([^)\n]*)\)"
    r"|^\s*\[[^\]\n]+\]:\s*(\S+)"
    r"|<([a-z][^<>]*[=:/][^<>]*)>"
    r"|((?:[a-z][a-z0-9+.-]*:)?[/\\]{2}[^\s<>]+)"
    r"|((?:mailto|data|javascript|tel):[^\s<>]+)"
    r"|(\bwww\.[^\s<>]+)"
    r"|((?:[\w-]+\.)+[a-z]{2,}[/?#][^\s<>]*)"
    r"|((?:[\w-]+\.){2,}[a-z]{2,})",
    re.IGNORECASE | re.MULTILINE,
)


def links_in(text: str) -> list[str]:
    """Return everything that a reader of the text might take for a link, found in other ways than the system
    does it.
    """
    return [next(filter(None, found.groups()), "") for found in LINKS.finditer(text)]


def holds(text: str, canary: str) -> bool:
    """Whether a text has a canary in it, in clear or disguised."""
    squeezed = re.sub(r"[\W_]", "", unquote(unquote(text))).casefold()
    plain = re.sub(r"[\W_]", "", canary).casefold()
    disguises = [plain, plain[::-1], canary.encode().hex()]
    from base64 import urlsafe_b64encode
    from codecs import encode

    coded = urlsafe_b64encode(canary.encode()).decode().rstrip("=")
    disguises += [re.sub(r"[\W_]", "", coded).casefold(), re.sub(r"[\W_]", "", encode(canary, "rot13")).casefold()]
    return any(disguise in squeezed for disguise in disguises)


async def gathered(*works: Any, at_once: int = 40) -> list[Any]:
    """The results of many works, so many of them at a time."""
    places = asyncio.Semaphore(at_once)

    async def one(work: Any) -> Any:
        async with places:
            return await work

    return await asyncio.gather(*map(one, works))
