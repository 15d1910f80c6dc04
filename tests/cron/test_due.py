"""Which runs are due: while the clock runs, jumps, goes back, or nothing runs at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from local.cron.messages import CronJobRecord
from local.cron.store import MOST_AT_ONCE, JobProgress, RunState, day_begins, due_runs, next_due

NOON = int(datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp())
HOUR, DAY = 3600, 86400


def job(schedule: str = "0 * * * *", **fields: Any) -> CronJobRecord:
    return CronJobRecord(job_id="j", prompt="prompt", schedule=schedule, created_at=NOON - DAY, **fields)


def due(of: CronJobRecord, decided: int, now: int, **progress: Any) -> list[tuple[int, str, str]] | None:
    found = due_runs(of, JobProgress(decided, **progress), now)
    assert found is None or found.decided == now
    return None if found is None else [(run.scheduled_at, run.state.value, run.detail) for run in found.runs]


def test_nothing_is_due_before_its_time_and_one_run_at_it() -> None:
    assert due(job(), NOON - HOUR, NOON - 1) is None
    assert due(job(), NOON - HOUR, NOON) == [(NOON, "due", "")]
    assert due(job(), NOON, NOON) is None
    assert next_due(job(), JobProgress(NOON)) == NOON + HOUR


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("once", [(NOON, "due", "2 times were missed")]),
        ("all", [(NOON - 2 * HOUR, "due", ""), (NOON - HOUR, "due", ""), (NOON, "due", "")]),
        ("none", [(NOON, "missed", "3 times were missed")]),
    ],
)
def test_what_was_missed_is_made_up_for_as_the_job_says(missed: Any, expected: list[Any]) -> None:
    assert due(job(missed=missed), NOON - 3 * HOUR, NOON + 1800) == expected


def test_a_job_that_makes_up_for_nothing_runs_when_its_time_was_just_now() -> None:
    assert due(job(missed="none"), NOON - 3 * HOUR, NOON + 30) == [(NOON, "due", "2 times were missed")]


def test_years_of_a_job_of_every_minute_are_made_up_for_by_so_many_runs_and_no_more() -> None:
    runs = due(job("* * * * *", missed="all", max_runs_a_day=1440), NOON - 3 * 365 * DAY, NOON)
    assert runs is not None and len(runs) == MOST_AT_ONCE
    assert runs[0][0] == NOON - 60 * (MOST_AT_ONCE - 1)
    assert runs[-1] == (NOON, "due", "9900 times were missed")  # beyond 10,000 nobody counts


def test_while_a_run_is_under_way_or_the_job_is_paused_nothing_is_due() -> None:
    assert due(job(), NOON - HOUR, NOON, is_busy=True) is None
    assert due(job(), NOON - HOUR, NOON, is_enabled=False) is None
    assert next_due(job(), JobProgress(NOON, is_busy=True)) is None


def test_a_clock_that_was_put_back_decides_nothing_and_goes_on_from_there() -> None:
    assert due(job(), NOON + DAY, NOON) == []
    assert due(job(), NOON, NOON + HOUR) == [(NOON + HOUR, "due", "")]


def test_the_budget_of_a_day_refuses_with_a_clear_word() -> None:
    spent = due(job(max_runs_a_day=2), NOON - HOUR, NOON, runs_today=2)
    assert spent == [(NOON, "refused", "its budget is spent: 2 runs a day")]
    tokens = due(job(max_tokens_a_day=1000), NOON - HOUR, NOON, tokens_today=1200)
    assert tokens == [(NOON, "refused", "its budget is spent: 1200 of 1000 tokens a day")]
    all_spent = due(job(), NOON - HOUR, NOON, spent_by_all="the budget of all jobs is spent")
    assert all_spent == [(NOON, "refused", "the budget of all jobs is spent")]
    some = due(job(missed="all", max_runs_a_day=3), NOON - 3 * HOUR, NOON, runs_today=1)
    assert some is not None and [state for _, state, _ in some] == ["due", "due", "refused"]


def test_a_day_is_one_of_the_jobs_time_zone() -> None:
    apia = job(time_zone="Pacific/Apia")  # 13 hours before UTC
    assert day_begins(apia, NOON) == NOON - HOUR
    assert day_begins(job(), NOON) == NOON - DAY // 2


def test_the_night_in_which_clocks_are_changed_has_one_run() -> None:
    berlin = job("30 2 * * *", time_zone="Europe/Berlin")
    for night in (datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)):
        decided, runs = int(night.timestamp()) - 6 * HOUR, []
        for now in range(decided, decided + 18 * HOUR, 600):
            runs += due(berlin, decided, now) or []
            decided = now
        assert [state for _, state, _ in runs] == ["due"]


def test_a_run_has_the_same_query_whenever_it_is_decided_and_another_for_each_attempt() -> None:
    def the_run() -> Any:
        found = due_runs(job(), JobProgress(NOON - HOUR), NOON)
        assert found is not None
        return found.runs[0]

    run = the_run()
    assert run.query_id == replace(the_run(), state=RunState.ASKED, detail="later").query_id
    others = {replace(run, attempt=2), replace(run, by_hand=True), replace(run, scheduled_at=NOON + 1)}
    assert len({run.query_id, *(other.query_id for other in others)}) == 4
