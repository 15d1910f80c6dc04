"""Conversations, as the generator has them on record."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import ApiContext, PathId
from local.apps.api.json_body import JsonResponse
from local.apps.api.principals import Caller, Principal


def add_routes(routes: APIRouter, context: ApiContext) -> None:
    """The routes under /sessions."""
    session = context.session

    async def of_caller(session_id: str, caller: Principal) -> dict[str, Any]:
        found = await session.look_up("session", session_id)
        caller.require(found.get("user_id"), f"session {session_id}")
        return found

    @routes.get("/sessions")
    @open_to(Access.USERS)
    async def listing(caller: Caller) -> Response:
        """Every session, the most recent first."""
        return JsonResponse(await session.look_up("sessions", caller.user_id or ""))

    @routes.get("/sessions/{session_id}")
    @open_to(Access.USERS)
    async def show(session_id: PathId, caller: Caller) -> Response:
        """One session: its turns, and the messages as the model gets them."""
        return JsonResponse(await of_caller(session_id, caller))

    @routes.delete("/sessions/{session_id}")
    @open_to(Access.USERS)
    async def delete(session_id: PathId, caller: Caller) -> Response:
        """Remove a session for good; not while one of its queries is open. What is remembered elsewhere may repeat it:
        the ids are told, or null where no memory takes part."""
        if not caller.is_owner:
            await of_caller(session_id, caller)
        repeated_in = await context.memories.repeated_in(session_id)  # known for as long as the session is
        return JsonResponse({**await session.delete(session_id), "repeated_in": repeated_in})
