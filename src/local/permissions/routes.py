"""HTTP routes of approvals: pending ones, people's decisions, and the grants of conversations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, read_body, takes
from local.api.security import Access, Caller, open_to
from local.bus.messages import PlanMode
from local.bus.vocabulary import ELEVATED_MODES
from local.permissions.messages import Decision, PermissionRequest, PermissionResult, PermissionVerb

CallId = Annotated[str, Path(pattern=r"^[A-Za-z0-9._:~-]{1,160}$")]


class DecisionBody(BaseModel):
    """The body of POST /approvals/{call_id}. `answer` is for a question of the model, or a comment on a plan; `mode` is
    how the rest runs once a plan is approved; `by` names the frontend.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    decision: Decision
    answer: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    mode: PlanMode | None = None
    by: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] = "api"


def add_routes(routes: APIRouter) -> None:
    """The routes under /approvals."""
    approvals = _Approvals()
    body = takes(DecisionBody)
    routes.add_api_route("/approvals", approvals.listing, methods=["GET"])
    routes.add_api_route("/approvals/remembered", approvals.remembered, methods=["GET"])
    routes.add_api_route("/approvals/remembered/{grant_id}", approvals.take_back, methods=["DELETE"])
    routes.add_api_route("/approvals/{call_id}", approvals.decide, methods=["POST"], openapi_extra=body)


class _Approvals:
    @open_to(Access.USERS)
    async def listing(self, caller: Caller) -> Response:
        """The pending approvals, the oldest first."""
        result = await _ask("list", caller.user_id)
        return JsonResponse({"approvals": result.waiting})

    @open_to(Access.USERS)
    async def decide(self, call_id: CallId, request: Request, caller: Caller) -> Response:
        """Allow a call, once or for its conversation, or deny it; or answer the model. The first decision counts: 409
        for any other. Approving requires a token."""
        body = await read_body(request, DecisionBody)
        if body.decision != "deny":
            caller.require_token()
        if body.mode in ELEVATED_MODES:
            caller.require_owner()
        told = body.model_dump(include={"decision", "answer", "by", "mode"})
        await _ask("decide", caller.user_id, call_id=call_id, **told)
        return JsonResponse({"call_id": call_id, "decision": body.decision})

    @open_to(Access.USERS)
    async def remembered(self, caller: Caller) -> Response:
        """The grants of conversations."""
        result = await _ask("remembered", caller.user_id)
        return JsonResponse({"remembered": result.remembered})

    @open_to(Access.USERS)
    async def take_back(self, grant_id: int, caller: Caller) -> Response:
        """Take that back: the next such call asks again."""
        await _ask("forget", caller.user_id, grant_id=grant_id)
        return JsonResponse({"grant_id": grant_id, "forgotten": True})


async def _ask(verb: PermissionVerb, of_user: str | None, **fields: Any) -> PermissionResult:
    return await api().ask("gatekeeper", PermissionRequest(verb=verb, of_user=of_user, **fields), PermissionResult)
