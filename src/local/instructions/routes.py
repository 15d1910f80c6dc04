"""Profiles, kinds of assistants that a query may be asked with; the soul with its versions; and trusted folders."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused, read_body, takes
from local.api.profiles import profiles_for
from local.api.security import Access, Caller, open_to
from local.api.versioned_texts import ProposalBody, RevertBody, decide, versions_of
from local.core.config import load_system
from local.core.environment import environment
from local.core.files import MOST_OF_OWNERS_TEXT
from local.core.profiles import ALIASES
from local.core.trust import (
    AGENTS,
    FILE,
    FOLDER,
    TrustRegistry,
    WorkspaceInstructions,
    WorkspaceProfiles,
    read_instructions,
    read_profiles,
)
from local.core.versioned_text import BY_HAND, Soul
from local.core.workspace import require_allowed


def add_routes(routes: APIRouter) -> None:
    """GET /profiles, and the routes under /soul and /trust."""
    soul, trust = _Soul(), _Trust()
    routes.add_api_route("/profiles", _profiles, methods=["GET"])
    routes.add_api_route("/soul", soul.show, methods=["GET"])
    routes.add_api_route("/soul", soul.write, methods=["PUT"], openapi_extra=takes(SoulBody))
    routes.add_api_route("/soul/proposal", soul.decide, methods=["POST"], openapi_extra=takes(ProposalBody))
    routes.add_api_route("/soul/revert", soul.revert, methods=["POST"], openapi_extra=takes(RevertBody))
    routes.add_api_route("/trust", trust.listing, methods=["GET"])
    routes.add_api_route("/trust", trust.trust, methods=["POST"], openapi_extra=takes(TrustBody))
    routes.add_api_route("/trust", trust.distrust, methods=["DELETE"])
    routes.add_api_route("/trust/contents", trust.contents, methods=["GET"])


@open_to(Access.USERS)
async def _profiles(caller: Caller) -> Response:
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


def _short_enough(text: str) -> str:
    if len(text.encode()) > MOST_OF_OWNERS_TEXT:
        raise ValueError(f"expected at most {MOST_OF_OWNERS_TEXT} bytes, because the text is part of every prompt")
    return text.strip()


class SoulBody(BaseModel):
    """The body of PUT /soul: the whole text."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Annotated[str, AfterValidator(_short_enough)]


class _Soul:
    @open_to(Access.OWNER)
    async def show(self) -> Response:
        """Get the soul: its file, its text, the proposed change of it, null if there is none, and its versions, the
        latest first."""
        return JsonResponse(await asyncio.to_thread(_soul_with_versions))

    @open_to(Access.TOKEN)
    async def write(self, request: Request) -> Response:
        """Change the soul from the next question on. The text before is kept as a version."""
        body = await read_body(request, SoulBody)
        await asyncio.to_thread(_soul().become, body.text, BY_HAND)
        return JsonResponse(await asyncio.to_thread(_soul_with_versions))

    @open_to(Access.TOKEN)
    async def decide(self, request: Request) -> Response:
        """Apply the proposed change of the soul, or discard it."""
        body = await read_body(request, ProposalBody)
        await asyncio.to_thread(decide, _soul(), body)
        return JsonResponse({"decision": body.decision})

    @open_to(Access.TOKEN)
    async def revert(self, request: Request) -> Response:
        """Restore an earlier version of the soul. The current text is kept as a version."""
        body = await read_body(request, RevertBody)
        await asyncio.to_thread(_soul().revert, body.version)
        return JsonResponse({"version": body.version})


def _soul() -> Soul:
    return Soul(api().layers[-1], api().data_dir)


def _soul_with_versions() -> dict[str, Any]:
    soul = _soul()
    return {"path": str(soul.path), "text": soul.text(), **versions_of(soul)}


# Trusted folders: what each instructs is shown first, and trusted as it was shown.

MOST_OF_PATH = 4000
InQuery = Annotated[str, Query(min_length=1, max_length=MOST_OF_PATH)]


class TrustBody(BaseModel):
    """The body of POST /trust: the folder, and the `digest` of its contents as GET /trust/contents showed them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    folder: str = Field(min_length=1, max_length=MOST_OF_PATH)
    digest: str = Field(max_length=200)


class _Trust:
    @open_to(Access.OWNER)
    async def listing(self) -> Response:
        """List the trusted folders, with why one of them may not instruct the assistant now, if so."""
        return JsonResponse({"folders": await asyncio.to_thread(_trusted)})

    @open_to(Access.OWNER)
    async def contents(self, folder: InQuery) -> Response:
        """Get what a folder would instruct the assistant to do if it were trusted, with its `digest`."""
        return JsonResponse(await asyncio.to_thread(_contents, _path(folder)))

    @open_to(Access.TOKEN)
    async def trust(self, request: Request) -> Response:
        """Trust a folder with what it instructs, as it was shown: its files count as the owner's."""
        body = await read_body(request, TrustBody)
        await asyncio.to_thread(_trust_as_shown, _path(body.folder), body.digest)
        return JsonResponse({"folder": body.folder, "trusted": True})

    @open_to(Access.TOKEN)
    async def distrust(self, folder: InQuery) -> Response:
        """Trust a folder no longer."""
        await asyncio.to_thread(_registry().distrust, _path(folder))
        return JsonResponse({"folder": folder, "trusted": False})


def _registry() -> TrustRegistry:
    return TrustRegistry(api().layers[-1])


def _path(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise RequestRefused(
            "invalid", f"folder: {text[:200]!r} is not a whole path, such as /home/ann/notes", "folder"
        )
    return path.resolve()


def _trusted() -> list[dict[str, Any]]:
    registry, rows = _registry(), list[dict[str, Any]]()
    for path, entry in registry.all().items():
        problem = registry.instructions(Path(path)).refused or registry.profiles(Path(path)).refused
        rows.append({"path": path, "trusted_at": entry.trusted_at, "problem": problem})
    return rows


def _read(folder: Path) -> tuple[WorkspaceInstructions, WorkspaceProfiles, str]:
    """What a folder instructs now, and the digest of all of it. Raises `ConfigError` for what cannot be a workspace."""
    require_allowed(folder, load_system(api().layers, {}, environment()), api().data_dir, api().layers)
    seen, profiles = read_instructions(folder), read_profiles(folder)
    return seen, profiles, f"{seen.digest}.{profiles.digest}"


def _contents(folder: Path) -> dict[str, Any]:
    seen, profiles, digest = _read(folder)
    files = [{"path": f"{FOLDER}/{FILE}", "text": seen.text}] if seen.text else []
    files += [{"path": f"{FOLDER}/{AGENTS}/{name}", "text": text} for name, text in profiles.files]
    return {"folder": str(folder), "files": files, "problem": seen.refused or profiles.refused, "digest": digest}


def _trust_as_shown(folder: Path, shown: str) -> None:
    seen, profiles, digest = _read(folder)
    if problem := seen.refused or profiles.refused:
        raise RequestRefused("conflict", problem)
    if digest != shown:
        raise RequestRefused("changed", f"what {folder} instructs has changed since it was shown; read it again")
    _registry().trust(folder, seen, profiles)
