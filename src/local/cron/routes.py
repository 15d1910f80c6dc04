"""The routes of scheduled jobs: list, make, change, pause, resume, run and remove them, and see their runs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, PathId, read_body, takes
from local.api.security import Access, Caller, open_to
from local.core.errors import LocalError
from local.cron.messages import CronRequest, CronResult, CronVerb, NewJob

Limit = Annotated[int, Query(ge=1, le=500)]
Line = Annotated[str, Query(max_length=400)]


class JobBody(NewJob):
    """The body of POST /cron and of PUT /cron/{job_id}; `by` names the frontend."""

    model_config = ConfigDict(extra="forbid", strict=True)
    by: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")] = "api"


class JobChangeBody(BaseModel):
    """The body of PATCH /cron/{job_id}."""

    model_config = ConfigDict(extra="forbid", strict=True)
    enabled: bool


def add_routes(routes: APIRouter) -> None:
    """The routes under /cron."""
    jobs = _Jobs()
    routes.add_api_route("/cron", jobs.listing, methods=["GET"])
    routes.add_api_route("/cron/times", jobs.times, methods=["GET"])
    routes.add_api_route("/cron", jobs.add, methods=["POST"], openapi_extra=takes(JobBody))
    routes.add_api_route("/cron/{job_id}", jobs.replace, methods=["PUT"], openapi_extra=takes(JobBody))
    routes.add_api_route("/cron/{job_id}", jobs.change, methods=["PATCH"], openapi_extra=takes(JobChangeBody))
    routes.add_api_route("/cron/{job_id}", jobs.remove, methods=["DELETE"])
    routes.add_api_route("/cron/{job_id}/run", jobs.run, methods=["POST"])
    routes.add_api_route("/cron/{job_id}/runs", jobs.runs, methods=["GET"])


class _Jobs:
    @open_to(Access.USERS)
    async def listing(self, caller: Caller) -> Response:
        """List the jobs, the oldest first."""
        result = await _ask("list", caller.user_id)
        return JsonResponse({"jobs": result.jobs})

    @open_to(Access.USERS)
    async def times(self, caller: Caller, schedule: Line, time_zone: Line = "") -> Response:
        """Get the next times of a schedule, without creating a job. For a text that is no schedule, `problem` says what
        was expected.
        """
        order = NewJob(prompt="?", schedule=schedule, time_zone=time_zone or None)
        try:
            result = await _ask("preview", caller.user_id, order=order)
        except LocalError as error:
            if error.kind != "invalid":
                raise
            return JsonResponse({"times": [], "time_zone": "", "problem": str(error)})
        return JsonResponse({"times": result.times, "time_zone": result.time_zone, "problem": ""})

    @open_to(Access.USERS)
    async def add(self, request: Request, caller: Caller) -> Response:
        """Create a job. The status is 201. Its mode is `dontAsk` unless the body names one; a mode that allows more
        needs the owner token.
        """
        order, by = await _ordered(request, caller)
        result = await _ask("add", caller.user_id, order=order, by=by)
        return JsonResponse(result.jobs[0], 201)

    @open_to(Access.USERS)
    async def replace(self, job_id: PathId, request: Request, caller: Caller) -> Response:
        """Replace what a job asks, when and how, from now on; what the body leaves out gets its default, and its mode
        needs what that of a new job does. The runs stay.
        """
        order, by = await _ordered(request, caller)
        result = await _ask("change", caller.user_id, job_id=job_id, order=order, by=by)
        return JsonResponse(result.jobs[0])

    @open_to(Access.USERS)
    async def change(self, job_id: PathId, request: Request, caller: Caller) -> Response:
        """Pause a job, or resume it from now on."""
        body = await read_body(request, JobChangeBody)
        result = await _ask("resume" if body.enabled else "pause", caller.user_id, job_id=job_id)
        return JsonResponse(result.jobs[0])

    @open_to(Access.USERS)
    async def remove(self, job_id: PathId, caller: Caller) -> Response:
        """Remove a job and the list of its runs; the conversations stay."""
        await _ask("remove", caller.user_id, job_id=job_id)
        return JsonResponse({"job_id": job_id, "removed": True})

    @open_to(Access.USERS)
    async def run(self, job_id: PathId, caller: Caller) -> Response:
        """Run a job now, in addition to its schedule. The status is 202; the run's query_id can be followed."""
        result = await _ask("run", caller.user_id, job_id=job_id)
        return JsonResponse(result.runs[0], 202)

    @open_to(Access.USERS)
    async def runs(self, job_id: PathId, caller: Caller, limit: Limit = 100) -> Response:
        """List the runs of a job, the latest first."""
        result = await _ask("history", caller.user_id, job_id=job_id, limit=limit)
        return JsonResponse({"job_id": job_id, "runs": result.runs})


async def _ordered(request: Request, caller: Caller) -> tuple[NewJob, str]:
    """The order in a body, with a mode that the caller may choose, and the frontend that it names."""
    body = await read_body(request, JobBody)
    mode = api().mode_of(body.mode, caller, is_followed=False)
    return NewJob(**body.model_dump(exclude={"by", "mode"}), mode=mode), body.by


async def _ask(verb: CronVerb, of_user: str | None, **fields: Any) -> CronResult:
    return await api().ask("cron", CronRequest(verb=verb, of_user=of_user, **fields), CronResult)
