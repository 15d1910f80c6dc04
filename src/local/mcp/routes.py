"""The HTTP routes /mcp and /tools, for MCP clients and for programs that call tools themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from local.api.context import api
from local.api.http import Id, JsonResponse, PathId, read_body, takes
from local.api.security import Access, open_to
from local.bus.envelope import new_id
from local.mcp.endpoint import MCPEndpoint

# An answer of the MCP SDK on its way: each refusal is a JSON-RPC error with one sentence, however the SDK says it.

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
async def listing() -> Response:
    """List the tools that a program may call, with their levels and argument schemas."""
    told = {"tool", "description", "parameters", "safety", "category", "effect", "trusted", "timeout_seconds"}
    found = (await api().client_tools.offered()).values()
    return JsonResponse({"tools": [schema.model_dump(include=told) for schema in found]})


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
