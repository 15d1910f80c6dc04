"""Conversations, as the generator has them on record."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from local.apps.api.context import ApiContext, PathId
from local.apps.api.json_body import JsonResponse


def add_routes(routes: APIRouter, context: ApiContext) -> None:
    """The routes under /sessions."""
    session = context.session

    @routes.get("/sessions")
    async def listing() -> Response:
        """Every session, the most recent first."""
        return JsonResponse(await session.look_up("sessions"))

    @routes.get("/sessions/{session_id}")
    async def show(session_id: PathId) -> Response:
        """One session: its turns, and the messages as the model gets them."""
        return JsonResponse(await session.look_up("session", session_id))

    @routes.delete("/sessions/{session_id}")
    async def delete(session_id: PathId) -> Response:
        """Remove a session for good; not while one of its queries is open. What is remembered elsewhere may repeat it:
        the ids are told, or null where no memory takes part."""
        repeated_in = await context.memories.repeated_in(session_id)  # known for as long as the session is
        return JsonResponse({**await session.delete(session_id), "repeated_in": repeated_in})
