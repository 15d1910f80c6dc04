"""Jobs and their runs as they are stored."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from local.cron.messages import CronJobRecord
from local.cron.store import FILE_NAME, KEPT_RUNS, DueRuns, JobRun, JobStore, RunState

JOB = CronJobRecord(job_id="j", name="name", prompt="a secret prompt", schedule="0 * * * *", created_at=1000)
OLD = (
    '{"job_id": "j", "name": "n", "prompt": "p", "schedule": "@daily", "time_zone": "UTC", "created_at": 1000,'
    ' "missed": "once", "session_id": null, "user_id": null, "mode": "dontAsk", "tainted": true, "created_by": "x",'
    ' "max_runs_a_day": 100, "max_tokens_a_day": null}'
)  # as it was stored before there was one shape
RUN = JobRun("j", 3600)


async def test_what_is_decided_is_one_run_however_often_it_is_decided(tmp_path: Path) -> None:
    async with JobStore(tmp_path / FILE_NAME) as store:
        await store.add(JOB)
        await store.add(JOB.model_copy(update={"prompt": "another"}))
        [run] = await store.decide("j", DueRuns(3600, (RUN,)), 3601.0)
        assert (run.begun_at, await store.decide("j", DueRuns(3600, (RUN,)), 3602.0)) == (3601.0, [])
        await store.keep(replace(run, state=RunState.ANSWERED, tokens=40, ended_at=3605.0))
        assert await store.decide("j", DueRuns(3600, (RUN,)), 3603.0) == []
    async with JobStore(tmp_path / FILE_NAME) as store:
        [stored] = await store.jobs()
        assert (stored.job, stored.decided, stored.is_published) == (JOB, 3600, False)
        assert await store.spent("j", 3600) == (1, 40)
        assert await store.spent("j", 3700) == (0, 0)
        assert await store.open_runs() == []


async def test_a_time_that_counted_as_missed_by_a_wrong_clock_can_still_be_made(tmp_path: Path) -> None:
    async with JobStore(tmp_path / FILE_NAME) as store:
        await store.add(JOB)
        missed = replace(RUN, state=RunState.MISSED)
        assert len(await store.decide("j", DueRuns(9000, (missed,)), 9000.0)) == 1
        assert await store.spent("j", 0) == (0, 0)
        assert len(await store.decide("j", DueRuns(3600, (RUN,)), 3600.0)) == 1
        assert [run.state for run in await store.open_runs()] == [RunState.DUE]


async def test_what_was_not_told_is_known_and_of_a_job_that_is_removed_nothing_is_kept(tmp_path: Path) -> None:
    async with JobStore(tmp_path / FILE_NAME) as store:
        await store.add(JOB)
        await store.job_published("j", "active")
        [run] = await store.decide("j", DueRuns(3600, (RUN,)), 3600.0)
        assert await store.unpublished_runs() == []
        asked = replace(run, state=RunState.ASKED)
        await store.keep(asked)
        assert await store.unpublished_runs() == [asked]
        await store.run_published(asked)
        assert await store.unpublished_runs() == []
        await store.change("j", "removed", 3600)
        assert [(stored.state, stored.is_published) for stored in await store.jobs()] == [("removed", False)]
        await store.job_published("j", "removed")
        assert (await store.jobs(), await store.history("j", 10)) == ([], [])
    assert all(b"a secret prompt" not in kept for kept in await asyncio.to_thread(_contents, tmp_path))


def _contents(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


async def test_the_latest_runs_are_kept(tmp_path: Path) -> None:
    async with JobStore(tmp_path / FILE_NAME) as store:
        await store.add(JOB)
        runs = tuple(JobRun("j", 60 * number, RunState.MISSED) for number in range(KEPT_RUNS + 20))
        await store.decide("j", DueRuns(1, runs), 1.0)
        kept = await store.history("j", 10_000)
        assert [run.scheduled_at for run in kept] == [run.scheduled_at for run in reversed(runs[19:])]


async def test_a_job_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    async with JobStore(tmp_path / FILE_NAME) as store:
        sql = "INSERT INTO jobs (job_id, body, state, decided) VALUES ('j', ?, 'active', 1000)"
        await store.write(lambda db: db.execute(sql, (OLD,)).rowcount)
        [stored] = await store.jobs()
    assert (stored.job.tainted, stored.job.mode, stored.job.created_at) == (True, "dontAsk", 1000)
