"""The moment for what nobody waits for: half a second of quiet, two seconds at most, for all together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from local.agents import quiet_period
from local.agents.quiet_period import QuietPeriod


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_period, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(quiet_period, "LONGEST_SECONDS", 0.2)


async def seconds_until(begins: Callable[[], object]) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await begins()  # type: ignore[misc]
    return loop.time() - began


async def test_where_nobody_was_answered_lately_it_begins_at_once() -> None:
    async with asyncio.timeout(0.04):
        await QuietPeriod().begins()


async def test_it_begins_a_moment_after_the_last_answer_for_all_who_wait() -> None:
    quiet = QuietPeriod()
    quiet.disturbed()
    waiting = [asyncio.create_task(seconds_until(quiet.begins)) for _ in range(2)]
    await asyncio.sleep(0.03)
    quiet.disturbed()
    waiting.append(asyncio.create_task(seconds_until(quiet.begins)))
    first, second, third = await asyncio.gather(*waiting)
    assert first == pytest.approx(second, abs=0.005)
    assert first >= 0.075
    assert third >= 0.045


async def test_it_begins_after_the_longest_time_while_answers_follow_each_other() -> None:
    quiet = QuietPeriod()
    quiet.disturbed()
    waiting = asyncio.create_task(seconds_until(quiet.begins))
    while not waiting.done():
        quiet.disturbed()
        await asyncio.sleep(0.005)
    assert await waiting >= 0.195
