"""Which runs of a job are due: decided from what is known of it and the time on the wall, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

from local.services.schedules.job import Job, JobRun, RunState

ON_TIME_SECONDS = 90  # what was due longer ago was missed
MOST_AT_ONCE = 100  # runs that are made up for, where each is to be


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job has come. `decided` is the time up to which all that was due is decided; `is_busy` whether a run is
    not over: until it is nothing else is due, and what comes due meanwhile is decided then. `spent_by_all` says that no
    job may run any more today, and why."""

    decided: int
    is_enabled: bool = True
    is_busy: bool = False
    runs_today: int = 0
    tokens_today: int = 0
    spent_by_all: str = ""


@dataclass(frozen=True, slots=True)
class DueRuns:
    """What is to be stored, in one transaction: up to when that decides, and the runs, those among them that are not to
    be made and why."""

    decided: int
    runs: tuple[JobRun, ...] = ()


def due_runs(job: Job, progress: JobProgress, now: int) -> DueRuns | None:
    """What is to be done about a job now; None if nothing is.

    A clock that was put back makes times come again: they have been stored under the same ids, and run once.
    """
    if progress.is_busy:
        return None
    if now < progress.decided:
        return DueRuns(now)
    if not progress.is_enabled:
        return None
    last, count = job.times.last(progress.decided, now)
    if last is None:
        return None
    if job.missed == "all":
        times = job.times.between(progress.decided, now, MOST_AT_ONCE)
    elif job.missed == "once" or now - last <= ON_TIME_SECONDS:
        times = [last]
    else:
        return DueRuns(now, (JobRun(job.job_id, last, RunState.MISSED, detail=_missed(count)),))
    *earlier, latest = (JobRun(job.job_id, time) for time in times)
    latest = replace(latest, detail=_missed(count - len(times)))
    return DueRuns(now, _within_budget(job, progress, (*earlier, latest)))


def next_due(job: Job, progress: JobProgress) -> int | None:
    """When a job is due next, as far as is known now; None if it is not."""
    if not progress.is_enabled or progress.is_busy:
        return None
    return job.times.after(progress.decided)


def budget_spent(job: Job, progress: JobProgress) -> str:
    """Why a job may not run any more today; empty if it may."""
    if progress.runs_today >= job.max_runs_a_day:
        return f"its budget is spent: {job.max_runs_a_day} runs a day"
    if job.max_tokens_a_day is not None and progress.tokens_today >= job.max_tokens_a_day:
        return f"its budget is spent: {progress.tokens_today} of {job.max_tokens_a_day} tokens a day"
    return progress.spent_by_all


def _within_budget(job: Job, progress: JobProgress, runs: tuple[JobRun, ...]) -> tuple[JobRun, ...]:
    """The runs, those beyond the budget refused."""
    spent = budget_spent(job, progress)
    left = 0 if spent else job.max_runs_a_day - progress.runs_today
    why = spent or f"its budget is spent: {job.max_runs_a_day} runs a day"
    return (*runs[:left], *(replace(run, state=RunState.REFUSED, detail=why) for run in runs[left:]))


def _missed(count: int) -> str:
    return f"{count} {'time was' if count == 1 else 'times were'} missed" if count else ""
