"""The HTTP routes of dreams, goals and the inner monologue."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, PathId, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.journal.messages import JournalRead
from local.memory.messages import OWNER, MemoryRequest, MemoryResult
from local.reflection.messages import (
    DREAM,
    GoalRecord,
    GoalRequest,
    GoalResult,
    GoalVerb,
    MonologueThought,
    RoutineName,
    RoutineRecord,
    RoutineRequest,
    RoutineResult,
    RoutineVerb,
)

# Dreams: the notes on conversations, and the switch of the dreamer.


def add_dream_routes(routes: APIRouter) -> None:
    """The routes under /dreams."""

    @routes.get("/dreams")
    @open_to(Access.OWNER)
    async def listing() -> Response:
        """Get the dreamer's state and its valid dreams, the latest first."""
        state = await _routine("dreamer", "status")
        notes = (await api().ask("memory", MemoryRequest(verb="notes"), MemoryResult, user_id=OWNER)).engrams
        dreams = [
            {"engram_id": note.engram_id, "dream_id": note.note_of, "text": note.answer, "sources": note.recalled,
             "until": note.asked_at}
            for note in notes if note.query == DREAM
        ]  # fmt: skip
        return JsonResponse({**state.model_dump(), "dreams": dreams})

    @routes.post("/dreams/{verb}")
    @open_to(Access.OWNER)
    async def change(verb: Literal["now", "on", "off"]) -> Response:
        """Run the dreamer now, or switch it on or off."""
        state = await _routine("dreamer", verb)
        return JsonResponse(state)


CHANGES: dict[str, GoalVerb] = {"done": "done", "dropped": "drop", "active": "reopen"}


class GoalBody(BaseModel):
    """The body of POST /goals; `by` names the frontend. Without a schedule the goal is checked once a day."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: Annotated[str, StringConstraints(max_length=1000)]
    schedule: Annotated[str, StringConstraints(max_length=200)] = ""
    by: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] = "api"


class GoalChangeBody(BaseModel):
    """The body of PATCH /goals/{goal_id}: a new state, or in `seen` the time `words_at` of the remark that was read."""

    model_config = ConfigDict(extra="forbid", strict=True)
    state: Literal["done", "dropped", "active"] | None = None
    seen: float | None = None
    by: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] = "api"


def add_goal_routes(routes: APIRouter) -> None:
    """The routes under /goals."""
    routes.add_api_route("/goals", _listing, methods=["GET"])
    routes.add_api_route("/goals", _set, methods=["POST"], openapi_extra=takes(GoalBody))
    routes.add_api_route("/goals/{goal_id}", _change, methods=["PATCH"], openapi_extra=takes(GoalChangeBody))
    routes.add_api_route("/goals/{verb}", _switch, methods=["POST"])


@open_to(Access.OWNER)
async def _listing() -> Response:
    """Get the heartbeat's state and the goals, the oldest first."""
    state = await _routine("heartbeat", "status")
    found = await _goals("list")
    return JsonResponse({**state.model_dump(), "goals": found})


@open_to(Access.OWNER)
async def _set(request: Request) -> Response:
    """Set a goal. The status is 201."""
    body = await read_body(request, GoalBody)
    [goal] = await _goals("set", text=body.text, schedule=body.schedule, by=body.by)
    return JsonResponse(goal, 201)


@open_to(Access.OWNER)
async def _change(goal_id: PathId, request: Request) -> Response:
    """Mark a goal as done, dropped or active again, or its latest remark as read."""
    body = await read_body(request, GoalChangeBody)
    if body.state is not None:
        [goal] = await _goals(CHANGES[body.state], goal_id=goal_id, by=body.by)
    elif body.seen is not None:
        [goal] = await _goals("seen", goal_id=goal_id, words_at=body.seen)
    else:
        raise RequestRefused("invalid", "state or seen: one of them is required")
    return JsonResponse(goal)


@open_to(Access.OWNER)
async def _switch(verb: Literal["now", "on", "off"]) -> Response:
    """Check all goals now, or switch the heartbeat on or off."""
    return JsonResponse(await _routine("heartbeat", verb))


# The inner monologue: its thoughts, and its switch.

END = 2**62  # a number behind all messages
SHOWN = ("thought_id", "text", "sources", "left_out", "model")


def add_monologue_routes(routes: APIRouter) -> None:
    """The routes under /monologue."""

    @routes.get("/monologue")
    @open_to(Access.OWNER)
    async def listing(limit: Annotated[int, Query(ge=1, le=100)] = 20) -> Response:
        """Get the monologue's state and its recorded thoughts, the latest first."""
        state = await _routine("monologue", "status")
        return JsonResponse({**state.model_dump(), "thoughts": await _thoughts(limit)})

    @routes.post("/monologue/{verb}")
    @open_to(Access.OWNER)
    async def change(verb: Literal["now", "on", "off"]) -> Response:
        """Run the monologue now, or switch it on or off."""
        return JsonResponse(await _routine("monologue", verb))


async def _thoughts(limit: int) -> list[dict[str, Any]]:
    """Return the thoughts, without those based on deleted exchanges."""
    request, found = JournalRead(subjects=(MonologueThought.subject,), before=END, limit=limit), list[dict[str, Any]]()
    async for message in api().session.entries(request):
        payload = await api().session.payload(message)
        if payload is not None:
            found.append({**{name: payload.get(name) for name in SHOWN}, "at": message.entry.committed_at})
        if len(found) == limit:
            break
    return found


async def _routine(routine: RoutineName, verb: RoutineVerb) -> RoutineRecord:
    """Return the routine's state afterwards. After `now`, `why` is the reason why it did not run, empty if it did."""
    return (await api().ask("reflection", RoutineRequest(verb=verb, routine=routine), RoutineResult)).state


async def _goals(verb: GoalVerb, **fields: Any) -> tuple[GoalRecord, ...]:
    return (await api().ask("reflection", GoalRequest(verb=verb, **fields), GoalResult)).goals
