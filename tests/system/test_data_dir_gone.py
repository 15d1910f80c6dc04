"""The data directory goes away while the system runs: nothing is accepted that would not be kept, and it is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cli.temporary_system import SystemDidNotStart
from tests.warm.warm_system import WarmSystem


@pytest.fixture
def live(start: Callable[[Path], WarmSystem], watching: Any, config_dir: Path, tmp_path: Path) -> Iterator[Any]:
    with start(tmp_path / "data") as system:
        live = watching(system, config_dir)
        with live.http:
            yield live


def _refused(live: Any, number: int) -> httpx.Response:
    body = {"query": "What is 2+2?", "query_id": f"gone{number}"}
    return httpx.post(f"{live.system.api_url}/query", json=body, timeout=90, trust_env=False)


def test_a_directory_that_was_moved_away_refuses_queries_until_it_is_back_and_keeps_its_lock(
    live: Any, start: Callable[[Path], WarmSystem], tmp_path: Path
) -> None:
    live.ask("What is 2+2?", session_id="kept")
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.rename(elsewhere)
    for number in range(6):
        response = _refused(live, number)
        assert response.status_code == 503, response.text
        # The journal refuses, or before it the API, once the generator has reported that its store is gone as well.
        assert response.json()["error"]["kind"] in ("journal_gone", "unavailable"), response.text
    live.wait_until(lambda: "is gone" in (live.health()["problem"] or ""))
    assert live.health()["status"] == "degraded"
    assert any("is gone" in line for line in live.system.log)
    assert not data.exists()
    elsewhere.rename(data)
    live.wait_until(lambda: live.health()["status"] == "ok")
    assert live.ask("What is 2+2?", query_id="gone0")["answer"] == "2+2 = 4"
    assert live.http.get("/sessions/kept").status_code == 200
    _no_second_system_gets_in_when_the_lock_was_removed(live, start, data)


@pytest.mark.thorough  # the test above has what is refused meanwhile
def test_a_directory_in_the_place_of_the_one_before_is_what_counts(live: Any, tmp_path: Path) -> None:
    live.ask("What is 2+2?", session_id="old")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    (tmp_path / "data").mkdir()
    live.wait_until(lambda: (tmp_path / "data" / "conversation.db").exists() and live.health()["status"] == "ok")
    live.ask("What is 2+2?", session_id="new")
    assert live.http.get("/sessions/new").status_code == 200
    assert live.http.get("/sessions/old").status_code == 404


def _no_second_system_gets_in_when_the_lock_was_removed(
    live: Any, start: Callable[[Path], WarmSystem], data: Path
) -> None:
    (data / "lock").unlink()
    live.wait_until((data / "lock").exists)
    with pytest.raises(SystemDidNotStart, match="runs on"), start(data):
        pass
    live.wait_until(lambda: live.health()["status"] == "ok")
    live.ask("What is 2+2?")
