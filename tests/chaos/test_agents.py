"""Users have tasks done by agents while every second somebody is killed or frozen."""

from __future__ import annotations

import time

import pytest
from chaos_harness.agents_run import agents_chaos
from chaos_harness.load import Users
from chaos_harness.system import ChaosSystem

SECONDS, EVERY = 24.0, 1.0
SESSIONS = 3
MODEL_SECONDS = 0.1
pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]


@pytest.mark.thorough  # test_swarm kills the swarm and the generator at each of their steps
async def test_each_task_of_an_agent_is_answered_once_whoever_dies(tmp_path, chaos_seed) -> None:
    with ChaosSystem(tmp_path, model_seconds=MODEL_SECONDS, agents=True) as system:
        end = time.monotonic() + SECONDS
        users = Users([f"s{number}" for number in range(SESSIONS)], chaos_seed)
        result = await agents_chaos(system, users, every=EVERY, goes_on=lambda: time.monotonic() < end)
    assert result.violations == [], "\n".join(system.log)
    assert len(result.struck) >= SECONDS / EVERY / 2
    assert len(result.asked) >= SESSIONS
    assert not [line for line in system.log if "Traceback" in line]
