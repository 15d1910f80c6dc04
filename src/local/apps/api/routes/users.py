"""Who may use this system besides its owner."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import Id, PathId, api
from local.apps.api.json_body import JsonResponse, read_body, takes

ONCE = {"cache-control": "no-store"}


class UserBody(BaseModel):
    """The body of POST /users."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Id


def add_routes(routes: APIRouter) -> None:
    """The routes under /users. A program that runs as the owner's Unix user is not the owner here."""

    @routes.get("/users")
    @open_to(Access.TOKEN)
    async def listing() -> Response:
        """Every user, without the tokens."""
        known = await asyncio.to_thread(api().users.all)
        return JsonResponse({"users": [{"name": name, "added_at": user.added_at} for name, user in known.items()]})

    @routes.post("/users", openapi_extra=takes(UserBody))
    @open_to(Access.TOKEN)
    async def add(request: Request) -> Response:
        """Give somebody a token, which is told now and never again."""
        name = (await read_body(request, UserBody)).name
        token = await asyncio.to_thread(api().users.add, name)
        return JsonResponse({"name": name, "token": token}, 201, ONCE)

    @routes.delete("/users/{name}")
    @open_to(Access.TOKEN)
    async def remove(name: PathId) -> Response:
        """Take it back. What the user has asked stays."""
        await asyncio.to_thread(api().users.remove, name)
        return JsonResponse({"name": name, "removed": True})
