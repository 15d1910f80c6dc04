"""The tools that programs may call by themselves, and calls of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import Id, PathId, api
from local.apps.api.json_body import JsonResponse, read_body, takes
from local.protocol.envelope import new_id

CLIENT = "a program over HTTP"

ToolName = Annotated[str, InPath(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class ToolCallBody(BaseModel):
    """The body of POST /tools/{tool}/calls. `client` is what the program calls itself, as whoever is asked will read
    it; the same `query_id` again is the same call."""

    model_config = ConfigDict(extra="forbid", strict=True)
    args: Annotated[dict[str, Any], Field(default_factory=dict)]
    client: Annotated[str, StringConstraints(min_length=1, max_length=80)] = CLIENT
    query_id: Id | None = None


def add_routes(routes: APIRouter) -> None:
    """The routes under /tools."""
    routes.add_api_route("/tools", listing, methods=["GET"])
    routes.add_api_route("/tools/{tool}/calls", call, methods=["POST"], openapi_extra=takes(ToolCallBody))
    routes.add_api_route("/tools/calls/{query_id}/cancel", cancel, methods=["POST"])


@open_to(Access.OWNER)
async def listing() -> Response:
    """The tools that a program may call, with their levels and the schemas of their arguments."""
    told = {"tool", "description", "parameters", "safety", "category", "effect", "trusted", "timeout_seconds"}
    found = (await api().client_tools.offered()).values()
    return JsonResponse({"tools": [schema.model_dump(include=told) for schema in found]})


@open_to(Access.OWNER)
async def call(tool: ToolName, request: Request) -> Response:
    """Have a tool called, and wait for its result; what takes leave is denied, or asked if the owner has it so."""
    body = await read_body(request, ToolCallBody)
    query_id = body.query_id or f"call-{new_id()}"
    result = await api().client_tools.call(tool, body.args, query_id, body.client)
    return JsonResponse(result)


@open_to(Access.OWNER)
async def cancel(query_id: PathId) -> Response:
    """Stop a call: its question is withdrawn, its tool ended."""
    await api().client_tools.cancel(query_id)
    return JsonResponse({"query_id": query_id, "status": "cancelling"}, 202)
