"""Dreams: what was seen in conversations while nobody asked anything, and whether that goes on."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import api
from local.apps.api.json_body import JsonResponse
from local.protocol.dream_messages import DREAM
from local.protocol.memory_messages import OWNER


def add_routes(routes: APIRouter) -> None:
    """The routes under /dreams."""

    @routes.get("/dreams")
    @open_to(Access.OWNER)
    async def listing() -> Response:
        """How the dreamer is, and what it has seen that still holds, the latest first."""
        state = await api().reflections.ask("dreamer", "status")
        notes = (await api().memories.ask("notes", OWNER)).engrams
        dreams = [
            {"engram_id": note.engram_id, "dream_id": note.note_of, "text": note.answer, "sources": note.recalled,
             "until": note.asked_at}
            for note in notes if note.query == DREAM
        ]  # fmt: skip
        return JsonResponse({**state.model_dump(), "dreams": dreams})

    @routes.post("/dreams/{verb}")
    @open_to(Access.OWNER)
    async def change(verb: Literal["now", "on", "off"]) -> Response:
        """Have it dream without waiting for its time, or switch it."""
        state = await api().reflections.ask("dreamer", verb)
        return JsonResponse(state)
