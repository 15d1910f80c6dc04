"""How the system is, and who takes part."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from local.apps.api.context import ApiContext
from local.apps.api.json_body import JsonResponse


def add_routes(routes: APIRouter, context: ApiContext) -> None:
    """GET /health and /participants."""
    participants = context.participants

    @routes.get("/health")
    async def health() -> Response:
        """200 if every configured participant is ready, else 503, with the same body."""
        now = context.clock()
        status = participants.health(now)
        body = {
            "status": status,
            "problem": participants.problem or None,
            "notice": participants.notice or None,
            "model": participants.model,
            "backend": context.backend,
            "stand_in": context.backend == "stand_in",
            "version": context.version,
            "participants": participants.listing(now),
        }
        return JsonResponse(body, 200 if status == "ok" else 503)

    @routes.get("/participants")
    async def listing() -> Response:
        """Every participant with its state, process, restarts and counters."""
        return JsonResponse({"participants": participants.listing(context.clock())})
