"""The HTTP routes /mcp and /tools: for MCP clients, for the owner of MCP servers, and for programs that call tools
themselves.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from local.api.context import LivePart, api
from local.api.http import Id, JsonResponse, PathId, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.bus.envelope import new_id
from local.core.errors import LocalError, SandboxMissing, ToolError
from local.core.mcp_servers import MCPServerConfig, participant_name
from local.mcp.endpoint import MCPEndpoint
from local.skills.messages import SkillRequest, SkillResult
from local.tools.skill_folder import ServingSkill

if TYPE_CHECKING:
    from local.mcp.servers import MCPServerBook

# An answer of the MCP SDK on its way: each refusal is a JSON-RPC error with one sentence, whatever its form in the SDK.

INVALID_REQUEST = -32600
NO_MESSAGE = "body: expected one JSON-RPC request, notification or response, as an object"
FAULTS: Mapping[int, str] = {
    400: "content-type: expected application/json",
    405: "this version of the protocol accepts only POST",
    406: "accept: expected application/json, text/event-stream",
}


class MCPAnswer:
    """The `send` of one request, which turns each refusal into a JSON-RPC error."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._refusal: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """Pass on a part of the answer, or hold it until a refusal is complete."""
        if message["type"] == "http.response.start" and message["status"] >= 400:
            self._refusal = message
        elif self._refusal is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._refuse(self._refusal)

    async def _refuse(self, start: Message) -> None:
        body = json.dumps(_as_error(self._body, start["status"])).encode()
        headers = MutableHeaders(raw=list(start.get("headers", ())))
        headers["content-type"], headers["content-length"] = "application/json", str(len(body))
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def _as_error(body: bytes, status: int) -> dict[str, Any]:
    """Return the refusal as a JSON-RPC error. A message of several lines comes from a validator, about each kind of
    message.
    """
    try:
        told: dict[str, Any] = json.loads(body)
        error = {**told["error"]}
    except (ValueError, TypeError, KeyError):
        said = FAULTS.get(status) or body.decode(errors="replace") or f"refused with {status}"
        return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": said}}
    if "\n" in error["message"]:
        error["message"] = NO_MESSAGE
    return {**told, "error": error}


# The system for programs that speak the Model Context Protocol, over streamable HTTP.


def add_mcp_routes(routes: APIRouter) -> None:
    """The route /mcp."""
    for method in ("POST", "GET", "DELETE"):
        routes.add_api_route("/mcp", exchange, methods=[method])


@open_to(Access.USERS)
async def exchange(request: Request) -> Response:
    """Exchange MCP messages: POST sends one, GET opens the server's stream, DELETE ends the session."""
    return _ByEndpoint()


class _ByEndpoint(Response):
    """A response that the SDK writes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await api().part(MCPEndpoint, MCPEndpoint).answer(api(), scope, receive, send)


# The servers of mcp.json, for their owner. The MCP client is imported with the first request: that takes a second.

ONCE = {"cache-control": "no-store"}  # it may contain keys
ServerName = Annotated[str, InPath(pattern=r"^[A-Za-z0-9_-]{1,32}$")]
Words = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
Pairs = Annotated[dict[Words, Annotated[str, StringConstraints(max_length=8000)]], Field(default_factory=dict)]


class ServerBody(BaseModel):
    """The body of POST /mcp/servers. `server` is a URL, or a command and its arguments. A value of `env` or `headers`
    that is a key or a password is given as `secret:NAME`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,32}$")]
    server: Annotated[list[Words], Field(min_length=1, max_length=100)]
    env: Pairs
    headers: Pairs
    readable: Annotated[list[Words], Field(default_factory=list, max_length=100)]
    network: bool = False


class PastedBody(BaseModel):
    """The body of POST /mcp/servers/read: the text that was copied."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000)]


class EntryBody(BaseModel):
    """The body of PUT /mcp/servers/{name}: the entry as in mcp.json."""

    model_config = ConfigDict(extra="forbid", strict=True)
    entry: dict[str, Any]


class ReviewedBody(BaseModel):
    """The body that approves tools: the id under which they were shown."""

    model_config = ConfigDict(extra="forbid", strict=True)
    review_id: Id


class ServerBooks(LivePart):
    """The part of the API that manages MCP servers. `book` imports the MCP client, and is made in a thread."""

    def __init__(self, layers: Sequence[Path], data_dir: Path) -> None:
        self._layers, self._data_dir = layers, data_dir
        self._book: MCPServerBook | None = None
        self._making = asyncio.Lock()

    @classmethod
    def here(cls) -> ServerBooks:
        """The one of the API that was asked."""
        context = api()
        return context.part(cls, lambda: cls(context.layers, context.data_dir))

    async def book(self) -> MCPServerBook:
        """The servers."""
        async with self._making:
            if self._book is None:
                servers = await asyncio.to_thread(importlib.import_module, "local.mcp.servers")
                self._book = servers.MCPServerBook(self._layers, self._data_dir)
        return self._book

    def stop(self) -> None:
        """End the logins that wait for a person."""
        if self._book is not None:
            self._book.stop()

    async def close(self) -> None:
        """Wait for the end of those."""
        if self._book is not None:
            await self._book.close()


def add_server_routes(routes: APIRouter) -> None:
    """The routes under /mcp/servers."""
    servers, one = _Servers(), "/mcp/servers/{name}"
    routes.add_api_route("/mcp/servers", servers.listing, methods=["GET"])
    routes.add_api_route("/mcp/servers", servers.add, methods=["POST"], openapi_extra=takes(ServerBody))
    routes.add_api_route("/mcp/servers/read", servers.read, methods=["POST"], openapi_extra=takes(PastedBody))
    routes.add_api_route(one, servers.entry, methods=["GET"])
    routes.add_api_route(one, servers.put, methods=["PUT"], openapi_extra=takes(EntryBody))
    routes.add_api_route(one, servers.remove, methods=["DELETE"])
    routes.add_api_route(f"{one}/review", servers.review, methods=["POST"])
    routes.add_api_route(f"{one}/approve", servers.approve, methods=["POST"], openapi_extra=takes(ReviewedBody))
    routes.add_api_route(f"{one}/login", servers.log_in, methods=["POST"])
    routes.add_api_route(f"{one}/login", servers.log_out, methods=["DELETE"])


class _Servers:
    @open_to(Access.OWNER)
    async def listing(self) -> Response:
        """List the MCP servers of mcp.json with their approved tools and the state of their login."""
        book = await ServerBooks.here().book()
        return JsonResponse({"servers": await asyncio.to_thread(book.listing)})

    @open_to(Access.TOKEN)
    async def add(self, request: Request) -> Response:
        """Add a server to mcp.json. The status is 201. None of its tools is offered before it is approved."""
        body = await read_body(request, ServerBody)
        book = await ServerBooks.here().book()
        entry = book.new_entry(body.server, body.env, body.headers, body.readable, network=body.network)
        return JsonResponse(await asyncio.to_thread(book.add, body.name, entry), 201)

    @open_to(Access.TOKEN)
    async def read(self, request: Request) -> Response:
        """Read servers from a text for another client, such as an `mcpServers` object. Nothing is stored: `entry` is
        what PUT takes, `kind` and `needs` say what its program is and which folders it has to read to start."""
        body = await read_body(request, PastedBody)
        book = await ServerBooks.here().book()
        return JsonResponse({"servers": await asyncio.to_thread(book.read, body.text)})

    @open_to(Access.TOKEN)
    async def entry(self, name: ServerName) -> Response:
        """Get a server's entry as it is written in mcp.json, to change it."""
        book = await ServerBooks.here().book()
        return JsonResponse({"name": name, "entry": await asyncio.to_thread(book.entry, name)}, 200, ONCE)

    @open_to(Access.TOKEN)
    async def put(self, name: ServerName, request: Request) -> Response:
        """Store a server's entry in mcp.json, in place of an earlier one. `problem` says why the system does not use it
        yet."""
        body = await read_body(request, EntryBody)
        book = await ServerBooks.here().book()
        server = await asyncio.to_thread(book.put, name, body.entry)
        return JsonResponse({"server": server, "problem": await restarted(name) if server["tools"] else ""})

    @open_to(Access.TOKEN)
    async def remove(self, name: ServerName) -> Response:
        """Remove a server from mcp.json, with its approved tools and its login. `kept` is the folder of its data."""
        book = await ServerBooks.here().book()
        kept = await asyncio.to_thread(book.remove, name)
        return JsonResponse({"name": name, "removed": True, "kept": kept, "problem": await restarted(name)})

    @open_to(Access.TOKEN)
    async def review(self, name: ServerName) -> Response:
        """Contact a server and show its present tools, compared with the approved ones."""
        book = await ServerBooks.here().book()
        return JsonResponse(await contacted(book.review({name: await asyncio.to_thread(book.server, name)})))

    @open_to(Access.TOKEN)
    async def approve(self, name: ServerName, request: Request) -> Response:
        """Approve the tools of a server as they were shown. `problem` says why the system does not offer them yet."""
        body = await read_body(request, ReviewedBody)
        book = await ServerBooks.here().book()
        for review in book.reviewed(body.review_id):
            if review.name == name:
                await asyncio.to_thread(book.approve, review)
        return JsonResponse({"name": name, "approved": True, "problem": await restarted(name)})

    @open_to(Access.TOKEN)
    async def log_in(self, name: ServerName) -> Response:
        """Begin a login (OAuth) at a server with a URL. `visit` is the address at which it is completed, in a browser
        on the machine of LoCAL2; null if the server needs no login. The status is 202.
        """
        book = await ServerBooks.here().book()
        return JsonResponse(await contacted(book.log_in(name)), 202)

    @open_to(Access.TOKEN)
    async def log_out(self, name: ServerName) -> Response:
        """Delete a stored login, or stop one that was begun."""
        book = await ServerBooks.here().book()
        await asyncio.to_thread(book.log_out, name)
        return JsonResponse({"name": name, "logged_out": True})


# The tools that a skill brings, for the owner.

SkillName = Annotated[str, InPath(max_length=80)]
Folder = Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class SkillFolderBody(BaseModel):
    """The body of POST /skills/{name}/tools/review: the folder of the skill."""

    model_config = ConfigDict(extra="forbid", strict=True)
    folder: Folder


class SkillToolsBody(BaseModel):
    """The body of POST /skills/{name}/tools: the folder, and the id under which its tools were shown."""

    model_config = ConfigDict(extra="forbid", strict=True)
    folder: Folder
    review_id: Id


def add_skill_tool_routes(routes: APIRouter) -> None:
    """The routes under /skills/{name}/tools."""
    tools, one = _SkillTools(), "/skills/{name}/tools"
    routes.add_api_route(f"{one}/review", tools.review_tools, methods=["POST"], openapi_extra=takes(SkillFolderBody))
    routes.add_api_route(one, tools.approve_tools, methods=["POST"], openapi_extra=takes(SkillToolsBody))
    routes.add_api_route(one, tools.withdraw_tools, methods=["DELETE"])


class _SkillTools:
    @open_to(Access.TOKEN)
    async def review_tools(self, name: SkillName, request: Request) -> Response:
        """Start the tool servers that a skill brings in a sandbox without a network, and show their tools."""
        body = await read_body(request, SkillFolderBody)
        await _require_listed(name, body.folder)
        servers = await asyncio.to_thread(_brought, Path(body.folder))
        if not servers:
            raise RequestRefused("not_found", f"the skill {name} has no tools: it contains no mcp.json")
        return JsonResponse(await contacted((await ServerBooks.here().book()).review(servers)))

    @open_to(Access.TOKEN)
    async def approve_tools(self, name: SkillName, request: Request) -> Response:
        """Approve the tools of a skill as they were shown. `problem` says why the system does not offer them yet."""
        body = await read_body(request, SkillToolsBody)
        await _require_listed(name, body.folder)
        book, problems, folder = await ServerBooks.here().book(), list[str](), Path(body.folder)
        reviews = book.reviewed(body.review_id)
        servers = await asyncio.to_thread(_brought, folder)
        if {review.name: review.server for review in reviews} != servers:
            raise RequestRefused("changed", "the skill has changed since its tools were shown; review them again")
        await asyncio.to_thread(book.renew, folder, reviews)
        for review in reviews:
            problems.append(await restarted(review.name))
        return JsonResponse({"name": name, "approved": True, "problem": "; ".join(filter(None, problems))})

    @open_to(Access.TOKEN)
    async def withdraw_tools(self, name: SkillName, folder: Annotated[str, Query(max_length=4000)]) -> Response:
        """Withdraw the approval of the tools that a skill brings."""
        book = await ServerBooks.here().book()
        names = await asyncio.to_thread(book.withdraw, Path(folder))
        for server in names:
            await restarted(server)
        return JsonResponse({"name": name, "withdrawn": names})


async def _require_listed(name: str, folder: str) -> None:
    """Raise `RequestRefused` for a folder that is not one of that skill, so that no other folder is read."""
    found = await api().ask("files", SkillRequest(verb="list"), SkillResult, seconds=30.0)
    if all((skill.name, skill.folder) != (name, folder) for skill in found.skills):
        raise RequestRefused("not_found", f"there is no skill {name[:80]!r} in that folder")


def _brought(folder: Path) -> dict[str, MCPServerConfig]:
    return ServingSkill.of(folder).servers()


async def contacted(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """The result of contacting a server. Raises `RequestRefused` with the server's error."""
    try:
        return await work
    except (ToolError, SandboxMissing) as error:
        raise RequestRefused("conflict", str(error)) from None


async def restarted(server: str) -> str:
    """Restart the participant of a server so that a decision takes effect; returns why it did not, empty if it did."""
    try:
        child = await api().control.participant("restart", participant_name(server))
    except LocalError as error:
        return "" if error.kind == "not_found" else str(error)
    return child.detail if child is not None and child.state == "failed" else ""


CLIENT = "a program over HTTP"

ToolName = Annotated[str, InPath(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class ToolCallBody(BaseModel):
    """The body of POST /tools/{tool}/calls. `client` is the program's name as shown in approval requests. A repeated
    `query_id` refers to the same call.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    args: Annotated[dict[str, Any], Field(default_factory=dict)]
    client: Annotated[str, StringConstraints(min_length=1, max_length=80)] = CLIENT
    query_id: Id | None = None


def add_tool_routes(routes: APIRouter) -> None:
    """The routes under /tools."""
    routes.add_api_route("/tools", listing, methods=["GET"])
    routes.add_api_route("/tools/{tool}/calls", call, methods=["POST"], openapi_extra=takes(ToolCallBody))
    routes.add_api_route("/tools/calls/{query_id}/cancel", cancel, methods=["POST"])


@open_to(Access.OWNER)
async def listing(of: Literal["programs", "models"] = "programs") -> Response:
    """List the tools that a program may call, with their levels and argument schemas; with `of=models` all that models
    may call.
    """
    told = {"tool", "description", "parameters", "safety", "category", "effect", "trusted", "timeout_seconds"}
    found = await (api().client_tools.known() if of == "models" else api().client_tools.offered())
    return JsonResponse({"tools": [schema.model_dump(include=told) for schema in found.values()]})


@open_to(Access.OWNER)
async def call(tool: ToolName, request: Request) -> Response:
    """Call a tool and wait for its result. A call that needs approval is denied, unless the owner has allowed programs
    to request approval.
    """
    body = await read_body(request, ToolCallBody)
    query_id = body.query_id or f"call-{new_id()}"
    result = await api().client_tools.call(tool, body.args, query_id, body.client)
    return JsonResponse(result)


@open_to(Access.OWNER)
async def cancel(query_id: PathId) -> Response:
    """Cancel a tool call; an open approval request is withdrawn."""
    await api().client_tools.cancel(query_id)
    return JsonResponse({"query_id": query_id, "status": "cancelling"}, 202)
