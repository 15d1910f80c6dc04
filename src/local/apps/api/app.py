"""The HTTP API as an ASGI application."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp

from local.apps.api.context import ApiContext
from local.apps.api.errors import handle_errors
from local.apps.api.guard_middleware import GuardMiddleware, GuardPolicy
from local.apps.api.json_body import JsonResponse
from local.apps.api.routes import attachments, bus_events, feedback, health, memory, openai, query, sessions

NOUNS = (query, health, attachments, sessions, bus_events, openai, memory, feedback)


def create_app(context: ApiContext, policy: GuardPolicy) -> ASGIApp:
    """Every route, behind the guards. GET /openapi.json describes them."""
    app = FastAPI(title="LoCAL2", version=context.version, docs_url=None, redoc_url=None, redirect_slashes=False)
    handle_errors(app)
    for noun in NOUNS:
        noun.add_routes(app.router, context)

    @app.get("/")
    async def index() -> Response:
        """What there is."""
        return JsonResponse({"name": "LoCAL2", "version": context.version, "routes": _listing(app)})

    return GuardMiddleware(app, policy)


def _listing(app: FastAPI) -> list[str]:
    return sorted(
        f"{method.upper()} {path}" for path, operations in app.openapi()["paths"].items() for method in operations
    )
