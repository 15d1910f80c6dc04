"""How busy a thread is."""

from __future__ import annotations

import time

import pytest

from local.runtime import thread_load
from local.runtime.thread_load import ThreadLoad


@pytest.fixture(params=["as here", "without schedstat"])
def load(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path) -> ThreadLoad:
    monkeypatch.setattr(thread_load, "LEAST_SECONDS", 0.05)
    if request.param == "without schedstat":
        monkeypatch.setattr(thread_load, "SCHEDSTAT", tmp_path / "none")
    return ThreadLoad()


def test_a_thread_that_computes_is_busy_and_one_that_sleeps_is_not(load: ThreadLoad) -> None:
    started = time.thread_time()
    while time.thread_time() - started < 0.06:
        pass
    busy = load.percent()
    time.sleep(0.2)
    assert busy > load.percent() <= 30
    assert busy % 10 == 0


def test_two_looks_in_a_moment_say_the_same(load: ThreadLoad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_load, "LEAST_SECONDS", 1000.0)
    assert load.percent() == load.percent() == 0
