"""The inner monologue: what was thought while nobody asked anything, and whether that goes on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import api
from local.apps.api.json_body import JsonResponse
from local.protocol.journal_messages import JournalRead
from local.protocol.reflection_messages import MonologueThought

END = 2**62  # a number behind all messages
SHOWN = ("thought_id", "text", "sources", "left_out", "model")


def add_routes(routes: APIRouter) -> None:
    """The routes under /monologue."""

    @routes.get("/monologue")
    @open_to(Access.OWNER)
    async def listing(limit: Annotated[int, Query(ge=1, le=100)] = 20) -> Response:
        """How it is, and the thoughts that are on record, the latest first."""
        state = await api().reflections.ask("monologue", "status")
        return JsonResponse({**state.model_dump(), "thoughts": await _thoughts(limit)})

    @routes.post("/monologue/{verb}")
    @open_to(Access.OWNER)
    async def change(verb: Literal["now", "on", "off"]) -> Response:
        """Have it think without waiting for its time, or switch it."""
        return JsonResponse(await api().reflections.ask("monologue", verb))


async def _thoughts(limit: int) -> list[dict[str, Any]]:
    """Without those that rest on what was deleted."""
    request, found = JournalRead(subjects=(MonologueThought.subject,), before=END, limit=limit), list[dict[str, Any]]()
    async for message in api().session.entries(request):
        payload = await api().session.payload(message)
        if payload is not None:
            found.append({**{name: payload.get(name) for name in SHOWN}, "at": message.entry.committed_at})
        if len(found) == limit:
            break
    return found
