"""Users ask while every second somebody is killed or frozen."""

from __future__ import annotations

import time

import pytest
from chaos_harness.load import Users
from chaos_harness.run import random_chaos
from chaos_harness.system import ChaosSystem

SECONDS, MORE_SECONDS, EVERY = 5.0, 24.0, 1.0
SESSIONS = 3
MODEL_SECONDS = 0.2
pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]


@pytest.mark.long
@pytest.mark.parametrize("seconds", [SECONDS, pytest.param(MORE_SECONDS, marks=pytest.mark.thorough)])
async def test_nothing_is_lost_or_done_twice_whoever_dies(tmp_path, chaos_seed, seconds: float) -> None:
    with ChaosSystem(tmp_path, model_seconds=MODEL_SECONDS) as system:
        end = time.monotonic() + seconds
        users = Users([f"s{number}" for number in range(SESSIONS)], chaos_seed)
        result = await random_chaos(system, users, every=EVERY, goes_on=lambda _: time.monotonic() < end)
    assert result.violations == [], "\n".join(system.log)
    assert len(result.struck) >= seconds / EVERY / 2  # who is being started again, or has just been, is spared
    assert len(result.asked) >= SESSIONS  # on a starved machine; else many times as many
    assert not [line for line in system.log if "Traceback" in line]
