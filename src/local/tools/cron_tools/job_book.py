"""The jobs there are: made, paused and removed, on record first, and told to everybody."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from local.errors import BadRequest
from local.private_file import write_private
from local.protocol.cron_messages import CronJobChanged, CronJobRecord, CronOrder
from local.protocol.envelope import Trace
from local.protocol.memory_messages import OWNER
from local.runtime.participant import Publications
from local.services.schedules.job_store import JobState, JobStore, StoredJob
from local.services.schedules.schedule import BadSchedule
from local.services.schedules.time_zone import time_zone
from local.tools.cron_tools.cron_config import CronConfig
from local.tools.cron_tools.job_order import BadJob, JobMaker, job_of
from local.tools.cron_tools.publisher import Publisher

log = logging.getLogger(__name__)

PROJECTION = "cron.json"
_NAMESPACE = uuid.UUID("7a3f2f5e-58a1-4a0e-9a63-5d8f6c1f0b19")


class NoSuchJob(BadRequest):
    """There is no such job, or it is another user's."""

    kind = "not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id[:80]!a}")


class JobBook:
    """Every change is stored before it counts. `clock` gives seconds since 1970, `zone` the name of the time zone of
    jobs that name none. Every coroutine raises as the store does."""

    publishes: ClassVar[Publications] = (CronJobChanged,)

    def __init__(
        self, store: JobStore, config: CronConfig, zone: str, folder: Path, clock: Callable[[], float]
    ) -> None:
        self._store, self._config, self._zone, self._clock = store, config, zone, clock
        self._file = folder / PROJECTION
        self._jobs: dict[str, StoredJob] = {}
        self._bus: Publisher

    async def load(self, bus: Publisher) -> None:
        """Read what is on record."""
        self._bus = bus
        self._jobs = {stored.job.job_id: stored for stored in await self._store.jobs()}

    async def tell_untold(self) -> None:
        """Tell what an earlier process has not told any more."""
        for stored in list(self._jobs.values()):
            if not stored.is_told:
                await self._tell(stored)
        await self._project()

    def active(self) -> Iterator[StoredJob]:
        """The jobs that run at their times."""
        return (stored for stored in self._jobs.values() if stored.state == "active")

    def listed(self, of_user: str | None = None) -> list[StoredJob]:
        """The jobs of a user, or all of them, the oldest first."""
        return [stored for stored in self._jobs.values() if _is_of(stored, of_user) and stored.state != "removed"]

    def get(self, job_id: str, of_user: str | None = None) -> StoredJob:
        """A job of a user's, or anybody's. Raises `NoSuchJob`."""
        stored = self._jobs.get(job_id)
        if stored is None or stored.state == "removed" or not _is_of(stored, of_user):
            raise NoSuchJob(job_id)
        return stored

    async def add(self, order: CronOrder, maker: JobMaker) -> StoredJob:
        """A new job; the same id again is the same job. Raises `BadJob`, `BadSchedule`."""
        if maker.job_id in self._jobs:
            return self._jobs[maker.job_id]
        job = job_of(order, maker, self._config, self._zone, self._clock())
        if len(self.listed(maker.user_id or OWNER)) >= self._config.max_jobs:
            raise BadJob(f"there are {self._config.max_jobs} jobs already, which is max_jobs in cron.yaml: remove one")
        await self._store.add(job)
        return await self._changed(StoredJob(job, "active", job.created_at, is_told=False))

    async def put(self, job_id: str, of_user: str | None, state: JobState) -> StoredJob:
        """Pause a job, have it go on, from now on, or remove it. Raises `NoSuchJob`."""
        stored = self.get(job_id, of_user)
        if stored.state == state:
            return stored
        decided = int(self._clock()) if state == "active" else stored.decided
        await self._store.change(job_id, state, decided)
        return await self._changed(replace(stored, state=state, decided=decided, is_told=False))

    def decided(self, job_id: str, until: int) -> None:
        """What was due of a job up to then is decided, and stored."""
        if job_id in self._jobs:
            self._jobs[job_id] = replace(self._jobs[job_id], decided=until)

    def record(self, stored: StoredJob) -> CronJobRecord:
        """The job as everybody knows it."""
        told = {**asdict(stored.job), "enabled": stored.state == "active", "next_at": self._next_at(stored)}
        return CronJobRecord.model_validate(told)

    def _next_at(self, stored: StoredJob) -> int | None:
        """When it is due; never where its times cannot be read any more, as of a time zone that is gone."""
        if stored.state != "active":
            return None
        try:
            return stored.job.times.after(max(stored.decided, int(self._clock())))
        except BadSchedule:
            return None

    async def _changed(self, stored: StoredJob) -> StoredJob:
        self._jobs[stored.job.job_id] = stored
        await self._tell(stored)
        await self._project()
        return stored

    async def _tell(self, stored: StoredJob) -> None:
        """Under an id that is always the same for this change, so that what is said again is said once."""
        job = stored.job
        message = CronJobChanged(what=stored.state, job=self.record(stored))
        envelope_id = uuid.uuid5(_NAMESPACE, f"{job.job_id}\n{stored.state}\n{stored.decided}").hex
        trace = Trace(job.job_id, None, job.session_id, job.user_id)
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=math.inf)
        await self._store.job_told(job.job_id, stored.state)
        if stored.state == "removed":
            self._jobs.pop(job.job_id, None)
        elif job.job_id in self._jobs:
            self._jobs[job.job_id] = replace(self._jobs[job.job_id], is_told=True)

    async def _project(self) -> None:
        """Write down for people what there is; nothing reads it."""
        text = json.dumps([_readable(self.record(stored)) for stored in self.listed()], indent=2, ensure_ascii=False)
        try:
            await asyncio.to_thread(write_private, self._file, f"{text}\n")
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error)


def _is_of(stored: StoredJob, of_user: str | None) -> bool:
    return of_user is None or (stored.job.user_id or OWNER) == of_user


def _readable(record: CronJobRecord) -> dict[str, object]:
    try:
        zone = time_zone(record.time_zone or "UTC")
    except BadSchedule:
        zone = time_zone("UTC")

    def at(moment: float | None) -> str | None:
        return None if moment is None else datetime.fromtimestamp(moment, zone).isoformat()

    return {**record.model_dump(), "created_at": at(record.created_at), "next_at": at(record.next_at)}
