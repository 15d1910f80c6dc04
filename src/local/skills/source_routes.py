"""The HTTP routes by which the owner edits a skill of their settings."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.core.errors import ConfigError
from local.core.versioned_text import BY_HAND
from local.skills.library import SkillProposalBook, SkillText
from local.tools.skill_folder import MOST_BYTES, read_skill

Name = Annotated[str, InPath(max_length=80)]


class SkillSourceBody(BaseModel):
    """The body of PUT /skills/{name}/source: all of SKILL.md."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_BYTES)]


def add_routes(routes: APIRouter) -> None:
    """The routes under /skills/{name}/source."""
    source = "/skills/{name}/source"
    routes.add_api_route(source, _show, methods=["GET"])
    routes.add_api_route(source, _write, methods=["PUT"], openapi_extra=takes(SkillSourceBody))


@open_to(Access.OWNER)
async def _show(name: Name) -> Response:
    """Get the SKILL.md of a skill in the owner's settings, with its header."""
    skill = await asyncio.to_thread(_own, name)
    return JsonResponse({"name": name, "text": await asyncio.to_thread(skill.text)})


@open_to(Access.TOKEN)
async def _write(name: Name, request: Request) -> Response:
    """Replace the SKILL.md of a skill in the owner's settings. The text before is kept as a version."""
    body = await read_body(request, SkillSourceBody)
    skill = await asyncio.to_thread(_own, name)
    try:
        read_skill(name, body.text.encode())
        await asyncio.to_thread(skill.become, body.text, BY_HAND)
    except ConfigError as error:
        raise RequestRefused("invalid", " ".join(str(error).split()), "text") from None
    return JsonResponse({"name": name, "text": body.text})


def _own(name: str) -> SkillText:
    try:
        return SkillProposalBook(api().layers[-1], api().data_dir).own(name)
    except ConfigError as error:
        raise RequestRefused("not_found", str(error)) from None
