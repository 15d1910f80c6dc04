"""Goals: what the owner wants to get to, and whether they are checked."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import PathId, api
from local.apps.api.errors import RequestRefused
from local.apps.api.json_body import JsonResponse, read_body, takes
from local.protocol.goal_messages import GoalVerb

CHANGES: dict[str, GoalVerb] = {"done": "done", "dropped": "drop", "active": "reopen"}


class GoalBody(BaseModel):
    """The body of POST /goals; `by` names the door. Without a schedule the goal is checked once a day."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Annotated[str, StringConstraints(max_length=1000)]
    schedule: Annotated[str, StringConstraints(max_length=200)] = ""
    by: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] = "api"


class GoalChangeBody(BaseModel):
    """The body of PATCH /goals/{goal_id}: a new state, or the time `words_at` of words that were seen."""

    model_config = ConfigDict(extra="forbid", strict=True)
    state: Literal["done", "dropped", "active"] | None = None
    seen: float | None = None
    by: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] = "api"


def add_routes(routes: APIRouter) -> None:
    """The routes under /goals."""
    routes.add_api_route("/goals", _listing, methods=["GET"])
    routes.add_api_route("/goals", _set, methods=["POST"], openapi_extra=takes(GoalBody))
    routes.add_api_route("/goals/{goal_id}", _change, methods=["PATCH"], openapi_extra=takes(GoalChangeBody))
    routes.add_api_route("/goals/{verb}", _switch, methods=["POST"])


@open_to(Access.OWNER)
async def _listing() -> Response:
    """How the heartbeat is, and the goals, the oldest first."""
    state = await api().reflections.ask("heartbeat", "status")
    found = await api().goals.ask("list")
    return JsonResponse({**state.model_dump(), "goals": found})


@open_to(Access.OWNER)
async def _set(request: Request) -> Response:
    """Set a goal: 201."""
    body = await read_body(request, GoalBody)
    [goal] = await api().goals.ask("set", text=body.text, schedule=body.schedule, by=body.by)
    return JsonResponse(goal, 201)


@open_to(Access.OWNER)
async def _change(goal_id: PathId, request: Request) -> Response:
    """A goal is done, dropped or active again; or what was said of it is seen."""
    body = await read_body(request, GoalChangeBody)
    if body.state is not None:
        [goal] = await api().goals.ask(CHANGES[body.state], goal_id=goal_id, by=body.by)
    elif body.seen is not None:
        [goal] = await api().goals.ask("seen", goal_id=goal_id, words_at=body.seen)
    else:
        raise RequestRefused("invalid", "state or seen: one of them is to be there")
    return JsonResponse(goal)


@open_to(Access.OWNER)
async def _switch(verb: Literal["now", "on", "off"]) -> Response:
    """Have every goal checked now, or switch the heartbeat."""
    return JsonResponse(await api().reflections.ask("heartbeat", verb))
