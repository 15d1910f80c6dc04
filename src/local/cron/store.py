"""Jobs, how far each has come, and their runs: which runs are due, and the SQLite file that keeps it all."""

from __future__ import annotations

import logging
import sqlite3
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from local.core.database import OwnedDatabase
from local.core.schedule import Schedule, read_schedule, time_zone
from local.cron.messages import CronJobRecord

_NAMESPACE = uuid.UUID("0c1a6c0e-9d5e-4d3a-8f52-3b7f0f6f2c44")


class RunState(StrEnum):
    """The state of a run. A `due` run is stored only here, an `asked` run is a recorded query; the other states are
    final.
    """

    DUE = "due"
    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"  # not asked: the system could not accept it in time, or its budget was spent
    MISSED = "missed"


OPEN = frozenset({RunState.DUE, RunState.ASKED})


@lru_cache(1024)
def _schedule(text: str, zone: str, created_at: int) -> Schedule:
    return read_schedule(text, time_zone(zone), created_at)


def times_of(job: CronJobRecord) -> Schedule:
    """Return the schedule of a job. Raises `BadSchedule`."""
    return _schedule(job.schedule, job.time_zone, int(job.created_at))


def day_begins(job: CronJobRecord, now: int) -> int:
    """Return the start of the present day in the job's time zone."""
    local = datetime.fromtimestamp(now, time_zone(job.time_zone))
    return int(local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp())


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job, for one time. A run that a person has started is `by_hand`, and its time is that of the start.
    Its query is published again, as the next `attempt`, if it has ended without a turn.
    """

    job_id: str
    scheduled_at: int
    state: RunState = RunState.DUE
    by_hand: bool = False
    attempt: int = 1
    detail: str = ""
    tokens: int = 0
    begun_at: float = 0.0
    ended_at: float | None = None

    @property
    def run_id(self) -> str:
        """The id of a run, equal whenever the run is decided."""
        return f"{self.job_id}.{self.scheduled_at}{'h' if self.by_hand else ''}"

    @property
    def query_id(self) -> str:
        """The id of the query: the same each time the run is asked, so that it is one query."""
        return uuid.uuid5(_NAMESPACE, f"{self.run_id}.{self.attempt}").hex


# The decision which runs of a job are due, from its record and the wall-clock time alone.

ON_TIME_SECONDS = 90  # a run that was due longer ago counts as missed
MOST_AT_ONCE = 100  # runs that are made up for, where each is to be


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a job. Every run that was due up to `decided` is decided. While `is_busy`, a run is open and
    nothing else is due; times that pass in between are decided afterwards. `spent_by_all` is the reason why no job may
    run any more today, empty if they may.
    """

    decided: int
    is_enabled: bool = True
    is_busy: bool = False
    runs_today: int = 0
    tokens_today: int = 0
    spent_by_all: str = ""


@dataclass(frozen=True, slots=True)
class DueRuns:
    """A decision to be stored in one transaction: up to when it decides, and the runs, with those that are refused or
    missed and why."""

    decided: int
    runs: tuple[JobRun, ...] = ()


def due_runs(job: CronJobRecord, progress: JobProgress, now: int) -> DueRuns | None:
    """Return the actions for a job now; None if there are none.

    A clock that was set back makes times come again: their runs are stored under the same ids, and run once.
    """
    if progress.is_busy:
        return None
    if now < progress.decided:
        return DueRuns(now)
    if not progress.is_enabled:
        return None
    last, count = times_of(job).last(progress.decided, now)
    if last is None:
        return None
    if job.missed == "all":
        times = times_of(job).between(progress.decided, now, MOST_AT_ONCE)
    elif job.missed == "once" or now - last <= ON_TIME_SECONDS:
        times = [last]
    else:
        return DueRuns(now, (JobRun(job.job_id, last, RunState.MISSED, detail=_missed(count)),))
    *earlier, latest = (JobRun(job.job_id, time) for time in times)
    latest = replace(latest, detail=_missed(count - len(times)))
    return DueRuns(now, _within_budget(job, progress, (*earlier, latest)))


def next_due(job: CronJobRecord, progress: JobProgress) -> int | None:
    """Return when a job is due next, as far as is known now; None if it is not."""
    if not progress.is_enabled or progress.is_busy:
        return None
    return times_of(job).after(progress.decided)


def budget_spent(job: CronJobRecord, progress: JobProgress) -> str:
    """Why a job may not run any more today; empty if it may."""
    if progress.runs_today >= job.max_runs_a_day:
        return f"its budget is spent: {job.max_runs_a_day} runs a day"
    if job.max_tokens_a_day is not None and progress.tokens_today >= job.max_tokens_a_day:
        return f"its budget is spent: {progress.tokens_today} of {job.max_tokens_a_day} tokens a day"
    return progress.spent_by_all


def _within_budget(job: CronJobRecord, progress: JobProgress, runs: tuple[JobRun, ...]) -> tuple[JobRun, ...]:
    """The runs, those beyond the budget refused."""
    spent = budget_spent(job, progress)
    left = 0 if spent else job.max_runs_a_day - progress.runs_today
    why = spent or f"its budget is spent: {job.max_runs_a_day} runs a day"
    return (*runs[:left], *(replace(run, state=RunState.REFUSED, detail=why) for run in runs[left:]))


def _missed(count: int) -> str:
    return f"{count} {'time was' if count == 1 else 'times were'} missed" if count else ""


log = logging.getLogger(__name__)

FILE_NAME = "cron.db"
OF_THE_MOMENT = {"enabled", "next_at"}  # of a job: they are not stored
KEPT_RUNS = 500  # of each job, beside those that are not over

JobState = Literal["active", "paused", "removed"]

_MIGRATIONS = (
    """
    CREATE TABLE jobs (
        job_id TEXT PRIMARY KEY,
        body TEXT NOT NULL,
        state TEXT NOT NULL,
        decided INTEGER NOT NULL,
        told TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE TABLE runs (
        job_id TEXT NOT NULL,
        scheduled_at INTEGER NOT NULL,
        by_hand INTEGER NOT NULL,
        state TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        detail TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        begun_at REAL NOT NULL,
        ended_at REAL,
        told TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (job_id, scheduled_at, by_hand)
    ) WITHOUT ROWID;
    CREATE INDEX runs_by_begin ON runs (job_id, begun_at);
    """,
)
_RUN = "job_id, scheduled_at, by_hand, state, attempt, detail, tokens, begun_at, ended_at"
_PUT = (
    f"INSERT INTO runs ({_RUN}) VALUES (:job_id, :scheduled_at, :by_hand, :state, :attempt, :detail, :tokens,"
    " :begun_at, :ended_at) ON CONFLICT (job_id, scheduled_at, by_hand) DO UPDATE SET state = excluded.state,"
    " attempt = excluded.attempt, detail = excluded.detail, tokens = excluded.tokens, begun_at = excluded.begun_at,"
    " ended_at = excluded.ended_at"
)
_THIS_RUN = "WHERE job_id = :job_id AND scheduled_at = :scheduled_at AND by_hand = :by_hand"


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A row of the store: a job, its state, and the time up to which all due runs are `decided`. `is_published` says
    whether its state was published.
    """

    job: CronJobRecord
    state: JobState
    decided: int
    is_published: bool = True


class JobStore(OwnedDatabase):
    """The file of jobs and runs; use as `async with`. The process that opened it last owns it. Every coroutine returns
    after its commit; raises `StoreFailed`, `StoreFull`, `StoreFenced`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _MIGRATIONS)

    async def jobs(self) -> list[StoredJob]:
        """Return every job, the oldest first, with those whose removal was not published yet. A damaged row is left out
        and logged.
        """
        found = await self.run(lambda db: [_stored(row) for row in db.execute("SELECT * FROM jobs")])
        return sorted(filter(None, found), key=lambda stored: (stored.job.created_at, stored.job.job_id))

    async def add(self, job: CronJobRecord) -> None:
        """Store a new job; one with a known id changes nothing."""
        body = job.model_dump_json(exclude=OF_THE_MOMENT)
        sql = "INSERT OR IGNORE INTO jobs (job_id, body, state, decided) VALUES (?, ?, 'active', ?)"
        await self.write(lambda db: db.execute(sql, (job.job_id, body, int(job.created_at))).rowcount)

    async def change(self, job_id: str, state: JobState, decided: int) -> None:
        """Store that a job is paused, active or removed."""
        sql = "UPDATE jobs SET state = ?, decided = ?, told = '' WHERE job_id = ?"
        await self.write(lambda db: db.execute(sql, (state, decided, job_id)).rowcount)

    async def replace(self, job: CronJobRecord, decided: int) -> None:
        """Store a job in place of the one with its id."""
        body = job.model_dump_json(exclude=OF_THE_MOMENT)
        sql = "UPDATE jobs SET body = ?, decided = ?, told = '' WHERE job_id = ?"
        await self.write(lambda db: db.execute(sql, (body, decided, job.job_id)).rowcount)

    async def job_published(self, job_id: str, state: JobState) -> None:
        """That state was published; nothing is kept of a job that is removed."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE jobs SET told = state WHERE job_id = ? AND state = ?", (job_id, state))
            if state == "removed":
                db.execute("DELETE FROM runs WHERE job_id = ?", (job_id,))
                db.execute("DELETE FROM jobs WHERE job_id = ?", (job_id,))

        await (self.erase(work) if state == "removed" else self.write(work))

    async def decide(self, job_id: str, due: DueRuns, now: float) -> list[JobRun]:
        """Store a decision; gives the runs that are new. One time of a job is one run, but one that counted as missed
        can still be made, where a clock was wrong."""

        def work(db: sqlite3.Connection) -> list[JobRun]:
            db.execute("UPDATE jobs SET decided = ? WHERE job_id = ?", (due.decided, job_id))
            fresh = [_begun(run, now) for run in due.runs if _is_new(db, run)]
            db.executemany(_PUT, map(_values, fresh))
            _drop_old(db, job_id)
            return fresh

        return await self.write(work)

    async def keep(self, run: JobRun) -> None:
        """Store how a run is now."""
        await self.write(lambda db: db.execute(_PUT, _values(run)).rowcount)

    async def run_published(self, run: JobRun) -> None:
        """The state of a run was published."""
        sql = f"UPDATE runs SET told = state {_THIS_RUN} AND state = :state"
        await self.write(lambda db: db.execute(sql, _values(run)).rowcount)

    async def open_runs(self) -> list[JobRun]:
        """The runs that are not over, the oldest first."""
        return await self._runs("WHERE state IN ('due', 'asked') ORDER BY scheduled_at, by_hand", ())

    async def unpublished_runs(self) -> list[JobRun]:
        """The runs whose state was not published yet."""
        return await self._runs("WHERE state != 'due' AND told != state ORDER BY scheduled_at", ())

    async def history(self, job_id: str, limit: int) -> list[JobRun]:
        """The runs of a job, the latest first."""
        return await self._runs("WHERE job_id = ? ORDER BY scheduled_at DESC LIMIT ?", (job_id, limit))

    async def spent(self, job_id: str, since: int) -> tuple[int, int]:
        """Return the number of a job's runs since then, and their tokens."""
        sql = (
            "SELECT count(*), coalesce(sum(tokens), 0) FROM runs WHERE job_id = ? AND begun_at >= ?"
            " AND state NOT IN ('missed', 'refused')"
        )
        return await self.run(lambda db: tuple(db.execute(sql, (job_id, since)).fetchone()))

    async def spent_by_all(self, since: int) -> int:
        """The tokens that the runs of all jobs took which were begun since then."""
        sql = "SELECT coalesce(sum(tokens), 0) FROM runs WHERE begun_at >= ?"
        return await self.run(lambda db: int(db.execute(sql, (since,)).fetchone()[0]))

    async def _runs(self, where: str, values: tuple[Any, ...]) -> list[JobRun]:
        return await self.run(lambda db: [_run(row) for row in db.execute(f"SELECT {_RUN} FROM runs {where}", values)])


def _is_new(db: sqlite3.Connection, run: JobRun) -> bool:
    known = db.execute(f"SELECT state FROM runs {_THIS_RUN}", _values(run)).fetchone()
    return known is None or (known["state"] == RunState.MISSED and run.state != RunState.MISSED)


def _drop_old(db: sqlite3.Connection, job_id: str) -> None:
    db.execute(
        "DELETE FROM runs WHERE job_id = ? AND ended_at IS NOT NULL AND scheduled_at < (SELECT scheduled_at FROM runs"
        " WHERE job_id = ? ORDER BY scheduled_at DESC LIMIT 1 OFFSET ?)",
        (job_id, job_id, KEPT_RUNS),
    )


def _begun(run: JobRun, now: float) -> JobRun:
    return replace(run, begun_at=now, ended_at=None if run.state in OPEN else now)


def _values(run: JobRun) -> dict[str, Any]:
    return {**asdict(run), "state": run.state.value}


def _run(row: sqlite3.Row) -> JobRun:
    return JobRun(**{**dict(row), "state": RunState(row["state"]), "by_hand": bool(row["by_hand"])})


def _stored(row: sqlite3.Row) -> StoredJob | None:
    try:
        job = CronJobRecord.model_validate_json(row["body"], strict=True)
    except ValidationError:
        log.error("%s: the job %s is not as it was written; it is left out", FILE_NAME, row["job_id"])
        return None
    return StoredJob(job, row["state"], row["decided"], row["told"] == row["state"])
