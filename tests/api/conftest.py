"""The real frontend on a real socket, the real journal and a scripted generator on the same in-memory bus."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.api.app import ApiConfig, ApiParticipant
from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, decode
from local.bus.message import ErrorInfo, KeptText, Message
from local.bus.messages import (
    AgentTransition,
    ClientCall,
    ConversationRequest,
    ConversationResult,
    GenerationThinking,
    GenerationToken,
    QueryAccepted,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    UsageInfo,
)
from local.bus.zeromq import MemoryHub
from local.core.config import Settings
from local.core.shipped import shipped_dir
from local.journal.client import JournalClient
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore, JournalView
from local.runtime.participant import Kind, Participant, on
from local.runtime.runner import ParticipantRunner


class ScriptedGenerator(Participant):
    """Answers by the first word of a query: hello, endless (cut off), call (the asker's first function), tool, recall
    (a memory), fail, hold (until `release` or a cancel), queued (until a cancel), busy, deaf. Keeps its turns, as the
    real one does; it is given each query once, by the journal. Of its tool's results `whole` is kept."""

    name = "generator"
    kind = Kind.AGENT

    def __init__(self) -> None:
        super().__init__(Settings())
        self.turns: dict[str, QueryReceived] = {}
        self.traces: dict[str, Trace] = {}
        self.whole: KeptText | None = None
        self.heard = asyncio.Event()  # of a query
        self.release = asyncio.Event()
        self.outcomes: dict[str, tuple[Message, Trace]] = {}
        self._cancels: dict[str, asyncio.Event] = {}
        self._tasks: asyncio.TaskGroup

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as self._tasks:
            yield
            for event in (self.release, *self._cancels.values()):
                event.set()

    def details(self) -> dict[str, str]:
        return {"model": "gemma4:12b"}

    def metrics(self) -> dict[str, int]:
        return {"turns_running": 0, "turns_at_most": 128, "turns_with_model": 0, "turns_waiting": 0, "turns_load": 0}

    async def beats_heard(self, client: httpx.AsyncClient) -> None:
        """Wait until the API has received the status of this participant."""
        while (await client.get("/v1/models")).json()["data"] == []:
            pass

    async def cancelled(self, query_id: str) -> None:
        """Wait until a query that was received is to be stopped."""
        await self._cancels[query_id].wait()

    @on(QueryReceived, durable="generator", concurrency=64)
    async def receive(self, message: QueryReceived, envelope: Envelope) -> Message | None:
        self.heard.set()
        word, query_id = message.query.split()[0], message.query_id
        self.turns[query_id], self.traces[query_id] = message, envelope.trace()
        if word == "deaf":
            return None
        if word == "busy":
            return _failed(query_id, "busy", "too many queries of this session wait already")
        self._cancels[query_id] = asyncio.Event()
        self._tasks.create_task(self._run(word, message, envelope.trace()))
        return QueryAccepted(query_id=query_id)

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        if message.query_id in self._cancels:
            self._cancels[message.query_id].set()

    @on(ConversationRequest)
    async def look_up(self, request: ConversationRequest, envelope: Envelope) -> ConversationResult:
        match request.verb:
            case "sessions" if request.key:
                value: dict[str, Any] | None = {"sessions": self._sessions(request.key)}
            case "sessions":
                value = {"sessions": [{"session_id": "s1", "turns": 1}]}
            case "sessions" if request.query:
                value = {"sessions": []}
            case _ if self._is_anothers(request):
                value = None
            case "session" if named := [t for t in self.traces.values() if t.session_id == request.key]:
                value = {"session_id": request.key, "user_id": named[0].user_id, "title": "hello"}
            case "turns" if any(trace.session_id == request.key for trace in self.traces.values()):
                value = {"turns": [], "more": False}
            case "query":
                value = self._record(request.key)
            case _:
                value = {"session_id": request.key, "verb": request.verb} if request.key == "s1" else None
        error = None if value else ErrorInfo(kind="not_found", message=f"there is no {request.verb} {request.key}")
        return ConversationResult(verb=request.verb, value=value, error=error)

    def _is_anothers(self, request: ConversationRequest) -> bool:
        users = {trace.user_id for trace in self.traces.values() if trace.session_id == request.key}
        return request.of_user is not None and request.of_user not in users

    def _sessions(self, user_id: str) -> list[dict[str, Any]]:
        return [{"session_id": trace.session_id} for trace in self.traces.values() if trace.user_id == user_id]

    def _record(self, query_id: str) -> dict[str, Any] | None:
        asked = self.turns.get(query_id)
        if asked is None:
            return None
        user_id = self.traces[query_id].user_id
        record = {
            "query_id": query_id,
            "session_id": "recorded",
            "query": asked.query,
            "attempt": 1,
            "user_id": user_id,
        }
        if query_id not in self.outcomes:
            return {**record, "status": "open", "outcome": None, "outcome_subject": None}
        outcome, trace = self.outcomes[query_id]
        status = getattr(outcome, "status", "cancelled")
        return {
            **record, "session_id": trace.session_id, "status": status, "outcome_subject": outcome.routing_key,
            "outcome": outcome.model_dump(mode="json"),
        }  # fmt: skip

    async def _run(self, word: str, message: QueryReceived, trace: Trace) -> None:
        outcome = await self._outcome(word, message, trace)
        self.outcomes[message.query_id] = (outcome, trace)
        await self.bus.publish(outcome, trace)

    async def _outcome(self, word: str, message: QueryReceived, trace: Trace) -> Message:
        query_id = message.query_id
        cancelled = self._cancels[query_id]
        if word == "queued":
            await cancelled.wait()
            return _failed(query_id, "cancelled", "the query was cancelled before its turn came")
        await self.bus.publish(
            AgentTransition(
                agent="g", query_id=query_id, from_state="IDLE", action="RECEIVE_QUERY", to_state="RECEIVING"
            ),
            trace,
        )
        self.bus.post(GenerationThinking(query_id=query_id, index=0, text="Let me see."), trace)
        sources = {"tool": (), "recall": ("engram:e1",)}
        calls = (await self._call_tool(query_id, trace, sources[word]),) if word in sources else ()
        self.bus.post(GenerationToken(query_id=query_id, index=1, text="Hi "), trace)
        if word == "hold":
            waits = {asyncio.create_task(event.wait()) for event in (cancelled, self.release)}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        whole = not cancelled.is_set()
        functions = message.options.functions[:1] if message.options and word == "call" else ()
        if whole:
            self.bus.post(GenerationToken(query_id=query_id, index=2, text="there."), trace)
        return ResponseGeneration(
            query_id=query_id,
            status="failed" if word == "fail" else "answered" if whole else "cancelled",
            query=message.query,
            cut_off=word == "endless",
            incognito=message.incognito,
            answer="Hi there." if whole else "Hi ",
            thinking="Let me see.",
            tool_calls=calls,
            client_calls=[
                ClientCall(call_id=f"{query_id}:0:0", function=one["function"]["name"], arguments={"city": "Oslo"})
                for one in functions
            ],
            model="gemma4:12b",
            usage=UsageInfo(prompt_tokens=7, completion_tokens=3),
            error=ErrorInfo(kind="model_error", message="the model server went away") if word == "fail" else None,
        )

    async def _call_tool(self, query_id: str, trace: Trace, sources: tuple[str, ...]) -> ToolCallRecord:
        call: dict[str, Any] = {"call_id": f"{query_id}:0:0", "tool": "dice"}
        settled: dict[str, Any] = {**call, "result": "4", "sources": sources, "whole": self.whole}
        await self.bus.publish(ToolRequest(query_id=query_id, args={"sides": 6}, **call), trace)
        await self.bus.publish(ToolResult(query_id=query_id, **settled), trace)
        return ToolCallRecord(args={"sides": 6}, **settled)


def _failed(query_id: str, kind: str, message: str) -> QueryFailed:
    return QueryFailed(query_id=query_id, error=ErrorInfo(kind=kind, message=message))


@asynccontextmanager
async def _hosted(participant: Participant, hub: MemoryHub, child: str = "") -> AsyncIterator[None]:
    stop, ready = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        bus = Bus(participant.name, hub.transport(), durability=JournalClient() if participant.journaled else None)
        tasks.create_task(ParticipantRunner(participant, bus, child).run(stop, ready.set))
        await ready.wait()
        try:
            yield
        finally:
            stop.set()


@dataclass
class System:
    """A bus; a journal, a generator and frontends are added. `port` is the listening socket's, which outlives them."""

    hub: MemoryHub
    journal_file: Path
    generator: ScriptedGenerator
    listener: socket.socket
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.port = self.listener.getsockname()[1]

    @property
    def url(self) -> str:
        """Return the address of the API."""
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def frontend(self, **config: Any) -> AsyncIterator[httpx.AsyncClient]:
        """A frontend, and a client of it."""
        folder = self.journal_file.parent
        layers = (shipped_dir() / "config", folder)
        frontend = ApiParticipant(ApiConfig(**config), self.listener.dup(), folder, "stand_in", layers)
        async with _hosted(frontend, self.hub), self.client() as client:
            yield client

    def client(self) -> httpx.AsyncClient:
        """A client."""
        return httpx.AsyncClient(base_url=self.url, trust_env=False, verify=False, timeout=90)

    def host(self, participant: Participant, child: str = "") -> AbstractAsyncContextManager[None]:
        """Host another participant on the same bus, by hand or under its name at the supervisor."""
        return _hosted(participant, self.hub, child)

    def journal(self) -> AbstractAsyncContextManager[None]:
        """A journal on the system's one file."""
        return self.host(Journal(JournalConfig(), JournalStore(self.journal_file)), "journal")

    async def on_record(self, *query_ids: str) -> None:
        """Wait until the answers to these queries are recorded: the API receives them before."""
        recorded = set[str]()
        while not set(query_ids) <= recorded:
            recorded = await asyncio.to_thread(self._answered)

    def _answered(self) -> set[str]:
        with JournalView(self.journal_file) as journal:
            stored = journal.read_all(subjects=[ResponseGeneration.subject])
            return {decode(each.entry.frame).correlation_id for each in stored}

    def bus(self, sender: str, *, journaled: bool = False) -> Bus:
        """Another end of the same bus."""
        return Bus(sender, self.hub.transport(), durability=JournalClient() if journaled else None)


@pytest.fixture
def system_in() -> Callable[[Path, socket.socket], System]:
    """Makes a system without participants whose data directory is a folder."""
    return lambda folder, listener: System(MemoryHub(), folder / "journal.db", ScriptedGenerator(), listener)


@pytest.fixture
async def bare_system(tmp_path: Path) -> AsyncIterator[System]:
    """A system without participants."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield System(MemoryHub(), tmp_path / "journal.db", ScriptedGenerator(), listener)


@pytest.fixture
async def system(bare_system: System) -> AsyncIterator[System]:
    async with bare_system.journal(), bare_system.host(bare_system.generator, "generator"):
        yield bare_system


@pytest.fixture
async def client(system: System) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a frontend with default settings."""
    async with system.frontend() as client:
        yield client


Read = Callable[[httpx.Response], AsyncIterator[tuple[str, str, Any]]]


@pytest.fixture
def events_of() -> Read:
    """Reads server-sent events one by one: (name, id, data)."""

    async def read(response: httpx.Response) -> AsyncIterator[tuple[str, str, Any]]:
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                yield fields.get("event", "message"), fields.get("id", ""), json.loads(fields["data"])
                fields = {}

    return read
