"""When it is time to dream, with a clock in hand; and what is kept of that."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from local.agents.dreaming.dream_diary import FILE_NAME, DreamDiary, DreamState
from local.agents.dreaming.dream_time import is_on, out_of_tokens, what_it_waits_for
from local.agents.dreaming.dreamer_config import DreamerConfig
from local.errors import StoreFailed

CONFIG = DreamerConfig()
NOON = datetime(2026, 11, 23, 12).timestamp()
TODAY = date(2026, 11, 23)
DREAMT = DreamState(dreamt_at=NOON - 25 * 3600)
IDLE = 3600.0


@pytest.mark.parametrize(
    ("state", "config", "idle", "why"),
    [
        (DREAMT, CONFIG, IDLE, ""),
        (DreamState(), CONFIG, IDLE, ""),
        (replace(DREAMT, is_on=False), CONFIG, IDLE, "switched off"),
        (DREAMT, CONFIG.model_copy(update={"dream": False}), IDLE, "switched off"),
        (replace(DREAMT, dreamt_at=NOON - 3600), CONFIG, IDLE, "23.0 h until"),
        (DREAMT, CONFIG, 599.0, "10 min without a question"),
        (DREAMT.spent(20_000, TODAY), CONFIG, IDLE, "20000 of 20000 tokens"),
        (DREAMT.spent(20_000, TODAY - timedelta(days=1)), CONFIG, IDLE, ""),
        (DREAMT, CONFIG.model_copy(update={"tokens_per_day": 0}), IDLE, "0 of 0 tokens"),
    ],
)
def test_it_waits_for_its_time_for_silence_and_for_tokens(
    state: DreamState, config: DreamerConfig, idle: float, why: str
) -> None:
    waits = what_it_waits_for(state, config, NOON, idle)
    assert why in waits and bool(why) == bool(waits)


def test_a_clock_that_was_set_back_by_years_keeps_it_from_nothing_for_years() -> None:
    ahead = DreamState(dreamt_at=NOON + 10 * 365 * 86400)
    assert "24.0 h" in what_it_waits_for(ahead, CONFIG, NOON, IDLE)


def test_what_it_was_switched_to_outdoes_the_settings() -> None:
    off = CONFIG.model_copy(update={"dream": False})
    assert [is_on(DreamState(switched), off) for switched in (None, False, True)] == [False, False, True]


def test_tokens_are_counted_by_day() -> None:
    state = DreamState().spent(5, TODAY).spent(7, TODAY)
    assert state.tokens_on(TODAY) == 12
    assert state.spent(3, TODAY + timedelta(days=1)).tokens_on(TODAY + timedelta(days=1)) == 3
    assert out_of_tokens(state, CONFIG, NOON) == ""


def test_the_diary_keeps_the_state_and_survives_a_spoilt_file(tmp_path: Path) -> None:
    diary = DreamDiary(tmp_path)
    assert diary.read() == DreamState()
    state = DreamState(True, 3.0, 4.0, "2026-11-23", 7)
    diary.write(state)
    assert DreamDiary(tmp_path).read() == state
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    (tmp_path / FILE_NAME).write_text("{nonsense")
    assert diary.read() == DreamState()
    with pytest.raises(StoreFailed, match="nowhere"):
        DreamDiary(tmp_path / "nowhere").write(state)
