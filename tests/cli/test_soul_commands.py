"""`local2 soul` shows what the assistant was, and brings it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from local.cli.entry import main
from local.core import versioned_text as text_history

Soul = Callable[..., str]


@pytest.fixture
def soul(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Soul:
    """The command in a folder of settings of its own; gives what it prints."""
    (tmp_path / "settings").mkdir()

    def run(*arguments: str, status: int = 0) -> str:
        places = ["--config-dir", str(tmp_path / "settings"), "--data-dir", str(tmp_path / "data")]
        with pytest.raises(SystemExit) as ended:
            main(["soul", *arguments, *places])
        assert (ended.value.code or 0) == status
        said = capsys.readouterr()
        return said.out + said.err

    return run


def test_without_a_soul_it_says_where_to_write_one(soul: Soul, tmp_path: Path) -> None:
    assert f"write {tmp_path / 'settings' / 'SOUL.md'}" in soul("show")
    assert "no version is kept yet" in soul("history")
    assert "there is no version 1 of the soul; there are no versions yet" in soul("revert", "1", status=2)


def test_what_was_changed_by_hand_is_gone_back_to_and_nothing_is_lost(soul: Soul, tmp_path: Path) -> None:
    file = tmp_path / "settings" / "SOUL.md"
    for text in ("Dry.\nShort.\n", "Warm.\nShort.\n"):
        file.write_text(text)
        soul("show")
    assert [line.split()[0::2] for line in soul("history").splitlines()] == [["2", "+1", "by"], ["1", "+2", "by"]]
    assert "as version 1 was" in soul("revert", "1")
    assert file.read_text() == "Dry.\nShort.\n" and soul("show") == "Dry.\nShort.\n"
    assert soul("show", "--version", "2") == "Warm.\nShort.\n"
    kept = json.loads(soul("history", "--json"))["versions"]
    assert [each["by"] for each in kept] == ["by hand", "by hand", "back to 1"]
    assert "versions 1 to 3 are stored" in soul("revert", "9", status=2)


def test_the_oldest_of_too_many_versions_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_history, "MOST_VERSIONS", 5)
    history = text_history.TextHistory(tmp_path, "the soul")
    for number in range(1, 8):
        history.note(f"This is {number}.", "by hand")
    assert [version.number for version in history.versions()] == [3, 4, 5, 6, 7]
