"""A whole system on a small disk of its own: full at the start, full while processes die, read-only for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem

KILLED = ("generator", "journal", "memory", "web_search")
SECONDS = 90.0

pytestmark = pytest.mark.timeout(240)


def _said(system: WarmSystem, *words: str) -> bool:
    return any(all(word in line for word in words) for line in list(system.log))


def _when(holds: Callable[[], bool], action: Callable[[], object]) -> threading.Thread:
    """Do something beside the test as soon as something holds."""

    def wait() -> None:
        end = time.monotonic() + SECONDS
        while not holds() and time.monotonic() < end:
            time.sleep(0.05)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.fixture
def live(watching: Any, tmp_path: Path, small_disk: Any) -> Iterator[Any]:
    """Started while its disk is full; room is made when somebody has said that it waits for that."""
    data = small_disk.folder / "data"
    data.mkdir(mode=0o700)
    (data / "api_token").write_text("local2-of-an-earlier-start\n")
    small_disk.fill(room=256 * 1024)  # what everybody may say has been written down by an earlier start, too
    participants = {"participants": ["generator", "memory", "web_search", "web_fetch"]}
    config_dir = write_settings(tmp_path / "config", {"system": participants})
    system = WarmSystem(data, config_dir=config_dir, flags=["--backend", "stand_in"])
    making_room = _when(lambda: _said(system, "the disk is full"), small_disk.free)
    with system:
        making_room.join()
        assert _said(system, "the disk is full")
        live = watching(system, config_dir)
        with live.http:
            yield live


def _is_well(live: Any) -> bool:
    """Everybody works; the memory, which has a problem of its own for longer, looks again after a while."""
    return all(each["state"] == "ready" for each in live.health()["participants"])


def _post(live: Any, query_id: str) -> httpx.Response:
    body = {"query": "What is 2+2?", "query_id": query_id, "wait": False}
    return httpx.post(f"{live.system.api_url}/query", json=body, timeout=SECONDS, trust_env=False)


@pytest.mark.long
def test_whatever_happens_on_a_small_disk_everybody_comes_back_and_what_was_accepted_is_answered(
    live: Any, small_disk: Any
) -> None:
    live.wait_until(lambda: _is_well(live), SECONDS)
    assert live.ask("What is 2+2?", query_id="first")["answer"] == "2+2 = 4"
    accepted = _killed_while_it_is_full(live, small_disk)
    _killed_while_it_is_read_only(live, small_disk)
    _killed_faster_than_it_starts(live)
    for query_id in ("first", *accepted, "last"):
        assert live.ask("What is 2+2?", query_id=query_id)["answer"] == "2+2 = 4"
        live.wait_until(lambda query_id=query_id: live.on_record("memory.ingested", query_id) == 1)
    assert not _said(live.system, "Traceback")


def _killed_while_it_is_full(live: Any, small_disk: Any) -> list[str]:
    small_disk.fill()
    for name in KILLED:
        live.kill(name)
    accepted = [query_id for query_id in ("full1", "full2") if _post(live, query_id).status_code == 202]
    small_disk.free()
    live.wait_until(lambda: _is_well(live), SECONDS)
    return accepted


def _killed_while_it_is_read_only(live: Any, small_disk: Any) -> None:
    with small_disk.read_only():
        live.kill("generator")
        live.wait_until(lambda: _said(live.system, "opening waits", "conversation.db", "read-only"), SECONDS)
    live.wait_until(lambda: _is_well(live), SECONDS)


def _killed_faster_than_it_starts(live: Any) -> None:
    end = time.monotonic() + SECONDS
    while not _said(live.system, "web_fetch failed too often", "tried again"):
        assert time.monotonic() < end
        live.kill("web_fetch")  # with no earlier deaths: whoever is given up again and again waits up to 30 s
    live.wait_until(lambda: _is_well(live), SECONDS)
