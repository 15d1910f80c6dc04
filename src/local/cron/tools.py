"""The participant `cron`: tools for scheduled jobs, and the answers to frontends' requests about them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import QueryFailed, ResponseGeneration, ToolRequest
from local.core.errors import LocalError, ToolError
from local.core.schedule import time_zone
from local.cron.messages import CronJobRecord, CronRequest, CronResult, NewJob
from local.cron.scheduler import BadJob, CronConfig, CronScheduler, JobMaker, run_record
from local.cron.store import StoredJob
from local.memory.messages import OWNER
from local.queries.asker import Asker
from local.runtime.participant import Resources, on
from local.tools.group import ToolGroup
from local.tools.tool import Tool, ToolOutput


class CronTool(Tool):
    """Base class of the tools for the jobs of the user who asks."""

    trusted = True  # a result that shows a tainted job is marked
    category = "meta"

    def __init__(self, config: CronConfig, scheduler: CronScheduler) -> None:
        super().__init__(config)
        self._scheduler = scheduler


class CronListTool(CronTool):
    """List the user's scheduled jobs: what is asked, when, and when next."""

    name = "cron_list"
    safety = "L0"

    async def run(self) -> ToolOutput:
        """A line for each."""
        registry = self._scheduler.registry
        jobs = [registry.record(stored) for stored in registry.listed(self.asked_by().user_id or OWNER)]
        text = "\n".join(map(job_line, jobs)) or "There are no scheduled jobs."
        return ToolOutput(text, tainted=any(job.tainted for job in jobs))


def job_line(job: CronJobRecord) -> str:
    """A job in one line, for a model."""
    when = f"{job.schedule} ({job.time_zone})"
    return f"{job.job_id}: {job.name!r}, {when}, {_next(job)}: {' '.join(job.prompt.split())[:300]}"


def _next(job: CronJobRecord) -> str:
    if not job.enabled:
        return "paused"
    if job.next_at is None:
        return "over"
    return f"next {datetime.fromtimestamp(job.next_at, time_zone(job.time_zone)):%A, %Y-%m-%d %H:%M}"


ID_CHARACTERS = 12


class CronAddTool(CronTool):
    """Have a question or task put to you at set times, also when the user is away. Only if the user asks for it."""

    name = "cron_add"
    effect = "write"
    safety = "L2"

    async def run(
        self,
        prompt: Annotated[
            str, Field(max_length=20_000, description="The question or task, understandable without this conversation")
        ],
        schedule: Annotated[
            str, "'0 9 * * 1-5' (cron: minute hour day month weekday), 'at 2026-12-24T18:00', 'in 10m' or 'every 30m'"
        ],
        name: Annotated[str, "What the job is called"] = "",
        time_zone: Annotated[str, "Such as Europe/Berlin; empty is the user's"] = "",
        answer_in: Annotated[Literal["own", "here"], "A conversation of its own each time, or this one"] = "own",
    ) -> str:
        """The job, and when it runs first."""
        trace, request = self.asked_by(), self.request()
        order = NewJob(
            prompt=prompt, schedule=schedule, name=name, time_zone=time_zone or None,
            session_id=(trace.session_id or request.query_id) if answer_in == "here" else None,
        )  # fmt: skip
        job_id = hashlib.sha256(request.call_id.encode()).hexdigest()[:ID_CHARACTERS]
        maker = JobMaker(job_id, trace.user_id, by=f"{self.name} {request.call_id}", tainted=request.tainted)
        try:
            stored = await self._scheduler.registry.add(order, maker)
        except LocalError as error:
            raise ToolError(str(error), kind=error.kind) from None
        self._scheduler.wake()
        return f"The job is made. {job_line(self._scheduler.registry.record(stored))}"


class CronRemoveTool(CronTool):
    """Remove one of the user's scheduled jobs permanently."""

    name = "cron_remove"
    effect = "write"
    safety = "L2"

    async def run(self, job_id: Annotated[str, "The id that cron_list shows"]) -> ToolOutput:
        """That the job is gone."""
        try:
            stored = await self._scheduler.remove(job_id, self.asked_by().user_id or OWNER)
        except LocalError as error:
            raise ToolError(str(error), kind=error.kind) from None
        return ToolOutput(f"The job {stored.job.name!r} is removed.", tainted=stored.job.tainted)


AT_ONCE = 8
OF_JOBS = (CronListTool, CronRemoveTool)
ENDS = (ResponseGeneration, QueryFailed)  # of runs: nothing else of a query is needed
STATES: Any = {"pause": "paused", "resume": "active"}


class Cron(ToolGroup):
    """The participant that asks the questions of scheduled jobs; the generator answers them like a person's
    questions."""

    name = "cron"
    Config = CronConfig
    publishes = (CronScheduler,)
    tools = (CronListTool, CronAddTool, CronRemoveTool)

    def __init__(self, config: CronConfig, tools: Sequence[Tool], scheduler: CronScheduler) -> None:
        super().__init__(config, tools)
        self._scheduler, self._has_had_jobs = scheduler, False

    @classmethod
    def build(cls, config: CronConfig, resources: Resources) -> Cron:
        """Build the participant with the jobs in the data directory."""
        scheduler = CronScheduler.of(resources.data_dir, config)
        kinds: tuple[type[CronTool], ...] = (CronListTool, CronAddTool, CronRemoveTool)
        return cls(config, [kind(config, scheduler) for kind in kinds], scheduler).with_records(resources)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Watch the clock while the tools are served."""
        async with super().lifespan(), Asker(self.bus, hears=ENDS) as asker:
            await self.bus.ready()
            async with self._scheduler.running(self.bus, asker):
                yield

    def offered(self) -> Iterable[Tool]:
        """The tools; those that list and remove jobs once there has been one, as each schema takes room in every
        prompt."""
        self._has_had_jobs = self._has_had_jobs or bool(self._scheduler.registry.listed())
        return [tool for tool in self._tools.values() if self._has_had_jobs or not isinstance(tool, OF_JOBS)]

    async def call(self, request: ToolRequest, envelope: Envelope) -> Message | None:
        """Answer one call; after the first job was made, offer the other tools, too."""
        result = await super().call(request, envelope)
        await self._offer_more()
        return result

    async def _offer_more(self) -> None:
        if not self._has_had_jobs and len(list(self.offered())) == len(self._tools):
            await self.announce()

    def metrics(self) -> dict[str, int]:
        """Return the number of jobs, and of open runs."""
        return {"jobs": len(self._scheduler.registry.listed()), "jobs_running": self._scheduler.busy}

    @on(CronRequest, concurrency=AT_ONCE)
    async def answer(self, request: CronRequest, envelope: Envelope) -> CronResult:
        """Answer a frontend's request about jobs."""
        try:
            return await self._answer(request, envelope)
        except LocalError as failure:
            return CronResult(verb=request.verb, error=ErrorInfo.of(failure))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """The reply for a request that failed unexpectedly."""
        if isinstance(message, CronRequest):
            return CronResult(verb=message.verb, error=ErrorInfo(kind="internal", message=str(error)))
        return super().error_reply(message, error)

    async def _answer(self, request: CronRequest, envelope: Envelope) -> CronResult:
        scheduler, verb = self._scheduler, request.verb
        if verb == "list":
            return self._result(verb, scheduler.registry.listed(request.of_user))
        if verb == "preview":
            zone, times = scheduler.registry.preview(_ordered(request))
            return CronResult(verb=verb, times=tuple(times), time_zone=zone)
        if verb == "add":
            return self._result(verb, [await self._add(request, envelope)])
        stored = scheduler.registry.get(request.job_id, request.of_user)
        if verb == "run":
            return self._result(verb, [stored], [await scheduler.run_now(stored)])
        if verb == "history":
            return self._result(verb, [stored], await scheduler.history(request.job_id, request.limit))
        if verb == "remove":
            stored = await scheduler.remove(request.job_id, request.of_user)
        elif verb == "change":
            stored = await scheduler.registry.change(request.job_id, request.of_user, _ordered(request))
        else:
            stored = await scheduler.registry.set_state(request.job_id, request.of_user, STATES[verb])
        scheduler.wake()
        return self._result(verb, [stored])

    async def _add(self, request: CronRequest, envelope: Envelope) -> StoredJob:
        job_id = uuid.UUID(envelope.id).hex[:ID_CHARACTERS]  # the same for a request that comes again
        stored = await self._scheduler.registry.add(_ordered(request), JobMaker(job_id, request.of_user, request.by))
        self._scheduler.wake()
        await self._offer_more()
        return stored

    def _result(self, verb: str, jobs: Sequence[StoredJob], runs: Sequence[Any] = ()) -> CronResult:
        records = tuple(self._scheduler.registry.record(stored) for stored in jobs)
        return CronResult(verb=verb, jobs=records, runs=tuple(map(run_record, runs)))


def _ordered(request: CronRequest) -> NewJob:
    if request.order is None:
        raise BadJob("order: is missing; expected prompt and schedule")
    return request.order
