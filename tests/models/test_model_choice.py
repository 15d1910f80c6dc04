"""A choice of model is written into the user's models.yaml, and everything else in there stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.core.errors import ConfigError
from local.models.settings import choose_model, load_models

DEFAULTS = Path(__file__).parents[2] / "config"


@pytest.fixture
def layers(tmp_path: Path) -> list[Path]:
    return [DEFAULTS, tmp_path]


def test_the_next_choice_takes_its_place_and_what_follows_in_the_chain_stays(layers: list[Path]) -> None:
    (layers[1] / "models.yaml").write_text(
        "roles:\n  chat: [ollama/a, openai/b]\nproviders: {openai: {kind: openai}}\n"
    )
    choose_model(layers, "llama_server", "c", layers[1] / "c.gguf")
    assert load_models(layers).roles.chat == ("llama_server/c", "openai/b")
    choose_model(layers, "ollama", "d")
    choose_model(layers, "ollama", "d")
    models = load_models(layers)
    assert models.roles.chat == ("ollama/d", "openai/b")
    assert models.providers["llama_server"].model == layers[1] / "c.gguf"


def test_comments_order_and_quotes_of_the_user_stay(layers: list[Path]) -> None:
    path = layers[1] / "models.yaml"
    path.write_text("# mine\nkeep_alive: '5m'  # short\n\n# who answers\nroles:\n  fast: [\"ollama/x\"]\n")
    choose_model(layers, "ollama", "gemma4:e2b")
    assert path.read_text() == (
        "# mine\nkeep_alive: '5m'  # short\n\n# who answers\nroles:\n  fast: [\"ollama/x\"]\n"
        "  chat:\n    - ollama/gemma4:e2b\n"
    )


def test_a_file_with_a_mistake_is_not_touched(layers: list[Path]) -> None:
    path = layers[1] / "models.yaml"
    path.write_text("keep_alive: [\n")
    with pytest.raises(ConfigError, match=r"models\.yaml"):
        choose_model(layers, "ollama", "x")
    assert path.read_text() == "keep_alive: [\n"


def test_a_link_to_the_settings_stays_a_link(layers: list[Path], tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "models.yaml"
    target.write_text("keep_alive: 1m\n")
    target.chmod(0o640)
    (layers[1] / "models.yaml").symlink_to(target)
    choose_model(layers, "ollama", "x")
    assert (layers[1] / "models.yaml").is_symlink()
    assert "ollama/x" in target.read_text() and target.stat().st_mode & 0o777 == 0o640


def test_where_the_stand_in_is_asked_for_no_model_is_chosen(layers: list[Path]) -> None:
    (layers[1] / "system.yaml").write_text("backend: stand_in\n")
    with pytest.raises(ConfigError, match=r"backend: stand_in in system\.yaml keeps every model from answering"):
        choose_model(layers, "ollama", "x")
    assert not (layers[1] / "models.yaml").exists()
