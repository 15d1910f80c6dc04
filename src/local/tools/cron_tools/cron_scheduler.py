"""Looks at the clock, and has every job done that is due."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Self

from local.errors import LocalError
from local.queries.asker import Asker
from local.queries.errors import AskerStopping
from local.runtime.participant import Publications
from local.services.schedules.due import JobProgress, due_runs, next_due
from local.services.schedules.job import OPEN, JobRun
from local.services.schedules.job_store import FILE_NAME, JobStore, StoredJob
from local.services.schedules.time_zone import zone_of_this_machine
from local.tick import until_next_tick
from local.tools.cron_tools.cron_config import CronConfig
from local.tools.cron_tools.job_book import JobBook
from local.tools.cron_tools.job_runner import JobRunner
from local.tools.cron_tools.publisher import Publisher

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0  # at which the clock on the wall is looked at: it may have been put forward, or the machine slept
RETRY_SECONDS = 30.0  # after something could not be stored


class CronScheduler:
    """Use as `async with scheduler.running(bus, asker)`. At most one run of a job is under way. Without jobs it sleeps.
    `clock` gives seconds since 1970."""

    publishes: ClassVar[Publications] = (JobBook, JobRunner)

    def __init__(
        self,
        store: JobStore,
        book: JobBook,
        clock: Callable[[], float] = time.time,
        all_tokens_a_day: int | None = None,
    ) -> None:
        self.book, self._store, self._clock = book, store, clock
        self._all_tokens_a_day = all_tokens_a_day
        self._next: dict[str, int | None] = {}  # when each active job is due next
        self._latest: dict[str, asyncio.Task[None]] = {}  # of each job that has runs under way
        self._under_way: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._runner: JobRunner

    @classmethod
    def of(cls, folder: Path, config: CronConfig) -> Self:
        """On the file in the data directory."""
        store = JobStore(folder / FILE_NAME)
        book = JobBook(store, config, config.time_zone or zone_of_this_machine(), folder, time.time)
        return cls(store, book, time.time, config.all_tokens_a_day)

    @asynccontextmanager
    async def running(self, bus: Publisher, asker: Asker) -> AsyncIterator[None]:
        """Go on with what an earlier process has begun, and look at the clock for as long as the block lasts."""
        async with self._store:
            self._runner = JobRunner(bus, asker, self._store, self._clock)
            await self.book.load(bus)
            looking = asyncio.create_task(self._run(), name="cron")
            try:
                yield
            finally:
                tasks = [looking, *self._under_way]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self) -> None:
        """Something has changed: look at once."""
        self._next.clear()
        self._changed.set()

    @property
    def busy(self) -> int:
        """How many jobs have a run under way."""
        return len(self._latest)

    async def history(self, job_id: str, limit: int) -> list[JobRun]:
        """The runs of a job, the latest first. Raises as the store does."""
        return await self._store.history(job_id, limit)

    async def run_now(self, stored: StoredJob) -> JobRun:
        """A run by hand, at once, or when the one that is under way is over. Raises as the store does."""
        now = self._clock()
        run = JobRun(stored.job.job_id, int(now), by_hand=True, begun_at=now)
        await self._store.keep(run)
        self._begin(stored, [run])
        return run

    async def remove(self, job_id: str, of_user: str | None) -> StoredJob:
        """A job is done no more; what of it is on record goes on. Raises `NoSuchJob`, and as the store does."""
        self.book.get(job_id, of_user)
        while task := self._latest.pop(job_id, None):
            task.cancel()
            await asyncio.wait({task})
        return await self.book.put(job_id, of_user, "removed")

    async def look(self) -> None:
        """Store what is due now, and begin it."""
        for stored in list(self.book.active()):
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
        since = job.day_begins(now)
        runs, tokens = await self._store.spent(job.job_id, since)
        progress = JobProgress(
            decided, runs_today=runs, tokens_today=tokens, spent_by_all=await self._spent_by_all(since)
        )
        due = due_runs(job, progress, now)
        if due is not None:
            fresh = await self._store.decide(job.job_id, due, self._clock())
            self.book.decided(job.job_id, due.decided)
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
            return  # the next process goes on with it
        if self._latest.get(stored.job.job_id) is asyncio.current_task():
            del self._latest[stored.job.job_id]
        self.wake()

    async def _see_one_through(self, stored: StoredJob, run: JobRun) -> None:
        while True:
            try:
                if run.state in OPEN:
                    await self._runner.see_through(stored.job, run)
                else:
                    await self._runner.tell(stored.job, run)
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
        """Begin what an earlier process has left."""
        while True:
            try:
                await self.book.tell_untold()
                runs = [*await self._store.untold_runs(), *await self._store.open_runs()]
                break
            except LocalError as error:
                log.error("what was begun cannot be gone on with: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
        known = {stored.job.job_id: stored for stored in self.book.listed()}
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
