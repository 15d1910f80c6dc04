"""How busy a thread is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from local.runtime import runner as thread_load
from local.runtime.runner import ThreadLoad


@pytest.fixture(params=["as here", "without schedstat"])
def load(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path) -> ThreadLoad:
    monkeypatch.setattr(thread_load, "LEAST_SECONDS", 0.05)
    if request.param == "without schedstat":
        monkeypatch.setattr(thread_load, "SCHEDSTAT", tmp_path / "none")
    return ThreadLoad()


def compute() -> None:
    started = time.thread_time()
    while time.thread_time() - started < 0.06:
        pass


def looks(load: ThreadLoad, doing: Callable[[], None]) -> Iterator[int]:
    """Several: of one at which others had the processors most of the time nothing follows."""
    for _ in range(20):
        doing()
        yield load.percent()


def test_a_thread_that_computes_is_busy_and_one_that_sleeps_is_not(load: ThreadLoad) -> None:
    assert any(percent >= 10 and percent % 10 == 0 for percent in looks(load, compute))
    assert any(percent == 0 for percent in looks(load, lambda: time.sleep(0.2)))
