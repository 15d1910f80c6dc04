"""The HTTP routes of skills: list them with their problems, and read one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse
from local.api.security import Access, open_to
from local.skills.messages import SkillRequest, SkillResult

Name = Annotated[str, Path(max_length=80)]


def add_routes(routes: APIRouter) -> None:
    """The routes under /skills."""

    @routes.get("/skills")
    @open_to(Access.OWNER)
    async def listing() -> Response:
        """List all skills with their status, and the folders that are searched for skills."""
        found = await _ask(SkillRequest(verb="list"))
        return JsonResponse({"skills": found.skills, "places": found.places})

    @routes.get("/skills/{name}")
    @open_to(Access.OWNER)
    async def one(name: Name) -> Response:
        """Get one usable skill with its text and the names of its files."""
        found = await _ask(SkillRequest(verb="show", name=name))
        return JsonResponse({**found.skills[0].model_dump(), "text": found.text, "files": found.files})


async def _ask(request: SkillRequest) -> SkillResult:
    return await api().ask("files", request, SkillResult, seconds=30.0)  # the tools for files hold the skills
