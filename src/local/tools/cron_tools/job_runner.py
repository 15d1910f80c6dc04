"""Sees one run of a job through: asked until it is on record, followed to its end, stored and told at each step."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from local import failpoints
from local.backoff import Backoff
from local.errors import LocalError
from local.protocol.answer_options import AnswerOptions
from local.protocol.cron_messages import CronRun, CronRunRecord
from local.protocol.envelope import Trace
from local.protocol.query_origin import SCHEDULE
from local.queries.asker import Asker
from local.queries.errors import AskerStopping, QueryDeleted, QueryRefused
from local.runtime.participant import Publications
from local.services.schedules.job import OPEN, Job, JobRun, RunState
from local.services.schedules.job_store import JobStore
from local.tools.cron_tools.publisher import Publisher

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LONGEST_SECONDS = 24 * 3600  # for which a run is tried to be asked, where its job has no next time
_BUSY, _CANCELLED = "busy", "cancelled"  # kinds of `QueryRefused`
_NAMESPACE = uuid.UUID("d5f0a4f1-2f0b-4a5c-8a3e-0b7b6f4a1c55")


class JobRunner:
    """Runs what is due. What is stored comes before what is said, and a run that an earlier process has begun is begun
    again under the same query_id: it is one query. `clock` gives seconds since 1970. Raises as the store does, and
    `AskerStopping`."""

    publishes: ClassVar[Publications] = (Asker, CronRun)

    def __init__(self, bus: Publisher, asker: Asker, store: JobStore, clock: Callable[[], float]) -> None:
        self._bus, self._asker, self._store, self._clock = bus, asker, store, clock

    async def see_through(self, job: Job, run: JobRun) -> JobRun:
        """Until it is over."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while run.state in OPEN:
            failpoints.reach("cron.decided")
            try:
                run = await self._ask(job, run)
            except _Again as again:
                run = await self._again(job, run, again)
                if run.state in OPEN:
                    await asyncio.sleep(backoff.next())
        return run

    async def tell(self, job: Job, run: JobRun) -> None:
        """Say how a run stands, under an id that is always the same, so that what is said again is said once."""
        message = CronRun(name=job.name, run=run_record(run))
        envelope_id = uuid.uuid5(_NAMESPACE, f"{run.query_id}\n{run.state}").hex
        trace = Trace(run.query_id, None, job.session_id or run.query_id, job.user_id)
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=math.inf)
        await self._store.run_told(run)

    async def _ask(self, job: Job, run: JobRun) -> JobRun:
        try:
            query = self._asker.ask(
                job.prompt,
                query_id=run.query_id,
                session_id=job.session_id,
                user_id=job.user_id,
                options=AnswerOptions.model_validate({"mode": job.mode}),
                origin=SCHEDULE,
                tainted=job.tainted,
            )
        except QueryRefused as error:  # too many are open, here
            raise _Again(error) from None
        try:
            await query.accepted()
            failpoints.reach("cron.asked")
            if run.state is RunState.DUE:
                run = await self._keep(job, replace(run, state=RunState.ASKED))
            response = await query.outcome()
        except QueryDeleted as error:
            return await self._end(job, run, RunState.FAILED, str(error))
        except QueryRefused as error:
            return await self._refused(job, run, error)
        except AskerStopping:
            raise
        except LocalError as error:
            raise _Again(error) from None
        failpoints.reach("cron.answered")
        tokens = response.usage.prompt_tokens + response.usage.completion_tokens
        detail = response.error.message if response.error is not None else run.detail
        return await self._end(job, replace(run, tokens=tokens), RunState(response.status), detail)

    async def _refused(self, job: Job, run: JobRun, error: QueryRefused) -> JobRun:
        """Its query has ended without a turn."""
        if error.kind == _BUSY:
            raise _Again(error, is_over=True)
        return await self._end(job, run, RunState(_CANCELLED if error.kind == _CANCELLED else "failed"), str(error))

    async def _again(self, job: Job, run: JobRun, again: _Again) -> JobRun:
        """What becomes of a run that could not be asked now: it is tried again until its job is due next."""
        if again.is_over:
            run = replace(run, state=RunState.DUE, attempt=run.attempt + 1)
            await self._store.keep(run)
        begun_at = math.floor(run.begun_at)
        until = (None if run.by_hand else job.times.after(begun_at)) or begun_at + LONGEST_SECONDS
        if run.state is RunState.DUE and self._clock() >= until:
            return await self._end(job, run, RunState.REFUSED, str(again.error))
        return run

    async def _end(self, job: Job, run: JobRun, state: RunState, detail: str) -> JobRun:
        return await self._keep(job, replace(run, state=state, detail=detail, ended_at=self._clock()))

    async def _keep(self, job: Job, run: JobRun) -> JobRun:
        await self._store.keep(run)
        failpoints.reach("cron.kept")
        await self.tell(job, run)
        return run


class _Again(Exception):
    """A run is to be tried again; `is_over` if under a new query_id."""

    def __init__(self, error: LocalError, *, is_over: bool = False) -> None:
        super().__init__(str(error))
        self.error, self.is_over = error, is_over


def run_record(run: JobRun) -> CronRunRecord:
    """A run as everybody knows it."""
    return CronRunRecord(
        job_id=run.job_id, run_id=run.run_id, scheduled_at=run.scheduled_at, query_id=run.query_id,
        state=run.state.value, by_hand=run.by_hand, detail=run.detail, tokens=run.tokens, ended_at=run.ended_at,
    )  # fmt: skip
