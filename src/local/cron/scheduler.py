"""Runs scheduled jobs: each run is asked as a query, exactly once.

A run is stored before it is asked, under a query_id that follows from its job and its time. So after a crash the next
process asks it again under the same id, and the journal keeps one query. Everything that was due up to a job's
`decided` is decided in one transaction with its runs; a clock that is put back makes times come again that are stored
already. What is published has ids that follow from its content, too, so that publishing twice is publishing once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Protocol, Self

from pydantic import Field

from local.bus.envelope import Trace
from local.bus.message import Message
from local.bus.messages import AnswerOptions
from local.bus.vocabulary import SCHEDULE
from local.core import failpoints
from local.core.config import Settings
from local.core.errors import BadRequest, LocalError
from local.core.files import Backoff, until_next_tick, write_private
from local.core.schedule import BadSchedule, require_future, time_zone, zone_of_this_machine
from local.cron.messages import CronJobChanged, CronJobRecord, CronRun, CronRunRecord, NewJob
from local.cron.store import (
    FILE_NAME,
    OPEN,
    JobProgress,
    JobRun,
    JobState,
    JobStore,
    RunState,
    StoredJob,
    day_begins,
    due_runs,
    next_due,
    times_of,
)
from local.memory.messages import OWNER
from local.queries.asker import Asker
from local.queries.errors import AskerStopping, QueryDeleted, QueryRefused
from local.runtime.participant import Publications


class CronConfig(Settings):
    """`cron.yaml`; the comments there say what each key means."""

    time_zone: str = ""
    max_jobs: int = Field(100, ge=0, le=1000)
    max_runs_a_day: int = Field(100, ge=1, le=1440)
    max_tokens_a_day: int | None = Field(None, ge=1)
    all_tokens_a_day: int | None = Field(None, ge=1)


# An order becomes a job, or is refused in one line.

MOST_CHARACTERS = 20_000
NAME_CHARACTERS = 80
MOST_RUNS = 1440
_SESSION = re.compile(r"[A-Za-z0-9._:~-]{1,128}")


class BadJob(BadRequest):
    """The error for an order of a job that cannot be run."""

    kind = "invalid"


@dataclass(frozen=True, slots=True)
class JobMaker:
    """The origin and id of a new job: the user, the frontend or model, and whether the conversation was `tainted`."""

    job_id: str
    user_id: str | None = None
    by: str = ""
    tainted: bool = False


def job_of(order: NewJob, maker: JobMaker, config: CronConfig, zone: str, now: float) -> CronJobRecord:
    """The job that is made of an order, with the defaults of the settings. Raises `BadJob`, `BadSchedule`."""
    _require_bounds(order)
    settled = {
        "name": _name(order),
        "schedule": " ".join(order.schedule.split()),
        "time_zone": order.time_zone or zone,
        "mode": order.mode or "dontAsk",
        "max_runs_a_day": order.max_runs_a_day or config.max_runs_a_day,
        "max_tokens_a_day": order.max_tokens_a_day or config.max_tokens_a_day,
    }
    made = {"job_id": maker.job_id, "user_id": maker.user_id, "created_by": maker.by, "tainted": maker.tainted}
    job = CronJobRecord.model_validate({**order.model_dump(), **settled, **made, "created_at": int(now)})
    time_zone(job.time_zone)
    require_future(times_of(job), now)
    return job


def _require_bounds(order: NewJob) -> None:
    if not order.prompt.strip():
        raise BadJob("prompt: is blank; expected a question or task")
    if len(order.prompt) > MOST_CHARACTERS:
        raise BadJob(f"prompt: has {len(order.prompt)} characters; expected {MOST_CHARACTERS} at most")
    if order.session_id is not None and not _SESSION.fullmatch(order.session_id):
        raise BadJob("session_id: expected up to 128 letters, digits and any of ._:~-")
    if order.max_runs_a_day is not None and not 1 <= order.max_runs_a_day <= MOST_RUNS:
        raise BadJob(f"max_runs_a_day: expected 1 to {MOST_RUNS}, found {order.max_runs_a_day}")
    if order.max_tokens_a_day is not None and order.max_tokens_a_day < 1:
        raise BadJob(f"max_tokens_a_day: expected 1 at least, found {order.max_tokens_a_day}")


def _name(order: NewJob) -> str:
    """The name in one line; without one, the beginning of the prompt."""
    return " ".join((order.name.strip() or order.prompt).split())[:NAME_CHARACTERS]


# What jobs need of a bus.


class Publisher(Protocol):
    """A participant's bus, as far as jobs need it."""

    async def publish(
        self, message: Message, trace: Trace, *, envelope_id: str | None = None, seconds: float = 30.0
    ) -> object:
        """Publish a message; return when it is recorded if its kind is confirmed."""


# The jobs: made, paused and removed, stored first and then published.

log = logging.getLogger(__name__)

PROJECTION = "cron.json"
PREVIEWED = 3  # times of a job that is not made yet
_NAMESPACE = uuid.UUID("7a3f2f5e-58a1-4a0e-9a63-5d8f6c1f0b19")


class NoSuchJob(BadRequest):
    """The error for an id that no job of this user has."""

    kind = "not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id[:80]!a}")


class JobRegistry:
    """The registry of all jobs, in memory. Every change is stored before it takes effect. `clock` gives seconds since
    1970, `zone` is the default time zone. Every coroutine raises as the store does.
    """

    publishes: ClassVar[Publications] = (CronJobChanged,)

    def __init__(
        self, store: JobStore, config: CronConfig, zone: str, folder: Path, clock: Callable[[], float]
    ) -> None:
        self._store, self._config, self._zone, self._clock = store, config, zone, clock
        self._file = folder / PROJECTION
        self._jobs: dict[str, StoredJob] = {}
        self._projecting = asyncio.Lock()
        self._bus: Publisher

    async def load(self, bus: Publisher) -> None:
        """Read the stored jobs."""
        self._bus = bus
        self._jobs = {stored.job.job_id: stored for stored in await self._store.jobs()}

    async def publish_pending(self) -> None:
        """Publish what an earlier process could not publish any more."""
        for stored in list(self._jobs.values()):
            if not stored.is_published:
                await self._publish(stored)
        await self._project()

    def active(self) -> Iterator[StoredJob]:
        """The jobs that run at their times."""
        return (stored for stored in self._jobs.values() if stored.state == "active")

    def listed(self, of_user: str | None = None) -> list[StoredJob]:
        """The jobs of a user, or all of them, the oldest first."""
        return [stored for stored in self._jobs.values() if _is_of(stored, of_user) and stored.state != "removed"]

    def get(self, job_id: str, of_user: str | None = None) -> StoredJob:
        """Return a job of that user, or of any. Raises `NoSuchJob`."""
        stored = self._jobs.get(job_id)
        if stored is None or stored.state == "removed" or not _is_of(stored, of_user):
            raise NoSuchJob(job_id)
        return stored

    async def add(self, order: NewJob, maker: JobMaker) -> StoredJob:
        """Make a job; the same id again is the same job. Raises `BadJob`, `BadSchedule`."""
        if maker.job_id in self._jobs:
            return self._jobs[maker.job_id]
        job = job_of(order, maker, self._config, self._zone, self._clock())
        if len(self.listed(maker.user_id or OWNER)) >= self._config.max_jobs:
            raise BadJob(f"there are {self._config.max_jobs} jobs already, which is max_jobs in cron.yaml: remove one")
        await self._store.add(job)
        return await self._changed(StoredJob(job, "active", int(job.created_at), is_published=False))

    async def change(self, job_id: str, of_user: str | None, order: NewJob) -> StoredJob:
        """Replace what a job asks, when and how, from now on; its runs and its maker stay, and so does its taint.
        Raises `NoSuchJob`, `BadJob`, `BadSchedule`."""
        stored = self.get(job_id, of_user)
        made = stored.job
        maker = JobMaker(job_id, made.user_id, made.created_by, made.tainted)
        job = job_of(order, maker, self._config, self._zone, self._clock())
        decided = int(job.created_at)
        await self._store.replace(job, decided)
        return await self._changed(replace(stored, job=job, decided=decided, is_published=False))

    def preview(self, order: NewJob) -> tuple[str, list[int]]:
        """Return the time zone of a job that would be made now, and its next times. Raises `BadJob`, `BadSchedule`."""
        job = job_of(order, JobMaker(""), self._config, self._zone, self._clock())
        times = [require_future(times_of(job), self._clock())]
        while len(times) < PREVIEWED and (following := times_of(job).after(times[-1])) is not None:
            times.append(following)
        return job.time_zone, times

    async def set_state(self, job_id: str, of_user: str | None, state: JobState) -> StoredJob:
        """Pause a job, resume it from now on, or remove it. Raises `NoSuchJob`."""
        stored = self.get(job_id, of_user)
        if stored.state == state:
            return stored
        decided = int(self._clock()) if state == "active" else stored.decided
        await self._store.change(job_id, state, decided)
        return await self._changed(replace(stored, state=state, decided=decided, is_published=False))

    def decided(self, job_id: str, until: int) -> None:
        """Store the decision on the due runs of a job."""
        if job_id in self._jobs:
            self._jobs[job_id] = replace(self._jobs[job_id], decided=until)

    def record(self, stored: StoredJob) -> CronJobRecord:
        """Return the job as shown, with its present state."""
        now = {"enabled": stored.state == "active", "next_at": self._next_at(stored)}
        return stored.job.model_copy(update=now)

    def _next_at(self, stored: StoredJob) -> float | None:
        """Return when the job is due; None if its schedule is no longer valid, for example because its time zone was
        removed.
        """
        if stored.state != "active":
            return None
        try:
            return times_of(stored.job).after(max(stored.decided, int(self._clock())))
        except BadSchedule:
            return None

    async def _changed(self, stored: StoredJob) -> StoredJob:
        self._jobs[stored.job.job_id] = stored
        await self._publish(stored)
        await self._project()
        return stored

    async def _publish(self, stored: StoredJob) -> None:
        """Publish a change under an id that is always the same for it, so that publishing again changes nothing."""
        job = stored.job
        message = CronJobChanged(what=stored.state, job=self.record(stored))
        body = job.model_dump_json()
        envelope_id = uuid.uuid5(_NAMESPACE, f"{job.job_id}\n{stored.state}\n{stored.decided}\n{body}").hex
        trace = Trace(job.job_id, None, job.session_id, job.user_id)
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=math.inf)
        await self._store.job_published(job.job_id, stored.state)
        if stored.state == "removed":
            self._jobs.pop(job.job_id, None)
        elif job.job_id in self._jobs:
            self._jobs[job.job_id] = replace(self._jobs[job.job_id], is_published=True)

    async def _project(self) -> None:
        """Write the jobs down for people to read; no program reads that file."""
        async with self._projecting:
            jobs = [_readable(self.record(stored)) for stored in self.listed()]
            text = json.dumps(jobs, indent=2, ensure_ascii=False)
            try:
                await asyncio.to_thread(write_private, self._file, f"{text}\n")
            except OSError as error:
                log.warning("%s cannot be written: %s", self._file, error)


def _is_of(stored: StoredJob, of_user: str | None) -> bool:
    return of_user is None or (stored.job.user_id or OWNER) == of_user


def _readable(record: CronJobRecord) -> dict[str, object]:
    try:
        zone = time_zone(record.time_zone)
    except BadSchedule:
        zone = time_zone("UTC")

    def at(moment: float | None) -> str | None:
        return None if moment is None else datetime.fromtimestamp(moment, zone).isoformat()

    return {**record.model_dump(), "created_at": at(record.created_at), "next_at": at(record.next_at)}


# One run of a job from its query to its end, stored and published at each step.

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LONGEST_SECONDS = 24 * 3600  # for which a run is tried to be asked, where its job has no next time
_BUSY, _CANCELLED = "busy", "cancelled"  # kinds of `QueryRefused`
_JOB_RUNNER_NAMESPACE = uuid.UUID("d5f0a4f1-2f0b-4a5c-8a3e-0b7b6f4a1c55")


class JobRunner:
    """The executor of due runs. It stores before it publishes, and continues a run of an earlier process under the
    same query_id, so that it is one query. `clock` gives seconds since 1970. Raises as the store does, and
    `AskerStopping`.
    """

    publishes: ClassVar[Publications] = (Asker, CronRun)

    def __init__(self, bus: Publisher, asker: Asker, store: JobStore, clock: Callable[[], float]) -> None:
        self._bus, self._asker, self._store, self._clock = bus, asker, store, clock

    async def run_to_end(self, job: CronJobRecord, run: JobRun) -> JobRun:
        """Ask the run and follow it until it has ended."""
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

    async def publish_run(self, job: CronJobRecord, run: JobRun) -> None:
        """Publish the state of a run under an id that is always the same for it, so that publishing again changes
        nothing."""
        message = CronRun(name=job.name, run=run_record(run))
        envelope_id = uuid.uuid5(_JOB_RUNNER_NAMESPACE, f"{run.query_id}\n{run.state}").hex
        trace = Trace(run.query_id, None, job.session_id or run.query_id, job.user_id)
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=math.inf)
        await self._store.run_published(run)

    async def _ask(self, job: CronJobRecord, run: JobRun) -> JobRun:
        try:
            query = self._asker.ask(
                job.prompt,
                query_id=run.query_id,
                session_id=job.session_id,
                user_id=job.user_id,
                options=AnswerOptions.model_validate({"mode": job.mode}),
                origin=SCHEDULE,
                tainted=job.tainted,
                job_id=job.job_id,
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

    async def _refused(self, job: CronJobRecord, run: JobRun, error: QueryRefused) -> JobRun:
        """The query has ended without a turn."""
        if error.kind == _BUSY:
            raise _Again(error, is_over=True)
        return await self._end(job, run, RunState(_CANCELLED if error.kind == _CANCELLED else "failed"), str(error))

    async def _again(self, job: CronJobRecord, run: JobRun, again: _Again) -> JobRun:
        """Decide about a run that could not be asked now: it is tried again until its job is due next."""
        if again.is_over:
            run = replace(run, state=RunState.DUE, attempt=run.attempt + 1)
            await self._store.keep(run)
        begun_at = math.floor(run.begun_at)
        until = (None if run.by_hand else times_of(job).after(begun_at)) or begun_at + LONGEST_SECONDS
        if run.state is RunState.DUE and self._clock() >= until:
            return await self._end(job, run, RunState.REFUSED, str(again.error))
        return run

    async def _end(self, job: CronJobRecord, run: JobRun, state: RunState, detail: str) -> JobRun:
        return await self._keep(job, replace(run, state=state, detail=detail, ended_at=self._clock()))

    async def _keep(self, job: CronJobRecord, run: JobRun) -> JobRun:
        await self._store.keep(run)
        failpoints.reach("cron.kept")
        await self.publish_run(job, run)
        return run


class _Again(Exception):
    """The signal that a run is to be tried again; with `is_over` under a new query_id."""

    def __init__(self, error: LocalError, *, is_over: bool = False) -> None:
        super().__init__(str(error))
        self.error, self.is_over = error, is_over


def run_record(run: JobRun) -> CronRunRecord:
    """Return a run in the form that is shown."""
    shown = {**asdict(run), "state": run.state.value, "run_id": run.run_id, "query_id": run.query_id}
    return CronRunRecord.model_validate(shown)


LOOK_SECONDS = 5.0  # between two looks at the clock: it may have been set, or the machine may have slept
RETRY_SECONDS = 30.0  # after something could not be stored


class CronScheduler:
    """The scheduler that starts due runs; use as `async with scheduler.running(bus, asker)`. A job has at most one
    open run. It sleeps while there are no jobs. `clock` gives seconds since 1970.
    """

    publishes: ClassVar[Publications] = (JobRegistry, JobRunner)

    def __init__(
        self,
        store: JobStore,
        registry: JobRegistry,
        clock: Callable[[], float] = time.time,
        all_tokens_a_day: int | None = None,
    ) -> None:
        self.registry, self._store, self._clock = registry, store, clock
        self._all_tokens_a_day = all_tokens_a_day
        self._next: dict[str, int | None] = {}  # when each active job is due next
        self._latest: dict[str, asyncio.Task[None]] = {}  # of each job that has runs under way
        self._under_way: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._runner: JobRunner

    @classmethod
    def of(cls, folder: Path, config: CronConfig) -> Self:
        """Return the scheduler on the file in the data directory."""
        store = JobStore(folder / FILE_NAME)
        registry = JobRegistry(store, config, config.time_zone or zone_of_this_machine(), folder, time.time)
        return cls(store, registry, time.time, config.all_tokens_a_day)

    @asynccontextmanager
    async def running(self, bus: Publisher, asker: Asker) -> AsyncIterator[None]:
        """Continue what an earlier process has begun, and watch the clock while the block lasts."""
        async with self._store:
            self._runner = JobRunner(bus, asker, self._store, self._clock)
            await self.registry.load(bus)
            looking = asyncio.create_task(self._run(), name="cron")
            try:
                yield
            finally:
                tasks = [looking, *self._under_way]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self) -> None:
        """Look at the jobs at once, because something has changed."""
        self._next.clear()
        self._changed.set()

    @property
    def busy(self) -> int:
        """The number of jobs with an open run."""
        return len(self._latest)

    async def history(self, job_id: str, limit: int) -> list[JobRun]:
        """The runs of a job, the latest first. Raises as the store does."""
        return await self._store.history(job_id, limit)

    async def run_now(self, stored: StoredJob) -> JobRun:
        """Begin a run by hand, at once or after the one that is under way. Raises as the store does."""
        now = self._clock()
        run = JobRun(stored.job.job_id, int(now), by_hand=True, begun_at=now)
        await self._store.keep(run)
        self._begin(stored, [run])
        return run

    async def remove(self, job_id: str, of_user: str | None) -> StoredJob:
        """Remove a job; a recorded query of it continues. Raises `NoSuchJob`, and as the store does."""
        self.registry.get(job_id, of_user)
        while task := self._latest.pop(job_id, None):
            task.cancel()
            await asyncio.wait({task})
        return await self.registry.set_state(job_id, of_user, "removed")

    async def look(self) -> None:
        """Store the runs that are due now, and begin them."""
        for stored in list(self.registry.active()):
            job_id = stored.job.job_id
            try:
                if job_id not in self._latest:
                    await self._look_at(stored, int(self._clock()))
            except LocalError as error:
                log.error("the job %s cannot be done now: %s", stored.job.name, error)
                self._next[job_id] = int(self._clock() + RETRY_SECONDS)

    async def _look_at(self, stored: StoredJob, now: int) -> None:
        job, decided = stored.job, stored.decided
        if job.job_id not in self._next:
            self._next[job.job_id] = next_due(job, JobProgress(decided))
        due_at = self._next[job.job_id]
        if now >= decided and (due_at is None or due_at > now):
            return
        since = day_begins(job, now)
        runs, tokens = await self._store.spent(job.job_id, since)
        progress = JobProgress(
            decided, runs_today=runs, tokens_today=tokens, spent_by_all=await self._spent_by_all(since)
        )
        due = due_runs(job, progress, now)
        if due is not None:
            fresh = await self._store.decide(job.job_id, due, self._clock())
            self.registry.decided(job.job_id, due.decided)
            decided = due.decided
            self._begin(stored, fresh)
        self._next[job.job_id] = next_due(job, JobProgress(decided))

    async def _spent_by_all(self, since: int) -> str:
        most = self._all_tokens_a_day
        if most is None or (spent := await self._store.spent_by_all(since)) < most:
            return ""
        return f"the budget of all jobs is spent: {spent} of {most} tokens a day"

    def _begin(self, stored: StoredJob, runs: Sequence[JobRun]) -> None:
        if runs:
            job_id = stored.job.job_id
            work = self._see_through(stored, runs, self._latest.get(job_id))
            task = self._latest[job_id] = asyncio.create_task(work, name=f"job {job_id}")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _see_through(self, stored: StoredJob, runs: Sequence[JobRun], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        try:
            for run in runs:
                await self._see_one_through(stored, run)
        except AskerStopping:
            return  # the next process continues it
        if self._latest.get(stored.job.job_id) is asyncio.current_task():
            del self._latest[stored.job.job_id]
        self.wake()

    async def _see_one_through(self, stored: StoredJob, run: JobRun) -> None:
        while True:
            try:
                if run.state in OPEN:
                    await self._runner.run_to_end(stored.job, run)
                else:
                    await self._runner.publish_run(stored.job, run)
                return
            except AskerStopping:
                raise
            except LocalError as error:
                log.error("the job %s: %s; tried again", stored.job.name, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _run(self) -> None:
        await self._go_on()
        while True:
            self._changed.clear()
            await self.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._until_next_look()):
                    await self._changed.wait()

    async def _go_on(self) -> None:
        """Continue what an earlier process has left."""
        while True:
            try:
                await self.registry.publish_pending()
                runs = [*await self._store.unpublished_runs(), *await self._store.open_runs()]
                break
            except LocalError as error:
                log.error("runs of an earlier process cannot be continued now: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
        known = {stored.job.job_id: stored for stored in self.registry.listed()}
        by_job = sorted(dict.fromkeys(runs), key=lambda run: (run.job_id, run.scheduled_at))
        for job_id, of_job in groupby(by_job, key=lambda run: run.job_id):
            if job_id in known:
                self._begin(known[job_id], list(of_job))

    def _until_next_look(self) -> float | None:
        """Seconds; None where there is nothing to look for."""
        times = [due for due in self._next.values() if due is not None]
        if not times:
            return None
        tick = until_next_tick(asyncio.get_running_loop().time(), LOOK_SECONDS)
        return max(0.0, min(min(times) - self._clock(), tick))
