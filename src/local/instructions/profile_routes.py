"""The HTTP routes by which the owner reads, writes and removes profiles of their own."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.core.errors import ConfigError
from local.core.profiles import (
    EVERY_TOOL,
    MOST_TOOLS,
    AssistantProfile,
    Line,
    ModelName,
    Name,
    NoSuchProfile,
    ToolName,
)

PathName = Annotated[Name, InPath()]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=32_000)]


class ProfileBody(BaseModel):
    """The body of PUT /profiles/{name}: `tools` are those that it may have, or `["*"]` for all; with `shared` other
    users may choose it, too."""

    model_config = ConfigDict(extra="forbid", strict=True)
    description: Line
    tools: Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=MOST_TOOLS, strict=False)]
    model: ModelName | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    instructions: Text = ""
    shared: bool = False


def add_routes(routes: APIRouter) -> None:
    """The routes under /profiles/{name}."""
    one = "/profiles/{name}"
    routes.add_api_route(one, _show, methods=["GET"])
    routes.add_api_route(one, _write, methods=["PUT"], openapi_extra=takes(ProfileBody))
    routes.add_api_route(one, _remove, methods=["DELETE"])


@open_to(Access.OWNER)
async def _show(name: PathName) -> Response:
    """Get a profile with its instructions; `is_own` says whether it is in a file of the owner's settings."""
    try:
        profile = (await asyncio.to_thread(api().profiles.read)).find(name)
    except NoSuchProfile as error:
        raise RequestRefused("not_found", str(error)) from None
    is_own = await asyncio.to_thread(api().profiles.own, name) is not None
    return JsonResponse(_shown(profile, is_own=is_own))


@open_to(Access.TOKEN)
async def _write(name: PathName, request: Request) -> Response:
    """Store a profile of the owner's, in place of an earlier one. It counts from the next question on."""
    body = await read_body(request, ProfileBody)
    profile = AssistantProfile(
        name=name,
        description=body.description,
        tools=None if EVERY_TOOL in body.tools else body.tools,
        instructions=body.instructions,
        model=body.model,
        temperature=body.temperature,
        max_tokens=body.max_tokens,
        shared=body.shared,
    )
    try:
        written = await asyncio.to_thread(api().profiles.write, profile)
    except ConfigError as error:
        raise RequestRefused("invalid", " ".join(str(error).split())) from None
    return JsonResponse(_shown(written, is_own=True))


@open_to(Access.TOKEN)
async def _remove(name: PathName) -> Response:
    """Remove a profile of the owner's. A built-in one of the same name counts again."""
    try:
        await asyncio.to_thread(api().profiles.remove, name)
    except NoSuchProfile as error:
        raise RequestRefused("not_found", str(error)) from None
    return JsonResponse({"name": name, "removed": True})


def _shown(profile: AssistantProfile, *, is_own: bool) -> dict[str, object]:
    return {
        "name": profile.name,
        "description": profile.description,
        "tools": profile.tools,
        "model": profile.model,
        "temperature": profile.temperature,
        "max_tokens": profile.max_tokens,
        "instructions": profile.instructions,
        "origin": profile.origin,
        "is_own": is_own,
        "shared": profile.shared,
    }
