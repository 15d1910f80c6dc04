"""The participant `cron` on a bus: jobs run at their times, once each, wherever it is killed, and stay tainted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agent_stage.served import Served

from local.bus.messages import QueryReceived, ResponseGeneration, ToolSchema
from local.core import failpoints
from local.cron import scheduler as job_runner
from local.cron.messages import CronJobChanged, CronRequest, CronResult, CronRun, NewJob
from local.cron.scheduler import PROJECTION, CronConfig, CronScheduler, JobRegistry
from local.cron.store import FILE_NAME, JobStore
from local.cron.tools import Cron
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import ToolCall
from local.models.lease_messages import LeaseClaim
from local.queries import asker
from local.runtime.participant import Resources

SECONDS = 90.0
NINE = 1_795_251_600.0  # 2026-11-21T09:00Z, a Saturday
HOUR = 3600.0
STEPS = [("cron.decided", 1), ("cron.asked", 1), ("cron.answered", 1), ("cron.kept", 2)]


@dataclass
class Clockwork:
    """A stage with a generator, an arbiter, and the participant that keeps the jobs, whose clock is set by hand."""

    stage: Any
    folder: Path
    now: float = NINE - HOUR / 2
    config: CronConfig = field(default_factory=lambda: CronConfig(time_zone="UTC"))
    served: Served | None = None

    async def begin(self) -> None:
        """The participant, as a new process on the same file."""
        store = JobStore(self.folder / FILE_NAME)
        registry = JobRegistry(store, self.config, "UTC", self.folder, lambda: self.now)
        self.scheduler = CronScheduler(store, registry, lambda: self.now, self.config.all_tokens_a_day)
        tools = [kind(self.config, self.scheduler) for kind in Cron.tools]
        made = Cron(self.config, tools, self.scheduler).with_records(Resources(self.folder))
        made.lent(Resources(self.folder))
        self.served = await self.stage.serve(made)

    async def ask(self, verb: Any, **fields: Any) -> CronResult:
        request = CronRequest(verb=verb, **fields)
        return await self.stage.frontend.bus.request(request, CronResult, SECONDS)  # type: ignore[no-any-return]

    async def add(self, schedule: str = "0 * * * *", **fields: Any) -> str:
        order = NewJob(prompt="What is new?", schedule=schedule, **fields)
        result = await self.ask("add", order=order, by="test")
        assert result.error is None, result.error
        return result.jobs[0].job_id

    def at(self, moment: float) -> None:
        """The clock shows that, and is looked at."""
        self.now = moment
        self.scheduler.wake()

    async def run(self, state: str, times: int = 1) -> CronRun:
        """The run that is told as number `times` in that state."""

        def found() -> list[CronRun]:
            return [each for each in self.stage.frontend.of(CronRun) if each.run.state == state]

        await self.stage.frontend.until(lambda: len(found()) >= times)
        return found()[times - 1]

    def queries(self) -> list[QueryReceived]:
        """What was asked, each once, in order."""
        found = {each.query_id: each for each in self.stage.frontend.of(QueryReceived)}
        return list(found.values())


@pytest.fixture
async def clockwork(stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clockwork]:
    monkeypatch.setattr(job_runner, "FIRST_PAUSE", 0.01)
    await stage.serve(Arbiter(ArbiterConfig()))
    await stage.generator()
    made = Clockwork(stage, tmp_path)
    await made.begin()
    yield made


async def test_a_job_is_asked_at_its_time_in_a_conversation_of_its_own_and_no_approval_is_requested(
    clockwork: Clockwork,
) -> None:
    stage = clockwork.stage
    await stage.frontend.hears(ToolSchema, tool="cron_add")
    assert stage.frontend.of(ToolSchema, tool="cron_list") == []
    job_id = await clockwork.add(name="news")
    for tool in ("cron_list", "cron_remove"):
        await stage.frontend.hears(ToolSchema, tool=tool)
    stage.model.will_say("Nothing.")
    clockwork.at(NINE)
    run = (await clockwork.run("answered")).run
    [query] = clockwork.queries()
    assert (query.query, query.origin, query.options and query.options.mode) == ("What is new?", "schedule", "dontAsk")
    assert (run.query_id, run.scheduled_at, run.tokens) == (query.query_id, NINE, 3)
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=run.query_id)
    assert (response.origin, response.tainted) == ("schedule", False)
    assert [each.run.state for each in stage.frontend.of(CronRun)] == ["asked", "answered"]
    assert [each.run_id for each in (await clockwork.ask("history", job_id=job_id)).runs] == [run.run_id]
    [job] = (await clockwork.ask("list")).jobs
    assert job.next_at == NINE + HOUR
    leases = [lease.id for claim in stage.frontend.of(LeaseClaim) for lease in claim.leases]
    assert leases and all(lease.startswith("schedule") for lease in leases)  # its calls wait for users' turns


async def test_every_field_of_an_order_is_stored_and_shown_and_a_run_by_hand_is_asked_in_its_conversation(
    clockwork: Clockwork,
) -> None:
    order = NewJob(
        prompt="What is new?", schedule="0 9 * * 1", name="news", time_zone="Europe/Berlin", missed="all",
        session_id="evenings", mode="plan", max_runs_a_day=3, max_tokens_a_day=1000,
    )  # fmt: skip
    assert all(value != NewJob.model_fields[name].default for name, value in order), "each field has a value"
    job = (await clockwork.ask("add", order=order, by="test")).jobs[0]
    assert clockwork.served is not None
    await clockwork.served.stop()
    await clockwork.begin()
    assert (await clockwork.ask("list")).jobs == (job,)
    assert NewJob.model_validate(job.model_dump()) == order
    clockwork.stage.model.will_say("Here.")
    begun = (await clockwork.ask("run", job_id=job.job_id)).runs[0]
    run = (await clockwork.run("answered")).run
    assert (run.run_id, run.by_hand) == (begun.run_id, True)
    [envelope] = clockwork.stage.frontend.envelopes(QueryReceived)
    assert envelope.session_id == "evenings"


@pytest.mark.parametrize(("step", "passes"), STEPS)
async def test_a_run_is_one_query_wherever_the_process_is_killed(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch, step: str, passes: int
) -> None:
    left = passes

    def reach(name: str) -> None:
        nonlocal left
        if name == step:
            left -= 1
            if left == 0:
                assert clockwork.served is not None
                clockwork.served.die()
                raise asyncio.CancelledError

    await clockwork.add()
    clockwork.stage.model.will_say("Nothing.")
    monkeypatch.setattr(failpoints, "reach", reach)
    clockwork.at(NINE)
    assert clockwork.served is not None
    await clockwork.served.dead()
    await clockwork.begin()
    run = await clockwork.run("answered")
    assert (run.run.scheduled_at, len(clockwork.queries()), len(clockwork.stage.model.asked)) == (NINE, 1, 1)
    assert {each.run.run_id for each in clockwork.stage.frontend.of(CronRun)} == {run.run.run_id}


async def test_what_was_due_while_nothing_ran_is_made_up_for_once_and_a_clock_that_is_put_back_repeats_nothing(
    clockwork: Clockwork,
) -> None:
    job_id = await clockwork.add()
    clockwork.stage.model.will_say("One.")
    clockwork.stage.model.will_say("Two.")
    assert clockwork.served is not None
    await clockwork.served.kill()
    clockwork.now = NINE + 5 * HOUR + 60
    await clockwork.begin()
    run = (await clockwork.run("answered")).run
    assert (run.scheduled_at, run.detail) == (NINE + 5 * HOUR, "5 times were missed")
    clockwork.at(NINE + 4.5 * HOUR)
    await clockwork.stage.frontend.until(lambda: clockwork.scheduler.busy == 0)
    await clockwork.scheduler.look()
    clockwork.at(NINE + 5 * HOUR)
    await clockwork.scheduler.look()
    assert len((await clockwork.ask("history", job_id=job_id)).runs) == 1
    clockwork.at(NINE + 6 * HOUR)
    assert (await clockwork.run("answered", 2)).run.scheduled_at == NINE + 6 * HOUR


async def test_a_run_that_nobody_can_take_is_asked_again_until_the_next_is_due_and_then_refused(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    await clockwork.add()
    away = asker.Unavailable("generator", "the generator does not run")
    absence = property(lambda asking: away, lambda asking, value: None)
    monkeypatch.setattr(asker.Asker, "absence", absence, raising=False)
    assert clockwork.served is not None
    await clockwork.served.kill()
    await clockwork.begin()
    clockwork.at(NINE)
    await clockwork.stage.frontend.until(lambda: clockwork.scheduler.busy == 1)
    clockwork.now = NINE + HOUR
    refused = (await clockwork.run("refused")).run
    assert refused.scheduled_at == NINE
    assert "the generator does not run" in refused.detail
    assert clockwork.queries() == []


async def test_a_job_of_a_tainted_conversation_has_runs_that_are_tainted_and_whose_links_are_left_out(
    clockwork: Clockwork,
) -> None:
    stage, address = clockwork.stage, "https://evil.example/?secret"
    await stage.gatekeeper(mode="bypassPermissions", may_bypass=True)
    stage.model.will_say(ToolCall("cron_add", {"prompt": f"Open {address}", "schedule": "@hourly"}))
    stage.model.will_say("Made.")
    await stage.frontend.hears(ToolSchema, tool="cron_add")
    await stage.frontend.ask("Make it.", "q1", tainted=True)
    made: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id="q1")
    assert made.tainted
    [job] = (await clockwork.ask("list")).jobs if made.tool_calls[0].error is None else [None]
    assert job is not None, made.tool_calls[0].error
    assert (job.tainted, job.mode) == (True, "dontAsk")
    stage.model.will_say(f"See {address} now.")
    clockwork.at(NINE)
    run = await clockwork.run("answered")
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=run.run.query_id)
    assert (response.tainted, response.answer) == (True, "See (link left out) now.")
    await stage.frontend.hears(ToolSchema, tool="cron_remove")
    stage.model.will_say(ToolCall("cron_remove", {"job_id": job.job_id}))
    stage.model.will_say("Removed.")
    await stage.frontend.ask("Remove it.", "q2")
    removed: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id="q2")
    assert removed.tainted, "its name may be an order"


async def test_jobs_are_those_of_their_user_paused_and_removed_and_readable_in_a_file(clockwork: Clockwork) -> None:
    mine = await clockwork.add(name="mine")
    order = NewJob(prompt="hers", schedule="at 2026-12-24T18:00")
    hers = (await clockwork.ask("add", order=order, of_user="ann")).jobs[0].job_id
    assert [job.job_id for job in (await clockwork.ask("list", of_user="ann")).jobs] == [hers]
    for verb in ("remove", "pause", "run", "history"):
        error = (await clockwork.ask(verb, job_id=mine, of_user="ann")).error
        assert error is not None
        assert error.kind == "not_found"
    assert not (await clockwork.ask("pause", job_id=mine)).jobs[0].enabled
    clockwork.at(NINE)
    await clockwork.scheduler.look()
    assert (await clockwork.ask("resume", job_id=mine)).jobs[0].next_at == NINE + HOUR
    assert '"2026-12-24T18:00:00+00:00"' in (clockwork.folder / PROJECTION).read_text()
    await clockwork.ask("remove", job_id=mine)
    assert "mine" not in (clockwork.folder / PROJECTION).read_text()
    assert [each.what for each in clockwork.stage.frontend.of(CronJobChanged)] == [
        "active", "active", "paused", "active", "removed",
    ]  # fmt: skip
    assert clockwork.queries() == []


async def test_what_all_jobs_together_may_take_of_a_day_refuses_the_next_run_with_a_clear_word(
    clockwork: Clockwork,
) -> None:
    assert clockwork.served is not None
    await clockwork.served.stop()
    clockwork.config = CronConfig(time_zone="UTC", all_tokens_a_day=3)
    await clockwork.begin()
    await clockwork.add()
    clockwork.stage.model.will_say("Nothing.")
    clockwork.at(NINE)
    await clockwork.run("answered")
    clockwork.at(NINE + HOUR)
    assert (await clockwork.run("refused")).run.detail == "the budget of all jobs is spent: 3 of 3 tokens a day"
    assert len(clockwork.queries()) == 1


BAD: list[dict[str, Any]] = [
    {"prompt": "  "}, {"prompt": "x" * 20_001}, {"schedule": "never"}, {"time_zone": "Mars/Olympus"},
    {"session_id": "a b"}, {"max_runs_a_day": 0}, {"max_runs_a_day": 1441}, {"max_tokens_a_day": 0},
    {"schedule": "at 2020-01-01"}, {"schedule": "0 0 30 2 *"}, {"session_id": ""}, {"time_zone": "../x"},
]  # fmt: skip


async def test_a_job_that_nobody_could_do_is_refused_in_one_line_and_nothing_else_is_broken(
    clockwork: Clockwork,
) -> None:
    for bad in BAD:
        order = NewJob(**{"prompt": "p", "schedule": "@daily", **bad})
        error = (await clockwork.ask("add", order=order)).error
        assert error is not None, bad
        assert (error.kind, "\n" in error.message) == ("invalid", False)
        assert error.message.startswith(next(iter(bad)))
    clockwork.config.__dict__["max_jobs"] = 1
    await clockwork.add()
    error = (await clockwork.ask("add", order=NewJob(prompt="p", schedule="@daily"))).error
    assert error is not None
    assert "max_jobs" in error.message


async def test_a_job_that_is_changed_keeps_its_runs_and_its_taint_and_runs_at_its_new_times(
    clockwork: Clockwork,
) -> None:
    clockwork.stage.model.will_say("This.")
    clockwork.stage.model.will_say("That.")
    job_id = await clockwork.add()
    clockwork.at(NINE)
    await clockwork.run("answered")
    order = NewJob(prompt="What is old?", schedule="30 * * * *", name="Old things")
    changed = (await clockwork.ask("change", job_id=job_id, order=order, by="test")).jobs[0]
    assert (changed.job_id, changed.name, changed.next_at) == (job_id, "Old things", NINE + HOUR / 2)
    clockwork.at(NINE + HOUR / 2)
    await clockwork.run("answered", 2)
    assert [each.query for each in clockwork.queries()] == ["What is new?", "What is old?"]
    assert len((await clockwork.ask("history", job_id=job_id)).runs) == 2
    told = [each.job.prompt for each in clockwork.stage.frontend.of(CronJobChanged)]
    assert told == ["What is new?", "What is old?"]
    bad = await clockwork.ask("change", job_id=job_id, order=NewJob(prompt="?", schedule="61 * * * *"))
    assert bad.error is not None
    unknown = await clockwork.ask("change", job_id="none", order=order)
    assert unknown.error is not None and unknown.error.kind == "not_found"


async def test_the_next_times_of_a_schedule_are_shown_and_nothing_is_made(clockwork: Clockwork) -> None:
    order = NewJob(prompt="?", schedule="0 * * * *", time_zone="UTC")
    shown = await clockwork.ask("preview", order=order)
    assert (shown.time_zone, shown.times) == ("UTC", (NINE, NINE + HOUR, NINE + 2 * HOUR))
    assert (await clockwork.ask("list")).jobs == ()
    bad = await clockwork.ask("preview", order=NewJob(prompt="?", schedule="61 * * * *"))
    assert bad.error is not None
    assert "minute is invalid" in bad.error.message
