"""What README.md and docs/extending.md tell users to write, written exactly so, on the real system."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.apps.temporary_system import TemporarySystem, write_settings

ROOT = Path(__file__).parents[2]
PAGES = [(ROOT / page).read_text("utf-8") for page in ("README.md", "docs/extending.md")]
# A file by its name in the text, and after its code the line for system.yaml.
EXAMPLE = re.compile(r"`(my_\w+/\w+\.py)`:\n\n```python\n(.*?)^```$.*?^```yaml\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def extended(watching: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A system with everything that the pages add."""
    folder = tmp_path_factory.mktemp("extending")
    added: list[str] = []
    for page in PAGES:
        for file, code, line in EXAMPLE.findall(page):
            (folder / "config" / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / "config" / file).write_text(code)
            added += yaml.safe_load(line)["more_participants"]
    (folder / "config" / "my_tools" / "broken.py").write_text("import nowhere_to_be_found\n")
    added += ["my_tools.broken:BrokenTool"]
    settings = {
        "system": {"participants": ["generator"], "more_participants": added},
        "diary": {"file": str(folder / "diary.md")},
        "news": {"question": "What is the capital of France?"},
    }
    config_dir = write_settings(folder / "config", settings)
    with TemporarySystem(folder / "data", config_dir=config_dir, flags=["--backend", "stand_in"]) as system:
        live = watching(system, config_dir)
        with live.http:
            yield live


def test_the_tool_of_the_readme_is_used(extended) -> None:
    answer = extended.ask("Roll a dice with 20 sides")
    assert [(call["tool"], call["args"]) for call in answer["tool_calls"]] == [("dice", {"sides": 20})]
    assert "You rolled a " in answer["answer"]


def test_the_observer_hears_every_answer(extended) -> None:
    diary = extended.config_dir.parent / "diary.md"
    extended.ask("Hello")
    extended.wait_until(lambda: diary.exists() and "## Hello\n" in diary.read_text("utf-8"))


def test_the_agent_asks_and_is_answered(extended) -> None:
    extended.wait_until(lambda: extended.http.get("/sessions/news").status_code == 200)
    extended.wait_until(lambda: len(extended.http.get("/sessions/news").json()["messages"]) > 2)
    messages = extended.http.get("/sessions/news").json()["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert "Paris" in messages[-1]["content"]


def test_a_tool_that_cannot_be_imported_stops_nobody_else_and_health_says_why(extended) -> None:
    broken = extended.participant("BrokenTool")
    assert broken["state"] == "failed"
    assert "cannot import my_tools.broken: No module named 'nowhere_to_be_found'" in broken["detail"]
