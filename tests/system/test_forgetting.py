"""What users delete is in no file any more, and nothing brings it back: not a restart, not a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local.cli.entry import main
from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem

Live = Any  # of conftest.py
Run = Callable[[], Any]
Holders = Callable[[], list[str]]
PARTICIPANTS = ["arbiter", "generator", "memory", "search_memory", "critic", "reward"]
RARE = "quokkaberry"
FORGOTTEN = ["[a memory that was deleted]"]
TOLD, ASKED = f"I take my coffee with {RARE} syrup.", "How do I take my coffee?"


@pytest.fixture
def run(tmp_path: Path, watching: Callable[..., Live]) -> Run:
    """Starts the system on the test's data directory, for as long as a `with` block lasts."""
    config_dir = write_settings(tmp_path / "config", {"system": {"participants": PARTICIPANTS}})

    @contextmanager
    def run() -> Iterator[Live]:
        flags = ["--backend", "stand_in", "--respondent-b"]
        with WarmSystem(tmp_path / "data", config_dir=config_dir, flags=flags) as system:
            live = watching(system, config_dir)
            with live.http:
                yield live

    return run


@pytest.fixture
def holders(tmp_path: Path, files_with: Callable[..., list[str]]) -> Holders:
    """Tells which files of the data directory the rare word is in."""
    return partial(files_with, tmp_path / "data", RARE)


def what_it_recalled(answer: dict[str, Any]) -> list[str]:
    return [call["result"] for call in answer["tool_calls"]]


def memories(live: Live) -> list[dict[str, Any]]:
    engrams: list[dict[str, Any]] = live.http.get("/memory").json()["engrams"]
    return engrams


def tell_and_recall(live: Live, holders: Holders) -> None:
    """A preference is told in one session and recalled in another; everybody has looked at both answers."""
    live.ask(TOLD, session_id="told")
    live.wait_until(lambda: bool(memories(live)))
    answer = live.ask(ASKED, session_id="asked")
    assert RARE in answer["answer"]
    assert [call["tool"] for call in answer["tool_calls"]] == ["search_memory"]
    live.wait_until(lambda: all(engram["score"] for engram in memories(live)) and len(memories(live)) == 2)
    live.wait_until(lambda: is_at_rest(live))
    assert holders()


def is_at_rest(live: Live) -> bool:
    """Whether the memory has done, here and elsewhere, what it was given."""
    counters = live.participant("memory").get("counters", {})
    return not any(counters.get(name, 1) for name in ("classifications_pending", "deletions_pending"))


def is_forgotten(live: Live, holders: Holders) -> bool:
    """Everybody has done their part, the second respondent, too."""
    sessions = live.http.get("/sessions").json()["sessions"]
    return not (sessions or memories(live) or holders()) and is_at_rest(live)


def check_that_nothing_brings_it_back(run: Run, holders: Holders) -> None:
    assert holders() == []
    with run() as live:
        live.wait_until(lambda: is_forgotten(live, holders))
        assert live.http.get("/memory", params={"query": "coffee syrup"}).json()["hits"] == []
        assert live.http.get("/memory/facts").json()["facts"] == []
        live.http.get("/memory", params={"query": RARE})
    assert holders() == []


@pytest.mark.thorough
def test_deleted_memories_are_in_no_file_and_nothing_brings_them_back(run: Run, holders: Holders) -> None:
    with run() as live:
        tell_and_recall(live, holders)
        for engram in memories(live):
            with pytest.raises(SystemExit, match="0"):
                main(["memory", "delete", engram["engram_id"], "--data-dir", str(live.system.data_dir)])
        live.wait_until(lambda: is_forgotten(live, holders))
    check_that_nothing_brings_it_back(run, holders)


@pytest.mark.thorough
def test_an_answer_that_rests_on_a_deleted_memory_is_still_given_until_it_is_deleted_too(
    run: Run, holders: Holders
) -> None:
    with run() as live:
        tell_and_recall(live, holders)
        asked, told = memories(live)
        deleted = live.http.delete(f"/memory/{told['engram_id']}").json()
        assert deleted["repeated_in"] == [asked["engram_id"]]
        path = f"/query/{asked['query_id']}"
        live.wait_until(lambda: what_it_recalled(live.http.get(path).json()) == FORGOTTEN)
        live.wait_until(lambda: is_at_rest(live))
    with run() as live:
        answer = live.http.get(path).json()
        assert (answer["status"], what_it_recalled(answer)) == ("answered", FORGOTTEN)
        assert live.ask(ASKED, query_id=asked["query_id"])["answer"] == answer["answer"]
        with live.stream("GET", f"{path}/events") as events:
            assert next(data["answer"] for kind, data in events if kind == "response") == answer["answer"]
        live.http.delete(f"/memory/{deleted['repeated_in'][0]}").raise_for_status()
        live.wait_until(lambda: is_forgotten(live, holders))
        assert live.http.get(path).status_code == 410
    check_that_nothing_brings_it_back(run, holders)


def test_deleted_sessions_are_in_no_file_and_nothing_brings_them_back_nor_an_incognito_one(
    run: Run, holders: Holders
) -> None:
    with run() as live:
        tell_and_recall(live, holders)
        for session_id in ("told", "asked"):
            live.http.delete(f"/sessions/{session_id}").raise_for_status()
        live.wait_until(lambda: is_forgotten(live, holders))
        live.ask(TOLD, session_id="incognito", incognito=True)
        live.ask("Hello?", session_id="plain")
        live.wait_until(lambda: [engram["session_id"] for engram in memories(live)] == ["plain"])
        live.http.delete("/sessions/plain").raise_for_status()
        assert holders()  # until the system ends
    check_that_nothing_brings_it_back(run, holders)
