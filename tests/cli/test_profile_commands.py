"""`local2 profiles` and `prompt show --profile` tell which kinds of assistant there are, and what each is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.cli.entry import main
from local.generator.prompt import SMALL_ROLE, WRITES
from local.run.prompt_commands import in_words, sections

REVIEWER = "---\nname: reviewer\ndescription: It reviews.\ntools: [read_file]\nmodel: gemma4:e2b\n---\nBe strict."


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "reviewer.md").write_text(REVIEWER)
    (tmp_path / "agents" / "broken.md").write_text("Do it.")
    (tmp_path / "system.yaml").write_text("participants: [generator, files, web_search]\n")
    return tmp_path


def run(settings: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--config-dir", str(settings), "--data-dir", str(settings / "data")])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


def test_the_list_has_all_of_them_and_a_line_for_what_is_no_good(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, listed = run(settings, capsys, "profiles", "list")
    assert "reviewer     It reviews." in listed and "(built in)" in listed
    assert listed.splitlines()[-1].startswith("! ") and "broken.md:1: expected ---" in listed
    _, told = run(settings, capsys, "profiles", "list", "--json")
    assert {"reviewer", "general"} <= {each["name"] for each in json.loads(told)["profiles"]}


def test_one_is_shown_by_any_of_its_names(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = run(settings, capsys, "profiles", "show", "generalist")
    assert "general, general-purpose, generalist" in shown and "tools        all" in shown
    status, refused = run(settings, capsys, "profiles", "show", "reviewr")
    assert (status, "did you mean reviewer?" in refused) == (2, True)


def test_the_prompt_of_a_profile_is_that_of_its_model_and_tools(settings: Path) -> None:
    usual, narrowed = sections(None, None, settings, settings), sections(None, "reviewer", settings, settings)
    assert WRITES in in_words(usual) and WRITES not in in_words(narrowed)  # it has nothing but read_file
    assert (narrowed["model"], narrowed["tier"]) == ("gemma4:e2b", "mid")  # nobody has said how large it is
    assert "Be strict." in in_words(narrowed)
    (settings / "models.yaml").write_text("sizes: {gemma4:e2b: 5}\n")
    small = sections(None, "reviewer", settings, settings)
    assert small["tier"] == "small" and SMALL_ROLE in in_words(small)
