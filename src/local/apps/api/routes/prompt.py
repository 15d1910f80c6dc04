"""What the model is told before a question."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import api
from local.apps.api.json_body import JsonResponse
from local.apps.api.principals import Caller
from local.apps.api.query_profiles import profile_of, with_profile
from local.protocol.answer_options import AnswerOptions
from local.protocol.safety import Mode


def add_routes(routes: APIRouter) -> None:
    """GET /prompt."""

    @routes.get("/prompt")
    @open_to(Access.OWNER)
    async def show(
        caller: Caller, mode: Annotated[Mode | None, Query()] = None, profile: Annotated[str | None, Query()] = None
    ) -> Response:
        """The system prompt of the owner's queries, section by section, with where each is from and what it costs."""
        options = AnswerOptions(mode=mode)
        if profile is not None:
            options = with_profile(options, await profile_of(profile, caller))
        return JsonResponse(await api().session.look_up("prompt", options=options))
