"""The HTTP API as an ASGI application."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.responses import Response
from starlette.types import ASGIApp

from local.apps.api.access import Access, enforce, open_to, open_to_anybody
from local.apps.api.context import ApiContext
from local.apps.api.errors import handle_errors
from local.apps.api.guard_middleware import GuardMiddleware, GuardPolicy
from local.apps.api.json_body import JsonResponse
from local.apps.api.principals import Principals
from local.apps.api.routes import (
    accounts,
    agents,
    approvals,
    attachments,
    bus_events,
    changes,
    control,
    cron,
    dreams,
    feedback,
    goals,
    health,
    journal,
    mcp,
    memory,
    models,
    monologue,
    openai,
    page,
    profiles,
    prompt,
    query,
    sessions,
    settings,
    skills,
    stream,
    tools,
    users,
)

NOUNS = (
    query, health, attachments, sessions, journal, bus_events, openai, memory, feedback, users, page, stream, control,
    models, settings, changes, approvals, prompt, profiles, mcp, skills, agents, cron, dreams, monologue,
    goals, accounts, tools,
)  # fmt: skip


# Whatever stands in the environment: nothing of a query goes to a collector.
_NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def create_app(context: ApiContext, policy: GuardPolicy, principals: Principals) -> ASGIApp:
    """Every route, behind the guards, for one API. Raises `Undeclared`."""
    app = routed()
    return GuardMiddleware(context.asked_of(app), policy, principals, open_to_anybody(app.routes))


@cache
def routed() -> FastAPI:
    """Every route. They are made once in a process, which takes FastAPI 0.15 s: in the template, before the API's
    process is forked from it. Raises `Undeclared` for one that does not say whom it is for."""
    app = FastAPI(
        title="LoCAL2", version=installed_version(), openapi_url=None, redirect_slashes=False, telemetry=_NO_TELEMETRY
    )
    handle_errors(app)
    for noun in NOUNS:
        noun.add_routes(app.router)

    @app.get("/openapi.json", include_in_schema=False)
    @open_to(Access.USERS)
    async def description() -> Response:
        """All of it, for programs."""
        return JsonResponse(app.openapi())

    enforce(app.routes)
    return app


@cache
def installed_version() -> str:
    """The version of the package that runs; "unknown" where none is installed."""
    try:
        return version("local2")
    except PackageNotFoundError:
        return "unknown"
