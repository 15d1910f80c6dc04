"""When it is time for a routine, with a clock in hand; and what is kept of that."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from local.core.errors import StoreFailed
from local.reflection.routine import RoutineDiary, RoutinePolicy, RoutineState, is_on, what_it_waits_for

POLICY = RoutinePolicy(is_on=True, every_seconds=24 * 3600.0, idle_seconds=600.0, tokens_per_day=20_000)
FILE_NAME = "dreams.json"
NOON = datetime(2026, 11, 23, 12).timestamp()
TODAY = date(2026, 11, 23)
DONE = RoutineState(done_at=NOON - 25 * 3600)
IDLE = 3600.0


@pytest.mark.parametrize(
    ("state", "policy", "idle", "why"),
    [
        (DONE, POLICY, IDLE, ""),
        (RoutineState(), POLICY, IDLE, ""),
        (replace(DONE, is_on=False), POLICY, IDLE, "switched off"),
        (DONE, replace(POLICY, is_on=False), IDLE, "switched off"),
        (replace(DONE, done_at=NOON - 3600), POLICY, IDLE, "23.0 h until"),
        (DONE, POLICY, 599.0, "10 min without a question"),
        (DONE.spent(20_000, TODAY), POLICY, IDLE, "20000 of 20000 tokens"),
        (DONE.spent(20_000, TODAY - timedelta(days=1)), POLICY, IDLE, ""),
        (DONE, replace(POLICY, tokens_per_day=0), IDLE, "0 of 0 tokens"),
    ],
)
def test_it_waits_for_its_time_for_silence_and_for_tokens(
    state: RoutineState, policy: RoutinePolicy, idle: float, why: str
) -> None:
    waits = what_it_waits_for(state, policy, NOON, idle)
    assert why in waits and bool(why) == bool(waits)


def test_a_clock_that_was_set_back_by_years_keeps_it_from_nothing_for_years() -> None:
    ahead = RoutineState(done_at=NOON + 10 * 365 * 86400)
    assert what_it_waits_for(ahead, POLICY, NOON, IDLE).startswith("24.0 h")


def test_what_it_was_switched_to_outdoes_the_settings() -> None:
    off = replace(POLICY, is_on=False)
    assert [is_on(RoutineState(switched), off) for switched in (None, False, True)] == [False, False, True]


def test_the_diary_keeps_the_state_and_survives_a_spoilt_file(tmp_path: Path) -> None:
    diary = RoutineDiary(tmp_path, FILE_NAME)
    assert diary.read() == RoutineState()
    state = RoutineState(True, 3.0, 4.0, "2026-11-23", 7)
    diary.write(state)
    assert RoutineDiary(tmp_path, FILE_NAME).read() == state
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    (tmp_path / FILE_NAME).write_text("{nonsense")
    assert diary.read() == RoutineState()
    with pytest.raises(StoreFailed, match="nowhere"):
        RoutineDiary(tmp_path / "nowhere", FILE_NAME).write(state)
