"""Jobs that are done at set times: the tools for them, what doors ask of them, and the clock that begins them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from local.errors import LocalError
from local.protocol.cron_messages import CronRequest, CronResult
from local.protocol.envelope import Envelope
from local.protocol.messages import ErrorInfo, Message, QueryFailed, ResponseGeneration, ToolRequest
from local.queries.asker import Asker
from local.runtime.participant import Resources, on
from local.services.schedules.job_store import StoredJob
from local.tools.cron_tools.cron_add_tool import ID_CHARACTERS, CronAddTool
from local.tools.cron_tools.cron_config import CronConfig
from local.tools.cron_tools.cron_list_tool import CronListTool
from local.tools.cron_tools.cron_remove_tool import CronRemoveTool
from local.tools.cron_tools.cron_scheduler import CronScheduler
from local.tools.cron_tools.cron_tool import CronTool
from local.tools.cron_tools.job_order import BadJob, JobMaker
from local.tools.cron_tools.job_runner import run_record
from local.tools.tool import Tool
from local.tools.tool_group import ToolGroup

AT_ONCE = 8
OF_JOBS = (CronListTool, CronRemoveTool)
ENDS = (ResponseGeneration, QueryFailed)  # of runs, which nobody follows here
STATES: Any = {"pause": "paused", "resume": "active"}


class Cron(ToolGroup):
    """Asks at set times what it was told to ask; the generator answers, as it answers people."""

    name = "cron"
    Config = CronConfig
    publishes = (CronScheduler,)
    tools = (CronListTool, CronAddTool, CronRemoveTool)

    def __init__(self, config: CronConfig, tools: Sequence[Tool], scheduler: CronScheduler) -> None:
        super().__init__(config, tools)
        self._scheduler, self._has_had_jobs = scheduler, False

    @classmethod
    def build(cls, config: CronConfig, resources: Resources) -> Cron:
        """With the jobs in the data directory."""
        scheduler = CronScheduler.of(resources.data_dir, config)
        kinds: tuple[type[CronTool], ...] = (CronListTool, CronAddTool, CronRemoveTool)
        return cls(config, [kind(config, scheduler) for kind in kinds], scheduler).with_records(resources)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Look at the clock, beside what every group does."""
        async with super().lifespan(), Asker(self.bus, hears=ENDS) as asker:
            await self.bus.ready()
            async with self._scheduler.running(self.bus, asker):
                yield

    def offered(self) -> Iterable[Tool]:
        """What lists and removes jobs once there has been one: each schema is a part of every prompt."""
        self._has_had_jobs = self._has_had_jobs or bool(self._scheduler.book.listed())
        return [tool for tool in self._tools.values() if self._has_had_jobs or not isinstance(tool, OF_JOBS)]

    async def call(self, request: ToolRequest, envelope: Envelope) -> Message | None:
        """One call of one of the tools; before the first job is told of, it is told what can be done with it."""
        result = await super().call(request, envelope)
        await self._offer_more()
        return result

    async def _offer_more(self) -> None:
        if not self._has_had_jobs and len(list(self.offered())) == len(self._tools):
            await self.announce()

    def figures(self) -> dict[str, int]:
        """How many jobs there are, and how many of them have a run under way."""
        return {"jobs": len(self._scheduler.book.listed()), "jobs_running": self._scheduler.busy}

    @on(CronRequest, concurrency=AT_ONCE)
    async def answer(self, request: CronRequest, envelope: Envelope) -> CronResult:
        """A door asks for jobs, or wants something done with one."""
        try:
            return await self._answer(request, envelope)
        except LocalError as failure:
            return CronResult(verb=request.verb, error=ErrorInfo.of(failure))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What a model or a door is told of what went wrong."""
        if isinstance(message, CronRequest):
            return CronResult(verb=message.verb, error=ErrorInfo(kind="internal", message=str(error)))
        return super().error_reply(message, error)

    async def _answer(self, request: CronRequest, envelope: Envelope) -> CronResult:
        scheduler, verb = self._scheduler, request.verb
        if verb == "list":
            return self._told(verb, scheduler.book.listed(request.of_user))
        if verb == "add":
            return self._told(verb, [await self._add(request, envelope)])
        stored = scheduler.book.get(request.job_id, request.of_user)
        if verb == "run":
            return self._told(verb, [stored], [await scheduler.run_now(stored)])
        if verb == "history":
            return self._told(verb, [stored], await scheduler.history(request.job_id, request.limit))
        if verb == "remove":
            stored = await scheduler.remove(request.job_id, request.of_user)
        else:
            stored = await scheduler.book.put(request.job_id, request.of_user, STATES[verb])
        scheduler.wake()
        return self._told(verb, [stored])

    async def _add(self, request: CronRequest, envelope: Envelope) -> StoredJob:
        if request.order is None:
            raise BadJob("order: is missing; expected prompt and schedule")
        job_id = uuid.UUID(envelope.id).hex[:ID_CHARACTERS]  # the same for a request that comes again
        stored = await self._scheduler.book.add(request.order, JobMaker(job_id, request.of_user, request.by))
        self._scheduler.wake()
        await self._offer_more()
        return stored

    def _told(self, verb: str, jobs: Sequence[StoredJob], runs: Sequence[Any] = ()) -> CronResult:
        records = tuple(self._scheduler.book.record(stored) for stored in jobs)
        return CronResult(verb=verb, jobs=records, runs=tuple(map(run_record, runs)))
