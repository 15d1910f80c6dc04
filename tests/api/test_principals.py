"""Callers see their own content: on the real API, every route, as the owner, as users with tokens, as unknown callers,
and as another Unix user of this machine.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 - another Unix user may not read this Python, which would import it later
import errno
import http.client
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import httpx
import pytest
from fastapi import FastAPI

from local.api import server as peer
from local.api.app import routed
from local.api.bus_stream import BusWatch
from local.api.security import Access, Undeclared, access_of, enforce, open_to
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.core.data_dir import make_owner_token
from local.core.users import Users
from local.cron.messages import CronJobRecord
from local.cron.scheduler import CronConfig
from local.cron.store import FILE_NAME, JobStore
from local.cron.tools import Cron
from local.memory.messages import EngramRecord, MemoryRequest, MemoryResult
from local.models.messages import ModelRecord, ModelRequest, ModelResult
from local.permissions.gatekeeper import GatekeeperService
from local.permissions.policy import GatekeeperConfig
from local.runtime.participant import Resources, on
from local.swarm.agents import SwarmConfig
from local.swarm.tools import Swarm
from tests.api.hand_played import HandPlayed

System = Any  # of conftest.py
Read = Any
NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
FILE = "0" * 64
ENGRAM = EngramRecord(
    engram_id="e-ann", query_id="q-ann", respondent_id="A", session_id="s-ann", query="?", answer="!", origin="user",
    asked_at=1.0,
)  # fmt: skip


class Row(NamedTuple):
    """A route for something of ann's, and another caller's answer: a status, or an answer with these fields."""

    access: Access
    path: str
    body: dict[str, Any] | None = None
    told: int | dict[str, Any] = 404


def not_anns(verb: str) -> dict[str, Any]:
    """The result for a session of ann's, as the generator of these tests words it."""
    error = {"kind": "not_found", "message": f"there is no {verb} s-ann"}
    return {"results": [{"session_id": "s-ann", "error": error}]}


ROUTES = {
    "GET /": Row(Access.ANYBODY, "/", told=200),
    "GET /favicon.ico": Row(Access.ANYBODY, "/favicon.ico", told=200),
    "GET /apple-touch-icon.png": Row(Access.ANYBODY, "/apple-touch-icon.png", told=200),
    "GET /worker.js": Row(Access.ANYBODY, "/worker.js", told=200),
    "GET /manifest.webmanifest": Row(Access.ANYBODY, "/manifest.webmanifest", told=200),
    "GET /app/{digest}/{path:path}": Row(Access.ANYBODY, "/app/0/main.js"),
    "GET /openapi.json": Row(Access.USERS, "/openapi.json", told=200),
    "GET /health": Row(Access.ANYBODY, "/health", told={"status": "starting"}),
    "GET /profiles": Row(Access.USERS, "/profiles", told=200),
    "GET /profiles/{name}": Row(Access.OWNER, "/profiles/code", told=403),
    "PUT /profiles/{name}": Row(Access.TOKEN, "/profiles/x", {"description": "x", "tools": ["*"]}, told=403),
    "DELETE /profiles/{name}": Row(Access.TOKEN, "/profiles/x", told=403),
    "GET /soul": Row(Access.OWNER, "/soul", told=403),
    "PUT /soul": Row(Access.TOKEN, "/soul", {"text": "Be brief."}, told=403),
    "POST /soul/proposal": Row(Access.TOKEN, "/soul/proposal", {"decision": "reject"}, told=403),
    "POST /soul/revert": Row(Access.TOKEN, "/soul/revert", {"version": 1}, told=403),
    "GET /trust": Row(Access.OWNER, "/trust", told=403),
    "POST /trust": Row(Access.TOKEN, "/trust", {"folder": "/x", "digest": ""}, told=403),
    "DELETE /trust": Row(Access.TOKEN, "/trust?folder=/x", told=403),
    "GET /trust/contents": Row(Access.OWNER, "/trust/contents?folder=/x", told=403),
    "GET /prompt": Row(Access.OWNER, "/prompt", told=403),
    "GET /participants": Row(Access.OWNER, "/participants", told=403),
    "POST /query": Row(Access.USERS, "/query", {"query": "hello ann", "query_id": "q-ann"}, told=409),
    "GET /query/{query_id}": Row(Access.USERS, "/query/q-ann"),
    "GET /query/{query_id}/results/{call_id}": Row(Access.USERS, "/query/q-ann/results/q-ann:0:0"),
    "GET /query/{query_id}/events": Row(Access.USERS, "/query/q-ann/events"),
    "GET /query/{query_id}/trace": Row(Access.USERS, "/query/q-ann/trace"),
    "POST /query/{query_id}/trace/send": Row(Access.TOKEN, "/query/q-ann/trace/send", {}, told=403),
    "GET /query/{query_id}/respondents": Row(Access.USERS, "/query/q-ann/respondents"),
    "GET /journal": Row(Access.USERS, "/journal?query=q-ann", told={"entries": []}),
    "GET /questions": Row(Access.USERS, "/questions?session=s-ann", told={"questions": []}),
    "GET /journal/span": Row(Access.OWNER, "/journal/span", told=403),
    "GET /journal/export": Row(Access.OWNER, "/journal/export", told=403),
    "GET /journal/dead": Row(Access.OWNER, "/journal/dead", told=403),
    "POST /journal/redeliver": Row(Access.TOKEN, "/journal/redeliver", {"consumer": "memory"}, told=403),
    "GET /journal/{number}": Row(Access.USERS, "/journal/1"),
    "POST /query/{query_id}/cancel": Row(Access.USERS, "/query/q-ann/cancel"),
    "POST /attachments": Row(Access.USERS, "/attachments?name=a.txt&user_id=ann"),
    "GET /attachments/{attachment_id}": Row(Access.USERS, "/attachments/{file}"),
    "GET /attachments/{attachment_id}/content": Row(Access.USERS, "/attachments/{file}/content"),
    "DELETE /attachments/{attachment_id}": Row(Access.USERS, "/attachments/{file}"),
    "GET /sessions": Row(Access.USERS, "/sessions", told={"sessions": []}),
    "POST /sessions/import": Row(Access.USERS, "/sessions/import?user_id=ann"),
    "POST /sessions/change": Row(
        Access.USERS, "/sessions/change", {"session_ids": ["s-ann"], "archived": True}, told=not_anns("change")
    ),
    "POST /sessions/delete": Row(
        Access.USERS, "/sessions/delete", {"session_ids": ["s-ann"]}, told=not_anns("session")
    ),
    "GET /sessions/{session_id}": Row(Access.USERS, "/sessions/s-ann"),
    "PATCH /sessions/{session_id}": Row(Access.USERS, "/sessions/s-ann", {"pinned": True}),
    "GET /sessions/{session_id}/turns": Row(Access.USERS, "/sessions/s-ann/turns"),
    "GET /sessions/{session_id}/find": Row(Access.USERS, "/sessions/s-ann/find?query=hello"),
    "GET /sessions/{session_id}/export": Row(Access.USERS, "/sessions/s-ann/export"),
    "POST /sessions/{session_id}/branch": Row(Access.USERS, "/sessions/s-ann/branch", {"before": "q-ann"}),
    "DELETE /sessions/{session_id}": Row(Access.USERS, "/sessions/s-ann"),
    "GET /stream": Row(Access.USERS, "/stream?id=stream-of-somebody&user_id=ann"),
    "POST /stream/{stream_id}": Row(Access.USERS, "/stream/stream-of-somebody?user_id=ann", {"list": True}),
    "GET /events": Row(Access.USERS, "/events?user_id=ann"),
    "GET /events/filter": Row(Access.USERS, "/events/filter?filter=sender:api", told={"completions": []}),
    "POST /v1/chat/completions": Row(Access.USERS, "/v1/chat/completions?user_id=ann", {"model": "m", "messages": []}),
    "POST /v1/responses": Row(Access.USERS, "/v1/responses?user_id=ann", {"model": "m", "input": []}),
    "POST /v1/embeddings": Row(Access.USERS, "/v1/embeddings", {"model": "m", "input": []}, told=400),
    "GET /v1/models/{model_id:path}": Row(Access.USERS, "/v1/models/none"),
    "GET /v1/models": Row(Access.USERS, "/v1/models", told={"object": "list"}),
    "POST /feedback": Row(Access.USERS, "/feedback", {"query_id": "q-ann", "rating": 1}),
    "GET /memory": Row(Access.USERS, "/memory", told={"engrams": []}),
    "GET /memory/facts": Row(Access.USERS, "/memory/facts?user_id=ann"),
    "POST /memory/facts/{fact_id}/confirm": Row(Access.USERS, "/memory/facts/1/confirm?user_id=ann"),
    "POST /memory/facts": Row(Access.USERS, "/memory/facts?user_id=ann", {"slot": "tea", "value": "black"}),
    "PUT /memory/facts/{fact_id}": Row(Access.USERS, "/memory/facts/1?user_id=ann", {"slot": "tea", "value": "black"}),
    "DELETE /memory/facts/{fact_id}": Row(Access.USERS, "/memory/facts/1?user_id=ann"),
    "GET /memory/notes": Row(Access.USERS, "/memory/notes?user_id=ann"),
    "GET /memory/export": Row(Access.USERS, "/memory/export?user_id=ann"),
    "GET /memory/file": Row(Access.USERS, "/memory/file?user_id=ann"),
    "POST /memory/file": Row(Access.USERS, "/memory/file?user_id=ann", {"text": ""}),
    "GET /memory/{engram_id}": Row(Access.USERS, "/memory/e-ann"),
    "GET /memory/{engram_id}/repeated": Row(Access.USERS, "/memory/e-ann/repeated"),
    "DELETE /memory/{engram_id}": Row(Access.USERS, "/memory/e-ann"),
    "POST /memory/{engram_id}/pin": Row(Access.USERS, "/memory/e-ann/pin"),
    "DELETE /memory/{engram_id}/pin": Row(Access.USERS, "/memory/e-ann/pin"),
    "POST /memory/{engram_id}/restore": Row(Access.USERS, "/memory/e-ann/restore"),
    "POST /participants/{name}/start": Row(Access.TOKEN, "/participants/generator/start", told=403),
    "POST /participants/{name}/stop": Row(Access.TOKEN, "/participants/generator/stop", told=403),
    "POST /participants/{name}/restart": Row(Access.TOKEN, "/participants/generator/restart", told=403),
    "GET /settings": Row(Access.OWNER, "/settings", told=403),
    "GET /settings/{name}": Row(Access.OWNER, "/settings/generator", told=403),
    "PUT /settings/{name}": Row(Access.TOKEN, "/settings/generator", {"values": {"num_ctx": 1}}, told=403),
    "GET /secrets": Row(Access.OWNER, "/secrets", told=403),
    "PUT /secrets/{name}": Row(Access.TOKEN, "/secrets/brave", {"value": "12345678"}, told=403),
    "DELETE /secrets/{name}": Row(Access.TOKEN, "/secrets/brave", told=403),
    "POST /web/search": Row(Access.TOKEN, "/web/search", {"query": "tea"}, told=403),
    "GET /tools": Row(Access.OWNER, "/tools", told=403),
    "POST /tools/{tool}/calls": Row(Access.OWNER, "/tools/read_file/calls", {"args": {}}, told=403),
    "POST /tools/calls/{query_id}/cancel": Row(Access.OWNER, "/tools/calls/q-ann/cancel", told=403),
    "GET /changes": Row(Access.OWNER, "/changes", told=403),
    "POST /changes/undo": Row(Access.OWNER, "/changes/undo", {"call_id": "q-ann:0:0"}, told=403),
    "GET /dreams": Row(Access.OWNER, "/dreams", told=403),
    "POST /dreams/{verb}": Row(Access.OWNER, "/dreams/now", told=403),
    "GET /monologue": Row(Access.OWNER, "/monologue", told=403),
    "POST /monologue/{verb}": Row(Access.OWNER, "/monologue/on", told=403),
    "GET /goals": Row(Access.OWNER, "/goals", told=403),
    "POST /goals": Row(Access.OWNER, "/goals", {"text": "Swim"}, told=403),
    "PATCH /goals/{goal_id}": Row(Access.OWNER, "/goals/g", {"state": "done"}, told=403),
    "POST /goals/{verb}": Row(Access.OWNER, "/goals/on", told=403),
    "GET /skills": Row(Access.OWNER, "/skills", told=403),
    "GET /skills/{name}": Row(Access.OWNER, "/skills/tides", told=403),
    "GET /skills/{name}/source": Row(Access.OWNER, "/skills/tides/source", told=403),
    "PUT /skills/{name}/source": Row(Access.TOKEN, "/skills/tides/source", {"text": "x"}, told=403),
    "POST /skills": Row(Access.TOKEN, "/skills", {"name": "tides"}, told=403),
    "GET /skills/{name}/contents": Row(Access.OWNER, "/skills/tides/contents", told=403),
    "POST /skills/{name}/approve": Row(Access.TOKEN, "/skills/tides/approve", {"digest": "d"}, told=403),
    "GET /skills/{name}/proposal": Row(Access.OWNER, "/skills/tides/proposal", told=403),
    "POST /skills/{name}/proposal": Row(Access.TOKEN, "/skills/tides/proposal", {"decision": "reject"}, told=403),
    "POST /skills/{name}/revert": Row(Access.TOKEN, "/skills/tides/revert", {"version": 1}, told=403),
    "POST /skills/{name}/tools": Row(Access.TOKEN, "/skills/tides/tools", {"review_id": "r"}, told=403),
    "DELETE /skills/{name}/tools": Row(Access.TOKEN, "/skills/tides/tools", told=403),
    "POST /skills/{name}/tools/review": Row(Access.TOKEN, "/skills/tides/tools/review", told=403),
    "GET /hooks": Row(Access.OWNER, "/hooks", told=403),
    "POST /hooks": Row(Access.TOKEN, "/hooks", {"name": "h"}, told=403),
    "DELETE /hooks/{name}": Row(Access.TOKEN, "/hooks/h", told=403),
    "GET /mcp/servers": Row(Access.OWNER, "/mcp/servers", told=403),
    "POST /mcp/servers": Row(Access.TOKEN, "/mcp/servers", {"name": "a", "server": ["a"]}, told=403),
    "POST /mcp/servers/read": Row(Access.TOKEN, "/mcp/servers/read", {"text": "{}"}, told=403),
    "GET /mcp/servers/{name}": Row(Access.TOKEN, "/mcp/servers/a", told=403),
    "PUT /mcp/servers/{name}": Row(Access.TOKEN, "/mcp/servers/a", {"entry": {"command": "a"}}, told=403),
    "DELETE /mcp/servers/{name}": Row(Access.TOKEN, "/mcp/servers/a", told=403),
    "POST /mcp/servers/{name}/review": Row(Access.TOKEN, "/mcp/servers/a/review", told=403),
    "POST /mcp/servers/{name}/approve": Row(Access.TOKEN, "/mcp/servers/a/approve", {"review_id": "r"}, told=403),
    "POST /mcp/servers/{name}/login": Row(Access.TOKEN, "/mcp/servers/a/login", told=403),
    "DELETE /mcp/servers/{name}/login": Row(Access.TOKEN, "/mcp/servers/a/login", told=403),
    "POST /pictures": Row(Access.USERS, "/pictures", {"url": "https://example.org/a.png"}, told=403),
    "GET /models": Row(Access.USERS, "/models", told=503),
    "PUT /models/current": Row(Access.TOKEN, "/models/current", {"name": "a"}, told=403),
    "POST /models/pull": Row(Access.TOKEN, "/models/pull", {"name": "a"}, told=403),
    "POST /models/pull/stop": Row(Access.TOKEN, "/models/pull/stop", {"name": "a"}, told=403),
    "POST /models/load": Row(Access.TOKEN, "/models/load", {"name": "a"}, told=403),
    "POST /models/unload": Row(Access.TOKEN, "/models/unload", {"name": "a"}, told=403),
    "POST /models/check": Row(Access.TOKEN, "/models/check", {"name": "a"}, told=403),
    "POST /models/servers/try": Row(Access.TOKEN, "/models/servers/try", {"kind": "ollama"}, told=403),
    "GET /doctor": Row(Access.OWNER, "/doctor", told=403),
    "GET /backups": Row(Access.OWNER, "/backups", told=403),
    "POST /backups": Row(Access.TOKEN, "/backups", told=403),
    "GET /approvals": Row(Access.USERS, "/approvals", told={"approvals": []}),
    "POST /approvals/{call_id}": Row(Access.USERS, "/approvals/q-ann:0:0", {"decision": "allow"}, told=409),
    "GET /approvals/remembered": Row(Access.USERS, "/approvals/remembered", told={"remembered": []}),
    "DELETE /approvals/remembered/{grant_id}": Row(Access.USERS, "/approvals/remembered/1"),
    "POST /mcp": Row(Access.USERS, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, told=400),
    "GET /mcp": Row(Access.USERS, "/mcp", told=400),
    "DELETE /mcp": Row(Access.USERS, "/mcp", told=400),
    "GET /agents": Row(Access.USERS, "/agents", told={"agents": []}),
    "GET /agents/{agent_id}": Row(Access.USERS, "/agents/a-ann"),
    "POST /agents/{agent_id}/stop": Row(Access.USERS, "/agents/a-ann/stop"),
    "GET /cron": Row(Access.USERS, "/cron", told={"jobs": []}),
    "GET /cron/times": Row(Access.USERS, "/cron/times?schedule=x", told={"times": []}),
    "POST /cron": Row(Access.USERS, "/cron", {"prompt": "p", "schedule": "x"}, told=422),
    "PUT /cron/{job_id}": Row(Access.USERS, "/cron/j-ann", {"prompt": "p", "schedule": "@daily"}),
    "PATCH /cron/{job_id}": Row(Access.USERS, "/cron/j-ann", {"enabled": False}),
    "DELETE /cron/{job_id}": Row(Access.USERS, "/cron/j-ann"),
    "POST /cron/{job_id}/run": Row(Access.USERS, "/cron/j-ann/run"),
    "GET /cron/{job_id}/runs": Row(Access.USERS, "/cron/j-ann/runs"),
    "GET /usage": Row(Access.USERS, "/usage", told={"total": None}),
    "GET /activity": Row(Access.USERS, "/activity?session=s-ann", told={"activity": []}),
    "GET /logs": Row(Access.OWNER, "/logs", told=403),
    "POST /sign-in": Row(Access.ANYBODY, "/sign-in", {"secret": "local2-guess"}, told=401),
    "POST /sign-in/codes": Row(Access.TOKEN, "/sign-in/codes", {"link": True}, told=403),
    "POST /sign-out": Row(Access.USERS, "/sign-out", {"everywhere": True}, told={"signed_out": 0}),
    "GET /sign-ins": Row(Access.USERS, "/sign-ins", told={"sign_ins": []}),
    "DELETE /sign-ins/{name}": Row(Access.USERS, "/sign-ins/b-ann"),
    "GET /users": Row(Access.TOKEN, "/users", told=403),
    "POST /users": Row(Access.TOKEN, "/users", {"name": "eve"}, told=403),
    "POST /users/{name}/invite": Row(Access.TOKEN, "/users/ann/invite", told=403),
    "DELETE /users/{name}": Row(Access.TOKEN, "/users/ann", told=403),
}


class Ann(HandPlayed):
    """A memory that remembers one exchange of ann's."""

    name = "memory"

    @on(MemoryRequest)
    async def look_up(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        has = envelope.user_id == "ann"
        if not request.engram_id:
            return MemoryResult(verb=request.verb, engrams=(ENGRAM,) if has else ())
        if has and request.engram_id == ENGRAM.engram_id:
            return MemoryResult(verb=request.verb, engrams=(ENGRAM,))
        missing = ErrorInfo(kind="not_found", message=f"there is no engram {request.engram_id}")
        return MemoryResult(verb=request.verb, error=missing)


class Frontend(NamedTuple):
    client: httpx.AsyncClient
    port: int
    tokens: dict[str, str]
    file: str
    users: Users
    folder: Path

    def headers(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[name]}"}

    async def ask(self, route: str, row: Row, headers: dict[str, str]) -> httpx.Response:
        method, _, _ = route.partition(" ")
        path = row.path.replace("{file}", self.file)
        return await self.client.request(method, path, headers=headers, **body_of(route, row))


def body_of(route: str, row: Row) -> dict[str, Any]:
    return {"content": b"Hello."} if route == "POST /attachments" else {"json": row.body} if row.body else {}


@pytest.fixture
async def frontend(system: System) -> AsyncIterator[Frontend]:
    """A frontend with the users ann and bob, and a query and a file of ann's."""
    folder: Path = system.journal_file.parent
    users = Users(folder)
    tokens = {name: users.add(name) for name in ("ann", "bob")} | {"owner": make_owner_token(folder)}
    async with system.frontend() as client:
        frontend = Frontend(client, system.port, tokens, "", users, folder)
        asked = {"query": "hello ann", "query_id": "q-ann", "session_id": "s-ann"}
        assert (await client.post("/query", json=asked, headers=frontend.headers("ann"))).json()[
            "answer"
        ] == "Hi there."
        sent = await client.post("/attachments?name=a.txt", content=b"Hello.", headers=frontend.headers("ann"))
        yield frontend._replace(file=sent.json()["id"])


@pytest.fixture
async def peopled(frontend: Frontend, system: System, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Frontend]:
    """The API with participants that have content of ann's: a memory, a gatekeeper, a swarm, and jobs."""
    monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.3)  # there is no model manager
    async with JobStore(frontend.folder / FILE_NAME) as store:
        await store.add(CronJobRecord(job_id="j-ann", prompt="hers", schedule="@yearly", created_at=0, user_id="ann"))
    lent = Resources(frontend.folder)
    gatekeeper, swarm = GatekeeperService.build(GatekeeperConfig(), lent), Swarm.build(SwarmConfig(), lent)
    others = (Ann(), gatekeeper, swarm, Cron.build(CronConfig(time_zone="UTC"), lent))
    async with AsyncExitStack() as stack:
        for each in others:
            await stack.enter_async_context(system.host(each))
        yield frontend


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client is another Unix user."""
    monkeypatch.setattr(peer, "socket_by_netlink", lambda *_: peer.HeldSocket(NOBODY, 1))


def declared_access() -> dict[str, Access]:
    routes: list[Any] = list(routed().routes)
    return {f"{method} {route.path}": access_of(route) for route in routes for method in route.methods}


def test_every_route_says_whom_it_is_for_and_is_in_the_table_of_this_test() -> None:
    assert declared_access() == {route: row.access for route, row in ROUTES.items()}


def test_a_route_that_does_not_say_whom_it_is_for_keeps_the_frontend_from_starting() -> None:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.get("/new")
    async def new() -> None: ...

    with pytest.raises(Undeclared, match=r"/new .* @open_to"):
        enforce(app.routes)
    open_to(Access.USERS)(new)
    enforce(app.routes)


async def test_another_user_is_told_of_what_is_not_theirs_as_of_what_is_not_there(peopled: Frontend) -> None:
    bob = peopled.headers("bob")
    for route, row in ROUTES.items():
        response = await peopled.ask(route, row, bob)
        assert "Hi there." not in response.text, route
        if isinstance(row.told, dict):
            assert response.json() | row.told == response.json(), route
            continue
        assert response.status_code == row.told, (route, response.text)
        if route.startswith("GET "):
            head = await peopled.ask(f"HEAD {row.path}", row, bob)
            assert (head.status_code, head.content) == (row.told, b""), route
        if row.told == 404:
            none = await peopled.ask(route, unknown(row), bob)
            assert none.text.replace("zzz", "ann").replace(FILE, peopled.file) == response.text
            assert none.status_code == 404


def unknown(row: Row) -> Row:
    """Return the same request for something that does not exist."""
    text = json.dumps(row).replace("-ann", "-zzz").replace("=ann", "=zzz").replace("{file}", FILE)
    return Row(*json.loads(text))


async def test_the_owner_and_the_user_find_what_is_there(peopled: Frontend) -> None:
    frontend = peopled
    mine = {"query": "hello ann", "query_id": "q-ann"}
    paths = [
        "/query/q-ann",
        "/sessions/s-ann",
        f"/attachments/{frontend.file}",
        "/memory/e-ann",
        "/memory",
        "/sessions",
    ]
    by_owner = [*paths[:3], *(f"{path}?user_id=ann" for path in paths)]
    for headers, found in ((frontend.headers("ann"), paths), (frontend.headers("owner"), by_owner), ({}, by_owner)):
        for path in found:
            response = await frontend.client.get(path, headers=headers)
            assert response.status_code == 200 and response.json() not in ({"engrams": []}, {"sessions": []}), path
        again = mine if headers == frontend.headers("ann") else {**mine, "user_id": "ann"}
        assert (await frontend.client.post("/query", json=again, headers=headers)).json()["answer"] == "Hi there."
        for path, body in (("/query/q-ann/cancel", None), ("/feedback", {"query_id": "q-ann", "rating": 1})):
            assert (await frontend.client.post(path, json=body, headers=headers)).status_code < 300
        async with frontend.client.stream("GET", "/query/q-ann/events", headers=headers) as stream:
            assert "Hi there." in (await stream.aread()).decode()
    assert (await frontend.client.get("/query/q-ann?user_id=bob")).status_code == 404  # narrowed
    await frontend.client.post("/query", json={"query": "hello", "query_id": "q-owner"})
    assert (await frontend.client.get("/query/q-owner", headers=frontend.headers("ann"))).status_code == 404
    assert (
        await frontend.client.delete(f"/attachments/{frontend.file}", headers=frontend.headers("ann"))
    ).status_code == 200


@pytest.mark.usefixtures("elsewhere")
async def test_a_stranger_gets_the_status_and_no_more(system: System) -> None:
    async with system.frontend() as client:
        frontend = Frontend(client, system.port, {}, FILE, Users(system.journal_file.parent), Path())
        for route, row in ROUTES.items():
            response = await frontend.ask(route, row, {})
            if route == "GET /health":
                assert response.json().keys() == {"status"}
            elif row.access is Access.ANYBODY:  # the page, which contains no user's data
                assert response.status_code == row.told, route
            else:
                assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer"), route
                assert "local2 user add" in response.json()["error"]["message"]


async def test_a_token_is_in_no_answer_and_no_log(frontend: Frontend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    for route, row in islice(ROUTES.items(), 0, None, 12):
        for secret in ("local2-geheim", frontend.tokens["bob"]):
            answer = await frontend.ask(route, row, {"authorization": f"Bearer {secret}"})
            assert secret not in answer.text and secret not in str(answer.headers), route
    wrong = {"authorization": "Bearer local2-geheim", "host": "u:geheim@localhost", "origin": "http://u:geheim@a"}
    for headers in (wrong, {**wrong, "host": f"localhost:{frontend.port}"}):
        assert "geheim" not in (await frontend.client.get("/http://u:geheim@x", headers=headers)).text
    logged = " ".join(r.getMessage() for r in caplog.records if not r.name.startswith("http"))  # the client's own
    assert "geheim" not in logged and frontend.tokens["bob"] not in logged


@pytest.mark.usefixtures("elsewhere")
async def test_a_wrong_token_is_none(frontend: Frontend) -> None:
    almost = f"Bearer {frontend.tokens['owner'][:-1]}"
    for wrong in ("", "Bearer", "Bearer local2-guess", "Basic x", frontend.tokens["ann"], "Bearer \u00e4", almost):
        headers = {"authorization": wrong.encode("latin-1")}
        assert (await frontend.client.get("/sessions", headers=headers)).status_code == 401, wrong


async def test_a_token_that_was_ours_counts_for_nothing_even_for_the_owner_s_own_programs(frontend: Frontend) -> None:
    """Whoever shows it means to be that user, and is not to be the owner all of a sudden."""
    bob = frontend.headers("bob")
    assert (await frontend.client.get("/sessions", headers=bob)).status_code == 200
    frontend.users.remove("bob")
    assert (await frontend.client.get("/sessions", headers=bob)).status_code == 401
    again = {"authorization": f"Bearer {frontend.users.add('bob', again=True)}"}
    assert (await frontend.client.get("/sessions", headers=again)).status_code == 200
    assert (await frontend.client.get("/sessions", headers={"authorization": "Bearer any-key"})).status_code == 200


async def test_what_is_passed_on_for_others_is_not_the_owner_s(frontend: Frontend) -> None:
    for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "Via", "X-Real-IP", "CF-Connecting-IP"):
        passed_on = {name: "127.0.0.1"}
        assert (await frontend.client.get("/sessions", headers=passed_on)).status_code == 401, name
        assert (
            await frontend.client.get("/sessions", headers=passed_on | frontend.headers("owner"))
        ).status_code == 200


async def test_what_is_sent_to_another_name_is_not_the_owner_s(system: System) -> None:
    async with system.frontend(allowed_hosts=["box.lan", "127.0.0.1.lan"]) as client:
        for host, status in [("box.lan", 401), ("127.0.0.1.lan", 401), ("localhost", 200), ("[::1]", 200)]:
            asked = await client.get("/sessions", headers={"host": f"{host}:{system.port}"})
            assert asked.status_code == status, host


async def test_a_user_for_whom_the_disk_has_no_room_is_507(frontend: Frontend, monkeypatch: pytest.MonkeyPatch) -> None:
    def has_no_room(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", has_no_room)
    refused = await frontend.client.post("/users", json={"name": "eve"}, headers=frontend.headers("owner"))
    assert (refused.status_code, refused.json()["error"]["kind"]) == (507, "store_full")


async def test_users_want_the_token_whoever_runs_the_client(frontend: Frontend) -> None:
    for method, path in (
        ("GET", "/users"),
        ("POST", "/users"),
        ("DELETE", "/users/ann"),
        ("POST", "/users/ann/invite"),
    ):
        body = {"json": {"name": "eve"}} if method == "POST" else {}
        refused = await frontend.client.request(method, path, **body)
        assert (refused.status_code, "api_token" in refused.text) == (401, True)
    owner = frontend.headers("owner")
    made = await frontend.client.post("/users", json={"name": "eve"}, headers=owner)
    eve = {"authorization": f"Bearer {made.json()['token']}"}
    assert (await frontend.client.get("/sessions", headers=eve)).json() == {"sessions": []}
    named = [user["name"] for user in (await frontend.client.get("/users", headers=owner)).json()["users"]]
    assert named == ["ann", "bob", "eve"]
    secret = {"secret": made.json()["code"]}
    first = await frontend.client.post("/sign-in", json={"secret": frontend.tokens["bob"]})
    shown = {"x-local2-key": first.json()["key"], "origin": f"http://127.0.0.1:{frontend.port}"}
    refused = await frontend.client.post("/sign-in", json=secret, headers=shown)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict"), "bob stays who he is"
    frontend.client.cookies.clear()
    signed_in = [await frontend.client.post("/sign-in", json=secret) for _ in range(2)]
    assert [answer.status_code for answer in signed_in] == [200, 401]
    assert (signed_in[0].json()["user_id"], signed_in[0].json()["owner"]) == ("eve", False)
    assert (await frontend.client.delete("/users/eve", headers=owner)).status_code == 200
    assert (await frontend.client.get("/sessions", headers=eve)).status_code == 401
    taken = await frontend.client.post("/users", json={"name": "eve"}, headers=owner)
    assert (taken.status_code, taken.json()["error"]["kind"]) == (409, "removed")
    again = await frontend.client.post("/users", json={"name": "eve", "again": True}, headers=owner)
    assert again.status_code == 201
    await frontend.client.delete("/users/eve", headers=owner)


async def test_the_owner_s_token_of_the_environment_is_the_only_one(system: System) -> None:
    """And a key that is none of ours is refused then, as one who has set a token expects."""
    old = make_owner_token(system.journal_file.parent)
    async with system.frontend(api_token="secret") as client:
        for token, status in [("secret", 200), ("wrong", 401), (old, 401)]:
            asked = await client.get("/users", headers={"authorization": f"Bearer {token}"})
            assert asked.status_code == status


async def test_another_token_in_the_file_is_the_owner_s_at_once(frontend: Frontend) -> None:
    """As when the data directory was replaced, or somebody wants the old one to be good for nothing."""
    (frontend.folder / "api_token").unlink()
    assert (await frontend.client.get("/users", headers=frontend.headers("owner"))).status_code == 401
    fresh = {"authorization": f"Bearer {make_owner_token(frontend.folder)}"}
    assert (await frontend.client.get("/users", headers=fresh)).status_code == 200
    assert (await frontend.client.get("/users", headers={"authorization": "Bearer"})).status_code == 401


async def heard(
    frontend: Frontend, events_of: Read, path: str, headers: dict[str, str]
) -> list[tuple[str, str | None]]:
    """The queries and users of what is heard while ann, bob and the owner ask."""
    seen = []
    async with frontend.client.stream("GET", path, headers=headers) as response:
        asking = [
            asyncio.create_task(frontend.client.post("/query", json={"query": "hello", "query_id": who}, headers=shown))
            for who, shown in (("a1", frontend.headers("ann")), ("b1", frontend.headers("bob")), ("o1", {}))
        ]
        await asyncio.gather(*asking)
        last = asyncio.create_task(
            frontend.client.post("/query", json={"query": "hello", "query_id": "end"}, headers=headers)
        )
        async for _, _, data in events_of(response):
            if data["correlation_id"] == "end":
                break
            seen.append((data["correlation_id"], data.get("user_id")))
        await last
    return [each for each in dict.fromkeys(seen) if each[0] in ("a1", "b1", "o1")]


async def test_a_user_hears_what_is_theirs_alone_and_the_owner_everything(frontend: Frontend, events_of: Read) -> None:
    path = "/events?subject=query.received"
    assert await heard(frontend, events_of, path, frontend.headers("ann")) == [("a1", "ann")]


async def test_the_owner_hears_everybody(frontend: Frontend, events_of: Read) -> None:
    path = "/events?subject=response.generation"
    assert set(await heard(frontend, events_of, path, {})) == {("a1", "ann"), ("b1", "bob"), ("o1", None)}


async def test_a_user_who_is_removed_hears_no_more(frontend: Frontend, system: System) -> None:
    async with frontend.client.stream("GET", "/events", headers=frontend.headers("bob")) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == ": subscribed"
        frontend.users.remove("bob")
        body = {"query": "hello", "user_id": "bob"}  # by the owner: something for bob to hear
        assert (await frontend.client.post("/query", json=body)).status_code == 200
        assert [line async for line in lines if line] == []


async def test_what_has_no_user_is_heard_by_the_owner_alone() -> None:
    frame = Envelope("participant.status", "e", "x", "i", 1, "c", b"{}")
    for user_id, hears in [(None, True), ("owner", True), ("ann", False)]:
        watch = BusWatch(user_id=user_id)
        watch.receive(frame)
        assert bool(watch.take()) is hears


async def test_a_query_that_another_user_has_asked_is_not_joined(frontend: Frontend, system: System) -> None:
    """Neither at the frontend that has heard it, nor at the next one, which finds it on record."""
    asked = {"query": "hello ann", "query_id": "q-ann"}
    for client in (frontend.client, None):
        if client is None:
            async with system.frontend() as client:
                refused = await client.post("/query", json=asked, headers=frontend.headers("bob"))
        else:
            refused = await client.post("/query", json=asked, headers=frontend.headers("bob"))
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict")
        assert "Hi there." not in refused.text


async def test_a_running_query_of_another_user_is_not_heard_under_its_id(system: System) -> None:
    folder = system.journal_file.parent
    users = Users(folder)
    ann, bob = ({"authorization": f"Bearer {users.add(name)}"} for name in ("ann", "bob"))
    body = {"query": "hold on", "query_id": "q", "wait": False}
    async with system.frontend() as client:
        assert (await client.post("/query", json=body, headers=ann)).status_code == 202
    async with system.frontend() as client:  # which knows nothing of it
        stream = {**bob, "accept": "text/event-stream"}
        asking = asyncio.create_task(client.post("/query", json={**body, "wait": True}, headers=stream))
        system.generator.release.set()
        refused = await asking
        assert refused.status_code == 409 and "Hi" not in refused.text
        assert (await client.get("/query/q", headers=ann)).json()["answer"] == "Hi there."


async def test_a_file_that_two_have_sent_is_both_s(frontend: Frontend) -> None:
    ann, bob, path = frontend.headers("ann"), frontend.headers("bob"), f"/attachments/{frontend.file}"
    asked = {"query": "hello", "attachments": [frontend.file]}
    assert (await frontend.client.post("/query", json=asked, headers=bob)).status_code == 422
    sent = await frontend.client.post("/attachments?name=a.txt", content=b"Hello.", headers=bob)
    assert sent.json()["id"] == frontend.file
    assert (await frontend.client.post("/query", json=asked, headers=bob)).status_code == 200
    assert (await frontend.client.delete(path, headers=ann)).status_code == 200
    assert (await frontend.client.get(path, headers=ann)).status_code == 404
    assert (await frontend.client.get(path, headers=bob)).status_code == 200
    assert (await frontend.client.get(path)).status_code == 200  # the owner sees everything, and may act for anybody
    assert (await frontend.client.delete(f"{path}?user_id=bob")).status_code == 200
    assert (await frontend.client.get(path)).status_code == 404


async def test_one_connection_is_looked_at_once_and_another_user_s_token_on_it_counts(
    frontend: Frontend, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    known = peer.socket_by_netlink

    def counted(*ends: Any) -> int | None:
        looked.append(ends)
        return known(*ends)

    monkeypatch.setattr(peer, "socket_by_netlink", counted)
    async with httpx.AsyncClient(base_url=str(frontend.client.base_url), trust_env=False, verify=False) as client:
        for _ in range(3):
            assert (await client.get("/participants")).status_code == 200
        assert (await client.get("/participants", headers=frontend.headers("ann"))).status_code == 403
        assert (await client.get("/participants")).status_code == 200
    assert len(looked) == 1


@ROOT_ONLY
async def test_another_unix_user_of_this_machine_is_a_stranger_without_a_token(frontend: Frontend) -> None:
    """For real: a process of that user's, which may not read the data directory either."""
    frontend.folder.chmod(0o700)
    made = await frontend.client.post("/sign-in/codes", json={"link": True}, headers=frontend.headers("owner"))
    seen = ROUTES["POST /sign-in"]._replace(
        body={"secret": made.json()["code"]}
    )  # among what the browser was started with
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(NOBODY)
            routes = ("GET /health", "GET /sessions", "POST /query", "GET /users", "DELETE /cron/{job_id}")
            told = {route: over_http(frontend, route, ROUTES[route], {}) for route in routes}
            try:
                token = (frontend.folder / "api_token").read_text()
            except OSError as error:
                token = type(error).__name__
            shown = [
                over_http(frontend, "GET /users", ROUTES["GET /users"], frontend.headers(who))[0]
                for who in frontend.tokens
            ]
            shown.append(over_http(frontend, "POST /sign-in", seen, {})[0])
            os.write(write, json.dumps([told, token, shown]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told, token, shown = json.loads(await asyncio.to_thread(pipe.read))
    await asyncio.to_thread(os.waitpid, child, 0)
    assert told.pop("GET /health") == [503, '{"status":"starting"}']
    assert {status for status, _ in told.values()} == {401}
    assert (token, shown) == ("PermissionError", [403, 403, 200, 403])
    assert (await frontend.client.post("/sign-in", json=seen.body)).status_code == 200, "the owner can use it still"


def over_http(frontend: Frontend, route: str, row: Row, headers: dict[str, str]) -> tuple[int, str]:
    """Without anything that this process would have to import now."""
    method, _, _ = route.partition(" ")
    given = body_of(route, row)
    body = json.dumps(given["json"]) if "json" in given else given.get("content")
    kind = {"content-type": "application/json"} if "json" in given else {}
    connection = http.client.HTTPConnection("127.0.0.1", frontend.port, timeout=90)
    connection.request(method, row.path.replace("{file}", frontend.file), body, {"accept": "*/*", **headers, **kind})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


SECRET = "Speak only of CANARY-7."
NAMED = {"profile": "kinfolk", "model": "paid/gpt", "tool": "home__unlock"}


class Away(HandPlayed):
    """A model manager with a paid model, and a server's tool of the owner's."""

    name = "model_keeper"

    @on(ModelRequest)
    async def answer(self, request: ModelRequest, envelope: Envelope) -> ModelResult:
        mine = ModelRecord(id="mine", name="mine", server="ollama", provider="ollama", default=True)
        paid = ModelRecord(id=NAMED["model"], name="gpt", server="openai", provider="paid")
        found = (mine, paid) if request.verb == "list" else (paid,)
        return ModelResult(verb=request.verb, models=found)


async def test_no_route_gives_another_user_the_owner_s_profile_paid_model_or_mcp_server(
    peopled: Frontend, system: System
) -> None:
    """Each route is asked as in the table, and with these names in every place of its body that takes one."""
    (peopled.folder / "agents").mkdir()
    header = "name: kinfolk\ndescription: Ours.\ntools: ['*']\nmodel: paid/gpt"
    (peopled.folder / "agents" / "kinfolk.md").write_text(f"---\n{header}\n---\n{SECRET}\n")
    provider = "{kind: openai, url: 'https://models.example.org/v1', allow_cloud: true}"
    (peopled.folder / "models.yaml").write_text(f"providers: {{ollama: {{kind: ollama}}, paid: {provider}}}\n")
    (peopled.folder / "mcp.json").write_text('{"mcpServers": {"home": {"command": "unlock-it", "safety": "L0"}}}')
    bob, said = peopled.headers("bob"), [{"role": "user", "content": "hello"}]
    attacks = [
        ("POST /query", {"query": "hello", "profile": "kinfolk"}),
        ("POST /query", {"query": "hello", "model": NAMED["model"]}),
        ("POST /query", {"query": "hello", "user_id": "bob", "profile": "kinfolk"}),
        ("POST /query", {"query": "hello", "settings": {"profile": "kinfolk"}}),
        ("POST /v1/chat/completions", {"model": "local2:kinfolk", "messages": said}),
        ("POST /v1/chat/completions", {"model": NAMED["model"], "messages": said}),
        ("POST /tools/{tool}/calls", {"args": {}}),
        ("PATCH /sessions/{session_id}", {"settings": {"profile": "kinfolk"}}),
    ]
    paths = {"POST /tools/{tool}/calls": f"/tools/{NAMED['tool']}/calls", "PATCH /sessions/{session_id}": "/sessions/b"}
    async with system.host(Away()):
        while len((await peopled.client.get("/models")).text) < 100:  # until the frontend has heard of it
            pass
        rows = [(route, row) for route, row in ROUTES.items() if "DELETE" not in route]
        rows += [(route, Row(Access.USERS, paths.get(route, route.partition(" ")[2]), body)) for route, body in attacks]
        for route, row in rows:
            answer = await peopled.ask(route, row, bob)
            for word in ("CANARY", "kinfolk", "unlock-it", "models.example.org", str(peopled.folder)):
                assert word not in answer.text.replace("'kinfolk'", "").replace("local2:kinfolk", ""), (route, word)
    options = [turn.options for query_id, turn in system.generator.turns.items() if query_id != "q-ann"]
    for each in filter(None, options):
        assert each.profile is None or each.profile.name != "kinfolk"
        assert each.model != NAMED["model"]
