"""Settings are shown with what they mean, and changed key by key in the user's own file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.core.shipped import shipped_dir
from local.run.settings_files import HIDDEN, SettingsFiles, SettingsRefused

DEFAULTS = shipped_dir() / "config"
MINE = """# My own words.
num_ctx: 8000   # small

temperature: 0.5
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "generator.yaml").write_text(MINE)
    return tmp_path


@pytest.fixture
def files(mine: Path) -> SettingsFiles:
    return SettingsFiles([DEFAULTS, mine])


def test_every_file_is_there_with_who_reads_it_and_can_be_shown(files: SettingsFiles) -> None:
    names = files.names()
    assert {"system", "models", "api", "journal", "generator", "web_search", "memory"} <= names.keys()
    assert names["system"] == ["system"] and "generator" in names["generator"]
    for name in names:
        shown = json.loads(json.dumps(files.show(name)))
        assert (shown["problem"], shown["restart_needed"]) == (None, names[name])
        assert shown["values"].keys() == shown["defaults"].keys() <= shown["schema"]["properties"].keys()


def test_what_holds_and_what_would_without_the_user_s_file(files: SettingsFiles, mine: Path) -> None:
    shown = files.show("generator")
    assert (shown["values"]["num_ctx"], shown["defaults"]["num_ctx"]) == (8000, 32000)
    assert shown["file"] == str(mine / "generator.yaml")


def test_a_change_leaves_everything_else_in_the_file_as_it_is(files: SettingsFiles, mine: Path) -> None:
    shown = files.change("generator", {"num_ctx": 16_000, "fast_model": None})
    assert (shown["values"]["num_ctx"], shown["values"]["temperature"]) == (16_000, 0.5)
    words = " ".join((mine / "generator.yaml").read_text().split())
    assert words == "# My own words. num_ctx: 16000 # small temperature: 0.5 fast_model:"


@pytest.mark.parametrize("values", [{"num_ctx": "many"}, {"num_ctx": -1}, {"nun_ctx": 1}, {"num_ctx": None}])
def test_what_is_no_good_is_refused_with_the_key_and_changes_nothing(
    files: SettingsFiles, mine: Path, values: dict[str, object]
) -> None:
    with pytest.raises(SettingsRefused, match=next(iter(values))) as refused:
        files.change("generator", values)
    assert refused.value.kind == "invalid" and "/tmp" not in str(refused.value)
    assert (mine / "generator.yaml").read_text() == MINE


def test_a_file_that_is_no_good_says_why_and_can_be_mended(files: SettingsFiles, mine: Path) -> None:
    (mine / "generator.yaml").write_text("num_ctx: many\n")
    shown = files.show("generator")
    assert shown["values"] is None and "num_ctx" in shown["problem"]
    assert files.change("generator", {"num_ctx": 9000})["values"]["num_ctx"] == 9000


def test_secrets_are_neither_shown_nor_taken(files: SettingsFiles, mine: Path) -> None:
    (mine / "api.yaml").write_text("api_token: geheim\n")
    (mine / "web_search.yaml").write_text("searxng_url: http://me:geheim@search.lan\n")
    shown = files.show("api")
    assert shown["values"]["api_token"] == HIDDEN
    assert "geheim" not in json.dumps([shown, files.show("web_search")])
    with pytest.raises(SettingsRefused, match="api_token"):
        files.change("api", {"api_token": "mine"})


def test_a_setting_may_name_a_secret_which_is_shown_and_may_not_have_its_value(
    files: SettingsFiles, mine: Path
) -> None:
    shown = files.change("web_search", {"brave_api_key": "secret:brave"})
    assert shown["values"]["brave_api_key"] == "secret:brave"
    with pytest.raises(SettingsRefused, match="brave_api_key: expected secret:NAME") as refused:
        files.change("web_search", {"brave_api_key": "canary-1234"})
    assert "canary" not in str(refused.value) + (mine / "web_search.yaml").read_text()
    (mine / "web_search.yaml").write_text("brave_api_key: canary-1234\n")
    assert files.show("web_search")["values"]["brave_api_key"] == HIDDEN
