"""The moment for what nobody waits for: half a second of quiet, two seconds at most, for all together."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable

import pytest

from local.models.arbiter import LONGEST_SECONDS, QUIET_SECONDS, QuietPeriod


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """The loop's own, which jumps to what is due next: nothing is late, however busy the machine is."""
    loop = asyncio.get_running_loop()
    now = loop.time()
    selector: selectors.BaseSelector = loop._selector  # type: ignore[attr-defined]
    select = selector.select

    def jump(timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        nonlocal now
        now += timeout or 0.0
        return select(0)

    monkeypatch.setattr(selector, "select", jump)
    monkeypatch.setattr(loop, "time", lambda: now)
    return loop.time


async def moment_of(begins: Callable[[], object], clock: Callable[[], float]) -> float:
    await begins()  # type: ignore[misc]
    return clock()


async def test_where_nobody_was_answered_lately_it_begins_at_once(clock: Callable[[], float]) -> None:
    before = clock()
    assert await moment_of(QuietPeriod().begins, clock) == before


async def test_it_begins_a_moment_after_the_last_answer_for_all_who_wait(clock: Callable[[], float]) -> None:
    quiet = QuietPeriod()
    quiet.disturbed()
    waiting = [asyncio.create_task(moment_of(quiet.begins, clock)) for _ in range(2)]
    await asyncio.sleep(0.3)
    quiet.disturbed()
    last = clock()
    waiting.append(asyncio.create_task(moment_of(quiet.begins, clock)))
    assert await asyncio.gather(*waiting) == [pytest.approx(last + QUIET_SECONDS)] * 3


async def test_it_begins_after_the_longest_time_while_answers_follow_each_other(clock: Callable[[], float]) -> None:
    quiet, began = QuietPeriod(), clock()
    quiet.disturbed()
    waiting = asyncio.create_task(moment_of(quiet.begins, clock))
    while not waiting.done():
        quiet.disturbed()
        await asyncio.sleep(0.05)
    assert await waiting == pytest.approx(began + LONGEST_SECONDS)
