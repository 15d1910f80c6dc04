"""Routes that a later version fills, so that clients learn it from us and not from a 404."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from local.apps.api.context import ApiContext
from local.apps.api.errors import Refusal

ROUTES = (("POST", "/feedback"), ("GET", "/memory"), ("GET", "/memory/{engram_id}"), ("DELETE", "/memory/{engram_id}"))


def router(context: ApiContext) -> APIRouter:
    """Feedback and memory: 501."""
    routes = APIRouter()
    for method, path in ROUTES:
        routes.add_api_route(path, _not_yet, methods=[method])
    return routes


async def _not_yet() -> Response:
    """Not part of this version."""
    raise Refusal("not_implemented", "this version has neither memory nor feedback yet; a later one will")
