"""A second respondent in a process of its own: it answers behind the first, and no frontend shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from local.bus.envelope import decode
from local.bus.messages import ResponseGeneration
from local.cli.temporary_system import write_settings
from local.journal.store import JournalView
from local.stories.player import STORIES, LocalWeb, load_pages
from tests.warm.warm_system import WarmSystem

FLAGS = ["--backend", "stand_in", "--respondent-b", "--model-b", "gemma4:e2b", "--temperature-b", "0.9"]


@pytest.fixture(scope="module")
def both(watching: type[Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("two")
    with LocalWeb(load_pages(STORIES / "web")) as web:
        system = {"participants": ["arbiter", "generator", "web_search"]}
        config_dir = write_settings(folder / "config", {**web.settings(), "system": system})
        with WarmSystem(folder / "data", config_dir=config_dir, flags=FLAGS) as running:
            live = watching(running, config_dir)
            with live.http:
                yield live


def answers(live: Any, query_id: str) -> list[ResponseGeneration]:
    """What the journal has, in order."""
    with JournalView(live.system.data_dir / "journal.db") as journal:
        stored = journal.read(limit=10, subjects=["response.generation"], correlation_id=query_id)
    return [ResponseGeneration.decode(decode(found.entry.frame).payload) for found in stored]


def test_it_takes_part_and_both_answer_but_frontends_show_the_first_alone(both: Any) -> None:
    both.wait_until(lambda: both.health()["status"] == "ok")
    both.wait_until(
        lambda: both.participant("generator_b")["kind"] == "agent"
    )  # which it says itself, in its first beat
    assert both.participant("generator_b")["state"] == "ready"
    answer = both.ask("Search the web for AI news", query_id="both", session_id="s")
    both.wait_until(lambda: both.on_record("response.generation", "both") == 2)
    first, second = answers(both, "both")
    assert (first.respondent_id, second.respondent_id, second.status) == ("A", "B", "answered")
    assert [call.result for call in second.tool_calls] == [call.result for call in first.tool_calls]
    assert both.on_record("tool.request.web_search", "both") == 1
    assert both.on_record("answer.dialog", "both") == both.on_record("query.accepted", "both") == 1
    assert both.http.get("/query/both").json()["answer"] == answer["answer"] == first.answer
    assert len(both.http.get("/sessions/s").json()["turns"]) == 1


def test_killed_it_comes_back_and_answers_what_it_was_at_while_the_first_does_not_notice(both: Any) -> None:
    both.ask("What is the capital of Italy?", query_id="before", session_id="t")
    both.kill("generator_b")
    assert "Tokyo" in both.ask("What is the capital of Japan?", query_id="after", session_id="t")["answer"]
    for query_id in ("before", "after"):
        both.wait_until(lambda query_id=query_id: both.on_record("response.generation", query_id) == 2)
        assert [answer.respondent_id for answer in answers(both, query_id)] == ["A", "B"]
