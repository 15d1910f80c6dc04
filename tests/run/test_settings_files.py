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


def test_each_key_comes_with_what_the_defaults_say_and_where_its_value_is_from(
    files: SettingsFiles, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", "canary-1234")
    (mine / "system.yaml").write_text("participants:\n  - web_search: {max_results: 3}\n")
    (mine / "web_search.yaml").write_text("cache_seconds: 1\nfetch_max_chars: 500\n")
    shown = files.show("web_search")
    assert shown["keys"]["max_results"] == ["Results of one search, at most."]
    assert shown["sources"] == {
        "cache_seconds": {"from": "file", "name": "web_search.yaml"},
        "max_results": {"from": "system", "name": "web_search"},
        "brave_api_key": {"from": "variable", "name": "BRAVE_API_KEY"},
    }
    assert "canary" not in json.dumps(shown)
    listed = {each["name"]: each for each in files.described()}
    assert listed["web_search"]["changed"] == ["cache_seconds"] and listed["models"]["keys"]["hub_url"]
    assert all(texts for each in listed.values() if each["about"] for texts in each["keys"].values() if texts != [])


def test_a_reset_takes_a_key_out_and_leaves_the_comments_of_others(files: SettingsFiles, mine: Path) -> None:
    path = mine / "generator.yaml"
    path.write_text(
        "# Of a.\nnum_ctx: 8000\n# Of b.\noffer:\n  add:\n  - x\n  # in it\n  remove: []\n\n# Of c.\nseed: 1\n"
    )
    shown = files.change("generator", {}, ["offer"])
    assert path.read_text() == "# Of a.\nnum_ctx: 8000\n# Of b.\n\n# Of c.\nseed: 1\n"
    assert shown["values"]["offer"] == shown["defaults"]["offer"] and "offer" not in shown["sources"]
    path.write_text("{num_ctx: 8000, seed: 1}\n")
    assert files.change("generator", {"seed": 2}, ["num_ctx", "seed"])["values"]["seed"] == 2
    assert "num_ctx" not in path.read_text()
    with pytest.raises(SettingsRefused, match="nun_ctx: there is no such setting"):
        files.change("generator", {}, ["nun_ctx"])


def test_a_key_in_both_is_replaced_as_a_whole(files: SettingsFiles, mine: Path) -> None:
    files.change(
        "models", {"prices": {"a": {"prompt": 1.0, "completion": 1.0}, "b": {"prompt": 2.0, "completion": 1.0}}}
    )
    shown = files.change("models", {"prices": {"a": {"prompt": 3.0, "completion": 1.0}}}, ["prices"])
    assert list(shown["values"]["prices"]) == ["a"]


def test_a_reset_that_leaves_the_rest_invalid_is_refused_with_the_key(files: SettingsFiles, mine: Path) -> None:
    path = mine / "system.yaml"
    path.write_text(text := "bus_pub_address: tcp://127.0.0.1:1\nbus_sub_address: tcp://127.0.0.1:2\n")
    with pytest.raises(SettingsRefused, match="belong together"):
        files.change("system", {}, ["bus_pub_address"])
    assert path.read_text() == text
    with pytest.raises(SettingsRefused) as refused:
        files.change("critic", {"timeout_seconds": "no"})
    assert refused.value.details == {"key": "timeout_seconds"}


def test_the_file_is_shown_without_secrets_and_comments(files: SettingsFiles, mine: Path) -> None:
    (mine / "models.yaml").write_text(
        "# canary-1\nproviders:\n  box: {kind: openai, url: 'http://me:canary-2@box.lan/v1', api_key: canary-3}\n"
        "  other: {kind: openai, api_key: secret:box}\n"
    )
    shown = files.show("models")
    assert "canary" not in json.dumps(shown)
    assert "api_key: '***'" in shown["text"] and "secret:box" in shown["text"]
    (mine / "models.yaml").write_text("providers: {other: {kind: openai, api_key: secret:box}}\n")
    assert files.secrets_named() == {"box": ["models.providers.other.api_key"]}
    providers = {"other": {"kind": "openai", "api_key": HIDDEN}}
    with pytest.raises(SettingsRefused, match="stands for a secret"):
        files.change("models", {"providers": providers})
    with pytest.raises(SettingsRefused, match="expected secret:NAME") as refused:
        files.change("models", {"providers": {"third": {"kind": "openai", "api_key": "canary-4"}}})
    assert "canary" not in str(refused.value)
