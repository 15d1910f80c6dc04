"""How the system is, and who takes part."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import api
from local.apps.api.errors import RETRY_SECONDS
from local.apps.api.json_body import JsonResponse
from local.apps.api.principals import Principal, principal_of


def add_routes(routes: APIRouter) -> None:
    """GET /health and /participants."""

    @routes.get("/health")
    @open_to(Access.ANYBODY)
    async def health(request: Request, report: bool = False) -> Response:
        """200 if every configured participant is ready, else 503, with the same body; whoever is not the owner is told
        the status alone. As a `report` it is 200 in any case: for a browser, to which any other is an error."""
        participants, now = api().participants, api().clock()
        status = participants.health(now)
        asked_by: Principal | None = principal_of(request)
        if asked_by is None or not asked_by.is_owner:
            return _told({"status": status}, is_well=report or status == "ok")
        body = {
            "status": status,
            "problem": participants.problem or None,
            "notice": participants.notice or None,
            "model": participants.model,
            "backend": api().backend,
            "stand_in": api().backend == "stand_in",
            "version": api().version,
            "participants": participants.listing(now),
        }
        return _told(body, is_well=report or status == "ok")

    @routes.get("/participants")
    @open_to(Access.OWNER)
    async def listing() -> Response:
        """Every participant with its state, process, restarts and counters."""
        return JsonResponse({"participants": api().participants.listing(api().clock())})


def _told(body: dict[str, Any], *, is_well: bool) -> Response:
    return JsonResponse(body) if is_well else JsonResponse(body, 503, {"retry-after": RETRY_SECONDS})
