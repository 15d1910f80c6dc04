"""The stories on the real system, and the runner that plays them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from local.cli.command_table import run_command
from local.core.errors import ConfigError
from local.stories import player as stories
from local.stories.commands import StoryCommands
from local.stories.player import STORIES, run_stories
from tests.warm.warm_system import WarmSystem


@pytest.fixture
def _commands_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """No interpreter for each command: that one is started is what `tests/stories/test_stories.py` looks at."""

    def run(_: StoryCommands, words: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
        capfd.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return run_command(words), "".join(capfd.readouterr())

    monkeypatch.setattr(StoryCommands, "run", run)


@pytest.mark.long
@pytest.mark.usefixtures("_commands_here")
def test_every_story_passes_and_nobody_refuses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the whole default system: everybody says what they have declared, and nothing else."""
    refused: list[object] = []

    class LookedAt(WarmSystem):
        def __exit__(self, *error: object) -> None:
            health = httpx.get(f"{self.api_url}/health", trust_env=False).json()
            refused.extend(part["counters"].get("refused", 0) for part in health["participants"])
            rejected = self.data_dir / "rejected.jsonl"
            refused.append(rejected.read_text() if rejected.exists() else 0)
            super().__exit__(*error)

    monkeypatch.setattr(stories, "TemporarySystem", LookedAt)
    lines: list[str] = []
    status = run_stories([], show=lines.append)
    assert status == 0, "\n".join(lines)
    checks = [line for line in lines if line.startswith("  ")]
    assert len(checks) > 20
    assert all(line.startswith("  ✓ ") for line in checks)
    left_out = [line for line in lines if "left out: there is no bubblewrap" in line]
    number = len(list(STORIES.glob("*.yaml"))) - len(left_out)
    assert not (left_out and os.environ.get("CI")), "CI has the sandbox"
    assert lines[-1] == f"{number} of {number} stories passed"
    assert len(refused) > 10 and set(refused) == {0}


def test_a_story_that_does_not_come_true_fails_the_run_and_says_what_was_found(live, tmp_path: Path) -> None:
    story = tmp_path / "S9_wrong.yaml"
    turn = "{query: Name the capital of France, expect: {answer_contains: [London]}}"
    story.write_text(f"id: S9\ntitle: Wrong\nturns: [{turn}]\n")
    lines: list[str] = []
    assert run_stories(["S1", str(story)], api=live.system.api_url, show=lines.append) == 1
    assert "  ✗ turn 1: the answer contains “London”: The capital of France is Paris." in lines
    assert lines[-1] == "1 of 2 stories passed"


def test_what_comes_after_the_answer_is_waited_for(live, tmp_path: Path) -> None:
    story = tmp_path / "S9_later.yaml"
    story.write_text("id: S9\ntitle: Later\nturns: [{query: Name the capital of France}]\nwait_for: [answer.dialog]\n")
    lines: list[str] = []
    assert run_stories([str(story)], api=live.system.api_url, show=lines.append) == 0
    assert "  ✓ answer.dialog comes: answer.dialog" in lines


def test_live_stories_are_refused_by_the_stand_in(live) -> None:
    with pytest.raises(ConfigError, match="--live needs a model server"):
        run_stories(["S1"], api=live.system.api_url, live=True, show=print)
