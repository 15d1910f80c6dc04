"""The HTTP routes of skills: list, read and create them, approve those of others, and decide about proposed changes.
The tools that a skill brings are approved at the routes of `mcp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.api.versioned_texts import ProposalBody, RevertBody, decide, versions_of
from local.core.errors import ConfigError, ToolError
from local.core.versioned_text import TextProposals, VersionedText
from local.skills import tools as skills
from local.skills.messages import SkillRecord, SkillRequest, SkillResult
from local.tools.skill_folder import digest_of

Name = Annotated[str, InPath(max_length=80)]
Folder = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
MOST_SHOWN = 200_000  # bytes of one file that is to be approved
T = TypeVar("T")


class SkillBody(BaseModel):
    """The body of POST /skills: a new skill in the owner's settings, to be edited there."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    description: Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class SkillApprovalBody(BaseModel):
    """The body of POST /skills/{name}/approve: the folder, and the `digest` of the content that was shown."""

    model_config = ConfigDict(extra="forbid", strict=True)
    folder: Folder
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def add_routes(routes: APIRouter) -> None:
    """The routes under /skills."""
    skill, one = _Skills(), "/skills/{name}"
    routes.add_api_route("/skills", skill.listing, methods=["GET"])
    routes.add_api_route("/skills", skill.new, methods=["POST"], openapi_extra=takes(SkillBody))
    routes.add_api_route(one, skill.show, methods=["GET"])
    routes.add_api_route(f"{one}/contents", skill.contents, methods=["GET"])
    routes.add_api_route(f"{one}/approve", skill.approve, methods=["POST"], openapi_extra=takes(SkillApprovalBody))
    routes.add_api_route(f"{one}/proposal", skill.proposal, methods=["GET"])
    routes.add_api_route(f"{one}/proposal", skill.decide, methods=["POST"], openapi_extra=takes(ProposalBody))
    routes.add_api_route(f"{one}/revert", skill.revert, methods=["POST"], openapi_extra=takes(RevertBody))


class _Skills:
    @open_to(Access.OWNER)
    async def listing(self) -> Response:
        """List all skills with their status, the folders that are searched for skills, and the names of skills of which
        a change is `proposed` now, or was ever (`versioned`).
        """
        found = await _ask(SkillRequest(verb="list"))
        texts = await _done(skills.skill_texts, *_folders())
        proposed = await asyncio.to_thread(lambda: [_name(each) for each in texts if _is_proposed(each)])
        names = {"proposed": proposed, "versioned": [_name(each) for each in texts]}
        return JsonResponse({"skills": found.skills, "places": found.places, **names})

    @open_to(Access.TOKEN)
    async def new(self, request: Request) -> Response:
        """Create a skill to edit in the owner's settings. The status is 201."""
        body = await read_body(request, SkillBody)
        file = await _done(skills.new_skill, _folders()[0], body.name, body.description)
        return JsonResponse({"name": body.name, "file": str(file)}, 201)

    @open_to(Access.OWNER)
    async def show(self, name: Name) -> Response:
        """Get one usable skill with its text and the names of its files."""
        found = await _ask(SkillRequest(verb="show", name=name))
        return JsonResponse({**found.skills[0].model_dump(), "text": found.text, "files": found.files})

    @open_to(Access.OWNER)
    async def contents(self, name: Name, folder: Annotated[str, Query(max_length=4000)]) -> Response:
        """Get everything that is approved with a skill that others may have written, with its `digest`."""
        await _listed(name, folder)
        found = await _done(skills.to_approve, Path(folder))
        files = [{"path": path, "bytes": len(text), "text": _text(text)} for path, text in sorted(found.items())]
        return JsonResponse({"name": name, "folder": folder, "digest": digest_of(found), "files": files})

    @open_to(Access.TOKEN)
    async def approve(self, name: Name, request: Request) -> Response:
        """Approve a skill as it was shown. After a change it must be approved again."""
        body = await read_body(request, SkillApprovalBody)
        await _listed(name, body.folder)
        found = await _done(skills.to_approve, Path(body.folder))
        if digest_of(found) != body.digest:
            raise RequestRefused("changed", "the skill has changed since it was shown; review it again")
        await _done(skills.approve, _folders()[0], Path(body.folder), found)
        return JsonResponse({"name": name, "approved": True})

    @open_to(Access.OWNER)
    async def proposal(self, name: Name) -> Response:
        """Get the proposed change of a skill, null if there is none, and the skill's versions, the latest first."""
        return JsonResponse(await _done(_proposal, *_folders(), name))

    @open_to(Access.TOKEN)
    async def decide(self, name: Name, request: Request) -> Response:
        """Apply a proposed change of a skill, or discard it."""
        body = await read_body(request, ProposalBody)
        await _done(decide, await _done(skills.skill_text, *_folders(), name), body)
        return JsonResponse({"name": name, "decision": body.decision})

    @open_to(Access.TOKEN)
    async def revert(self, name: Name, request: Request) -> Response:
        """Restore an earlier version of a skill. The current text is kept as a version."""
        body = await read_body(request, RevertBody)
        skill = await _done(skills.skill_text, *_folders(), name)
        await _done(skill.revert, body.version)
        return JsonResponse({"name": name, "version": body.version})


async def _ask(request: SkillRequest) -> SkillResult:
    return await api().ask("files", request, SkillResult, seconds=30.0)  # the tools for files hold the skills


async def _listed(name: str, folder: str) -> SkillRecord:
    """Return a skill that is in one of the searched folders, so that no other folder is read. Raises
    `RequestRefused`.
    """
    found = await _ask(SkillRequest(verb="list"))
    for skill in found.skills:
        if (skill.name, skill.folder) == (name, folder):
            return skill
    raise RequestRefused("not_found", f"there is no skill {name[:80]!r} in that folder")


async def _done(work: Callable[..., T], *arguments: Any) -> T:
    try:
        return await asyncio.to_thread(work, *arguments)
    except ToolError as error:
        raise RequestRefused("conflict", str(error)) from None


def _folders() -> tuple[Path, Path]:
    """Return the owner's folder of settings, and the data directory."""
    return api().layers[-1], api().data_dir


def _text(content: bytes) -> str | None:
    """Return the content as text; None if it is none, or too large to show."""
    try:
        return content.decode("utf-8") if len(content) <= MOST_SHOWN else None
    except UnicodeDecodeError:
        return None


def _name(skill: VersionedText) -> str:
    return skill.path.parent.name


def _is_proposed(skill: VersionedText) -> bool:
    try:
        return TextProposals(skill).waiting() is not None
    except ConfigError:  # a damaged file: the request for the proposal reports it
        return True


def _proposal(settings: Path, data_dir: Path, name: str) -> dict[str, Any]:
    return {"name": name, **versions_of(skills.skill_text(settings, data_dir, name))}
