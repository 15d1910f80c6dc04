"""A cancel reaches the model server and the tools at once, and what has taken effect is on record."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest

from local.journal.store import JournalView

SECONDS = 90.0
TIMES = 5
LIMIT = 0.2  # the median, because one of them may fall into a pause of a busy machine


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sys.path.insert(0, str(Path(__file__).parent))
    harness = importlib.import_module("cancel_harness")
    with harness.running(tmp_path_factory.mktemp("cancelling")) as stage:
        yield stage


@pytest.mark.parametrize(("phase", "thinking", "answer"), [("thinking", "Gulls", ""), ("content", "", "Gulls")])
def test_the_model_server_sees_the_connection_close_and_the_user_what_was_said(
    stage: Any, phase: str, thinking: str, answer: str
) -> None:
    assert median(stage.seconds_until_noticed(phase) for _ in range(TIMES)) <= LIMIT
    for response in stage.responses[-TIMES:]:
        assert (response["status"], response["thinking"], response["answer"]) == ("cancelled", thinking, answer)


def test_a_tool_is_cancelled_and_what_may_have_taken_effect_is_recorded(stage: Any) -> None:
    assert median(stage.seconds_until_noticed("tool") for _ in range(TIMES)) <= LIMIT
    response = stage.responses[-1]
    assert response["status"] == "cancelled"
    [record] = _recorded_results(stage, response["query_id"])
    assert '"outcome_unknown"' in record


def _recorded_results(stage: Any, query_id: str) -> list[str]:
    """The results of the letter tool that the journal has; looks at every heartbeat until there is one."""
    url = f"{stage.system.api_url}/events?subject=participant.status"
    with (
        JournalView(stage.system.data_dir / "journal.db") as journal,
        httpx.stream("GET", url, timeout=SECONDS, trust_env=False) as beats,
    ):
        for _ in beats.iter_lines():
            if found := journal.read(limit=10, subjects=["tool.result.letter"], correlation_id=query_id):
                return [stored.entry.frame.rpartition(b"\0")[2].decode() for stored in found]
    raise AssertionError("the bus fell silent")
