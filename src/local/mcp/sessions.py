"""The sessions of MCP clients over HTTP, each with the principal that began it, and the in-process client that they
use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import anyio
import httpx
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from local.api.app import routed
from local.api.context import ApiContext
from local.api.security import Principal
from local.bus.messages import AnswerOptions
from local.core.errors import LocalError, NoAnswer
from local.mcp.routes import MCPAnswer
from local.mcp.stdio import TELL_SECONDS, Json, MCPServerFactory, Told
from local.queries.errors import QueryRefused

MOST_SESSIONS = 64
IDLE_SECONDS = 30 * 60.0
BASE = "http://localhost"  # of requests that never leave this process


class InProcessClient:
    """An `MCPClient` that calls the routes of one API as one principal, without the guard."""

    def __init__(self, context: ApiContext, principal: Principal) -> None:
        self._context, self._session, self._principal = context, context.session, principal
        self._tools = context.client_tools
        self._app = context.serving(routed())

    async def get(self, path: str, fields: Mapping[str, Any]) -> Json:
        """See `MCPClient`."""
        found: Json = (await self._answer(path, fields)).json()
        return found

    async def export(self, session_id: str) -> str:
        """See `MCPClient`."""
        return (await self._answer(f"/sessions/{quote(session_id, safe='')}/export", {})).text

    async def ask(self, body: Json, told: Told) -> Json:
        """See `MCPClient`."""
        user_id, options = self._principal.user_id, AnswerOptions(mode=body["mode"])
        await self._context.require_may_ask(user_id, options, body.get("session_id"), body["query_id"])
        query = self._session.ask(
            body["query"], query_id=body["query_id"], session_id=body.get("session_id"), user_id=user_id,
            options=options,
        )  # fmt: skip
        try:
            while not await query.ends_within(TELL_SECONDS):
                states = query.view.states
                await told(query.events.count, states[-1].to_state if states else "")
        except anyio.get_cancelled_exc_class():
            if not query.view.ended:
                with anyio.CancelScope(shield=True), suppress(LocalError):
                    await self._session.cancel(query.query_id, query.view.user_id)
            raise
        try:
            await query.outcome()
        except QueryRefused as refusal:
            if refusal.kind != "cancelled":
                raise
            return _plain(query.view.as_cancelled())
        return _plain(query.view.as_json())

    async def tools(self) -> list[Json]:
        """See `MCPClient`."""
        return (await self.get("/tools", {}))["tools"] if self._principal.is_owner else []

    async def call(self, tool: str, body: Json) -> Json:
        """See `MCPClient`."""
        self._principal.require_owner()
        result = await self._tools.call(tool, body["args"], body["query_id"], body["client"])
        return _plain(result.model_dump(mode="json"))

    async def _answer(self, path: str, fields: Mapping[str, Any]) -> httpx.Response:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await self._app({**scope, "principal": self._principal}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client:
            answer = await client.get(path, params=dict(fields))
        if answer.is_error:
            error = answer.json()["error"]
            raise NoAnswer(error["kind"], error["message"], answer.status_code)
        return answer


def _plain(view: Json) -> Json:
    """Return the value in its HTTP form."""
    plain: Json = from_json(to_json(view))
    return plain


class MCPSessions:
    """The MCP sessions of one API. Each serves only the principal that began it: the SDK compares the `user` of a
    request."""

    def __init__(self, context: ApiContext) -> None:
        def client_for(called: Context[Any, Request]) -> InProcessClient:
            request = called.request_context.request
            assert request is not None
            return InProcessClient(context, request.scope["principal"])

        server = MCPServerFactory(client_for).server()
        server.streamable_http_app(
            max_sessions=MOST_SESSIONS,
            session_idle_timeout=IDLE_SECONDS,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard does it
        )
        self._manager = server.session_manager

    async def serve(self, ready: asyncio.Event, stopping: asyncio.Event) -> None:
        """Serve until it is to stop; then every session ends."""
        async with self._manager.run():
            ready.set()
            await stopping.wait()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the `principal` in its scope is the requester."""
        principal: Principal = scope["principal"]
        token = AccessToken(token="", client_id="local2", scopes=[], subject=principal.user_id)
        await self._manager.handle_request({**scope, "user": AuthenticatedUser(token)}, receive, MCPAnswer(send))
