"""Invalid jobs over HTTP: each is refused in one clear line, and the others are made."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cron.messages import CronJobRecord
from local.cron.scheduler import CronConfig
from local.cron.store import FILE_NAME, JobStore
from local.cron.tools import Cron
from local.runtime.participant import Resources
from tests.damaged_text import damaged, damaged_object

System = Any  # of conftest.py

SEED = 15
MOST_CHARACTERS = 600
ORDER = {
    "prompt": "What is new?", "schedule": "0 8 * * 1-5", "name": "news", "time_zone": "Europe/Berlin", "missed": "once",
    "session_id": "news", "mode": "dontAsk", "max_runs_a_day": 3, "max_tokens_a_day": 1000,
}  # fmt: skip
GOOD = CronJobRecord(job_id="good", name="good", prompt="What is new?", schedule="@yearly", created_at=0)


@pytest.fixture
async def frontend(system: System, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A frontend, behind which there is one job."""
    folder: Path = system.journal_file.parent
    async with JobStore(folder / FILE_NAME) as store:
        await store.add(GOOD)
    cron = Cron.build(CronConfig(time_zone="UTC", max_jobs=1000), Resources(folder))
    async with system.frontend() as client, system.host(cron):
        yield client


def orders(count: int) -> list[Any]:
    """As many bodies: objects with a fault, and schedules with one."""
    schedules = (bytes(each).decode("utf-8", "replace") for each in damaged("0 8 * * 1-5", SEED))
    spoilt = zip(damaged_object(ORDER, SEED), schedules, strict=False)
    both = ((order, {**ORDER, "schedule": schedule[:300]}) for order, schedule in spoilt)
    return [each for pair in islice(both, count) for each in pair]


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.thorough)])
async def test_malformed_jobs_are_refused_in_one_line_each(frontend: httpx.AsyncClient, count: int) -> None:
    refused = list[str]()
    for order in orders(count):
        response = await frontend.post("/cron", json=order)
        if response.status_code == 201:
            await frontend.delete(f"/cron/{response.json()['job_id']}")
            continue
        assert response.status_code in (400, 413, 422), (order, response.text)
        refused.append(response.json()["error"]["message"])
        if len(refused) == count:
            break
    assert len(refused) == count
    assert [line for line in refused if not (5 < len(line) <= MOST_CHARACTERS and line.isprintable())] == []
    assert [job["job_id"] for job in (await frontend.get("/cron")).json()["jobs"]] == ["good"]


async def put(folder: Path, job_id: str, body: str) -> None:
    """A row, as it stands in the file."""
    sql = "INSERT INTO jobs (job_id, body, state, decided) VALUES (?, ?, 'active', 0)"
    async with JobStore(folder / FILE_NAME) as store:
        await store.write(lambda db: db.execute(sql, (job_id, body)).rowcount)


async def test_a_job_that_is_spoilt_on_record_is_said_to_be_so_and_the_others_are_done(
    system: System, caplog: pytest.LogCaptureFixture
) -> None:
    folder: Path = system.journal_file.parent
    await put(folder, "good", json.dumps(GOOD.model_dump()))
    await put(
        folder, "gone", json.dumps({**GOOD.model_dump(), "job_id": "gone", "name": "gone", "time_zone": "Mars/Olympus"})
    )
    for number, body in enumerate(islice(damaged_object(GOOD.model_dump(), SEED), 10)):
        await put(folder, f"spoilt-{number}", json.dumps({**body, "job_id": f"spoilt-{number}", "mode": 5}))
    await put(folder, "no-json", "{")
    cron = Cron.build(CronConfig(time_zone="UTC"), Resources(folder))
    async with system.frontend() as client, system.host(cron):
        listed = {job["job_id"]: job["next_at"] for job in (await client.get("/cron")).json()["jobs"]}
        assert set(listed) == {"good", "gone"} and listed["good"] and listed["gone"] is None
        assert (await client.post("/cron/good/run")).status_code == 202
        while not any("the job gone cannot be done now: time_zone: there is no" in line for line in caplog.messages):
            await client.get("/cron")
        assert (await client.delete("/cron/gone")).status_code == 200
    said = [record.message for record in caplog.records if "is not as it was written" in record.message]
    assert len(said) == 11 and all(line.isprintable() for line in said)
