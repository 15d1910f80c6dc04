"""Which folder the assistant works in, and which ones it cannot be."""

from pathlib import Path

import pytest

from local.core.config import SystemConfig
from local.core.errors import ConfigError
from local.core.workspace import prepared_workspace


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with data, settings, and a project."""
    for name in ("data", "settings", "project", "settings/my_tools"):
        (tmp_path / "home" / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def prepared(home: Path, workspace: Path | str | None) -> Path:
    named = None if workspace is None else Path(workspace)
    system = SystemConfig(workspace=named, python_path=(home / "settings" / "my_tools",))
    return prepared_workspace(system, home / "data", [home / "settings"])


def test_without_a_word_it_is_made_in_the_data_directory_for_its_owner_alone(home: Path) -> None:
    made = prepared(home, None)
    assert made == home / "data" / "workspace"
    assert made.stat().st_mode & 0o777 == 0o700
    assert prepared(home, None) == made


def test_a_folder_that_is_named_is_taken_links_resolved(home: Path) -> None:
    assert prepared(home, home / "project") == home / "project"
    assert prepared(home, "~/project") == home / "project"
    (home / "link").symlink_to(home / "project")
    assert prepared(home, home / "link") == home / "project"
    (home / "data" / "workspace" / "sub").mkdir(parents=True)
    assert prepared(home, home / "data" / "workspace" / "sub") == home / "data" / "workspace" / "sub"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "is no folder; make it first"),
        ("", "which holds"),
        ("..", "which holds"),
        ("data", "which holds what LoCAL2 keeps"),
        ("settings", "which holds settings"),
        ("settings/my_tools", "which holds settings"),
    ],
)
def test_what_decides_about_local2_lies_in_no_workspace(home: Path, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        prepared(home, home / name)


def test_a_link_to_the_home_directory_is_the_home_directory(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home)
    with pytest.raises(ConfigError, match="cannot be it"):
        prepared(home, tmp_path / "link")


def test_the_program_itself_lies_in_no_workspace(home: Path) -> None:
    with pytest.raises(ConfigError, match="which holds LoCAL2 itself"):
        prepared(home, Path(prepared_workspace.__code__.co_filename).parents[1])


def test_a_path_that_counts_from_somewhere_is_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match="no absolute path"):
        prepared(home, "project")
