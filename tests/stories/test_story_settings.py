"""What stories played on a real model take over from the user's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from local.core.errors import ConfigError
from local.stories import player as stories
from local.stories.player import STORIES, run_stories, without_thinking
from local.stories.settings import model_settings
from local.stories.story import find_stories, load_story

MODELS = """
roles: {chat: [llama_server/tiny]}
providers:
  llama_server: {kind: llama_server, model: files/tiny.gguf}
  box: {kind: openai, url: "http://127.0.0.1:9/v1"}
"""


def test_the_models_of_the_user_are_kept_and_their_paths_are_absolute(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(MODELS)
    (tmp_path / "system.yaml").write_text("backend: llama_server\nmore_participants: [x:Y]\n")
    (tmp_path / "generator.yaml").write_text("temperature: 0\nseed: 7\nmax_tool_calls: 3\nagent_id: Me\n")
    taken = model_settings(tmp_path)
    assert taken["generator"] == {"temperature": 0, "seed": 7, "max_tool_calls": 3}
    assert taken["models"]["roles"] == {"chat": ["llama_server/tiny"]}
    assert taken["models"]["providers"]["llama_server"]["model"] == str(tmp_path / "files" / "tiny.gguf")
    assert taken["models"]["providers"]["box"]["url"] == "http://127.0.0.1:9/v1"
    assert taken["system"] == {"backend": "llama_server"}


def test_live_stories_with_their_own_web_run_on_the_models_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL2_CONFIG_DIR", str(tmp_path))
    (tmp_path / "models.yaml").write_text(MODELS)
    seen: dict[str, Any] = {}

    def system(folder: Path, *, config_dir: Path, flags: Any, start_seconds: float) -> Any:
        seen["models"] = yaml.safe_load((config_dir / "models.yaml").read_text())
        seen["search"] = yaml.safe_load((config_dir / "web_search.yaml").read_text())
        seen["seconds"] = start_seconds
        raise ConfigError("seen enough")

    monkeypatch.setattr(stories, "TemporarySystem", system)
    with pytest.raises(ConfigError, match="seen enough"):
        run_stories(["S1"], live=True, own_web=True, show=print)
    assert seen["models"]["roles"] == {"chat": ["llama_server/tiny"]}
    assert seen["search"]["searxng_url"].startswith("http://127.0.0.1:")
    assert seen["seconds"] > 600


def test_thinking_is_not_expected_of_a_model_that_does_not_think() -> None:
    story = without_thinking(load_story(find_stories(["S1"], STORIES)[0]))
    assert story.turns[0].expect.thinking is None
    assert "generation.thinking" not in (*story.bus.present, *story.bus.in_order)
    assert "generation.token" in story.bus.present
