"""Skills: which there are, what is wrong with the others, and what one says."""

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
        """Every skill with its status, and the folders in which they may lie."""
        found = await _ask(SkillRequest(verb="list"))
        return JsonResponse({"skills": found.skills, "places": found.places})

    @routes.get("/skills/{name}")
    @open_to(Access.OWNER)
    async def one(name: Name) -> Response:
        """One that is ready, with its text and the names of its files."""
        found = await _ask(SkillRequest(verb="show", name=name))
        return JsonResponse({**found.skills[0].model_dump(), "text": found.text, "files": found.files})


async def _ask(request: SkillRequest) -> SkillResult:
    return await api().ask("files", request, SkillResult, seconds=30.0)  # the tools for files hold the skills
