"""The HTTP route for users' ratings of answers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import Id, JsonResponse, read_body, takes
from local.api.security import Access, Caller, open_to
from local.bus.message import MAIN_RESPONDENT

MAX_COMMENT = 2_000


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):  # which Python takes for a number
        raise ValueError("expected 1, -1 or null")
    return value


class FeedbackBody(BaseModel):
    """The body of POST /feedback. The latest rating of an answer counts; null withdraws it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    query_id: Id
    rating: Annotated[Literal[-1, 1] | None, BeforeValidator(_no_boolean)]
    comment: Annotated[str, StringConstraints(max_length=MAX_COMMENT)] = ""
    respondent_id: Id = MAIN_RESPONDENT


def add_routes(routes: APIRouter) -> None:
    """POST /feedback."""

    @routes.post("/feedback", openapi_extra=takes(FeedbackBody))
    @open_to(Access.USERS)
    async def rate(request: Request, caller: Caller) -> Response:
        """Rate an answer. The status is 202 when the rating is recorded; other participants may receive it later."""
        given = await read_body(request, FeedbackBody)
        if not caller.is_owner:
            await api().queries.find(given.query_id, caller)
        await api().session.rate(given.query_id, given.rating, given.comment, given.respondent_id)
        return JsonResponse(given.model_dump(include={"query_id", "respondent_id", "rating"}), 202)
