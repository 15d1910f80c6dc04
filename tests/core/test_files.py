"""Ticks that all processes of a machine share, on a clock of our own, and private files."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from local.core.files import tick_number, until_next_tick, write_private


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


def test_a_private_file_that_several_write_at_once_is_whole(tmp_path: Path) -> None:
    path, texts = tmp_path / "state.json", [letter * 9_000 for letter in "abcdefgh"]
    part = tmp_path / "state.json.part"
    part.write_text("what is left of a process that was killed")
    part.chmod(0o666)
    with ThreadPoolExecutor(len(texts)) as pool:
        for _ in range(20):
            list(pool.map(lambda text: write_private(path, text), texts))
            assert path.read_text() in texts
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("of somebody else")
    (tmp_path / "state.json.part").symlink_to(other)
    with pytest.raises(OSError, match="symbolic"):
        write_private(tmp_path / "state.json", "mine")
    assert other.read_text() == "of somebody else"
