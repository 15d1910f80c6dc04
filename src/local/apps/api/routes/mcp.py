"""The system for programs that speak the Model Context Protocol, over streamable HTTP."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from local.apps.api.access import Access, open_to
from local.apps.api.context import api


def add_routes(routes: APIRouter) -> None:
    """The route /mcp."""
    for method in ("POST", "GET", "DELETE"):
        routes.add_api_route("/mcp", exchange, methods=[method])


@open_to(Access.USERS)
async def exchange(request: Request) -> Response:
    """One message of a client, its stream of what the server says, or the end of its session."""
    return _ByEndpoint()


class _ByEndpoint(Response):
    """Is written by the SDK."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await api().mcp.answer(api(), scope, receive, send)
