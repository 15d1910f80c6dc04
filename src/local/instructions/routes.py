"""Profiles: assistants of one kind each, which a query may be asked with."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from local.api.http import JsonResponse
from local.api.profiles import profiles_for
from local.api.security import Access, Caller, open_to
from local.core.profiles import ALIASES


def add_routes(routes: APIRouter) -> None:
    """GET /profiles."""

    @routes.get("/profiles")
    @open_to(Access.USERS)
    async def listing(caller: Caller) -> Response:
        """The profiles that a query may name, each with its purpose and tools, and a line for each invalid one."""
        found = await profiles_for(caller)
        listed = [
            {
                "name": profile.name,
                "description": profile.description,
                "tools": profile.tools,
                "model": profile.model,
                "origin": profile.origin if caller.is_owner or profile.origin == "built in" else "settings",
                "aliases": [alias for alias, name in ALIASES.items() if name == profile.name],
            }
            for profile in found.by_name.values()
        ]
        return JsonResponse({"profiles": listed, "problems": found.problems})
