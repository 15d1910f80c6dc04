"""Profiles, assistants of one kind each which a query may be asked with; and the soul, with its versions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, read_body, takes
from local.api.profiles import profiles_for
from local.api.security import Access, Caller, open_to
from local.api.versioned_texts import ProposalBody, RevertBody, decide, versions_of
from local.core.files import MOST_OF_OWNERS_TEXT
from local.core.profiles import ALIASES
from local.core.versioned_text import BY_HAND, Soul


def add_routes(routes: APIRouter) -> None:
    """GET /profiles, and the routes under /soul."""
    soul = _Soul()
    routes.add_api_route("/profiles", _profiles, methods=["GET"])
    routes.add_api_route("/soul", soul.show, methods=["GET"])
    routes.add_api_route("/soul", soul.write, methods=["PUT"], openapi_extra=takes(SoulBody))
    routes.add_api_route("/soul/proposal", soul.decide, methods=["POST"], openapi_extra=takes(ProposalBody))
    routes.add_api_route("/soul/revert", soul.revert, methods=["POST"], openapi_extra=takes(RevertBody))


@open_to(Access.USERS)
async def _profiles(caller: Caller) -> Response:
    """Every profile that a query may name, what each is for and may use, and a line for each that is no good. The owner
    also gets its instructions and limits."""
    found = await profiles_for(caller)
    listed = list[dict[str, Any]]()
    for profile in found.by_name.values():
        is_shown = caller.is_owner or profile.origin == "built in"
        limits = {"temperature": profile.temperature, "max_tokens": profile.max_tokens}
        listed.append({
            "name": profile.name,
            "description": profile.description,
            "tools": profile.tools,
            "model": profile.model,
            "origin": profile.origin if is_shown else "settings",
            "aliases": [alias for alias, name in ALIASES.items() if name == profile.name],
            **({"instructions": profile.instructions, **limits} if is_shown else {}),
        })  # fmt: skip
    return JsonResponse({"profiles": listed, "problems": found.problems})


def _short_enough(text: str) -> str:
    if len(text.encode()) > MOST_OF_OWNERS_TEXT:
        raise ValueError(f"expected at most {MOST_OF_OWNERS_TEXT} bytes; it stands in every prompt")
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
