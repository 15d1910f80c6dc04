"""Ticks that all processes of a machine share, on a clock of our own."""

from __future__ import annotations

from itertools import pairwise

import pytest

from local.core.files import tick_number, until_next_tick


@pytest.mark.parametrize("began", [100.0, 100.2, 101.999, 107.5])
def test_processes_that_wait_for_ticks_wake_together_whenever_they_began(began: float) -> None:
    woken = [began]
    for _ in range(4):
        woken.append(woken[-1] + until_next_tick(woken[-1], 2.0))
    assert [now % 2.0 for now in woken[1:]] == pytest.approx([0.0] * 4)
    assert all(0 < later - now < 2.01 for now, later in pairwise(woken))


def test_a_timer_that_goes_off_a_moment_early_has_reached_its_tick() -> None:
    early = 5.0 - 1e-9
    assert tick_number(early, 5.0) == tick_number(5.0, 5.0) == 1
    assert until_next_tick(early, 5.0) == pytest.approx(5.0)
    assert tick_number(4.9, 5.0) == 0
