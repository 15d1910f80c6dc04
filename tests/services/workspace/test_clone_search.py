"""A file belongs to the nearest repository above it, and that was cloned or was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.files.workspace import CloneSearch, Workspace

REMOTE = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://git.example/x\n'


def repository(folder: Path, settings: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(settings)
    return folder


def of(root: Path, *paths: str) -> set[Path]:
    return CloneSearch(Workspace(root)).of(paths)


def test_a_workspace_without_a_repository_or_with_one_of_ones_own_is_no_clone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert of(tmp_path, ".", "a.txt", "folder/not/there") == set()
    repository(tmp_path, "[core]\n\tbare = false\n")
    assert of(tmp_path, ".", "a.txt", "folder/not/there") == set()


@pytest.mark.parametrize(
    "settings", [REMOTE, "[remote]\nurl = x\n", '  [ Remote "x"]\n', "\n[core]\n[remote.origin]\n"]
)
def test_one_that_names_a_remote_is_a_clone_with_all_that_is_in_it(tmp_path: Path, settings: str) -> None:
    repository(tmp_path, settings)
    assert of(tmp_path, "src/deep/a.py") == of(tmp_path, ".") == of(tmp_path, "a.py") == {tmp_path}


@pytest.mark.parametrize("settings", ["[core]\n# [remote\n", "[core]\nx = [remote\n", ""])
def test_a_remote_is_a_section_and_no_word_in_another_one(tmp_path: Path, settings: str) -> None:
    repository(tmp_path, settings)
    assert of(tmp_path, "a.py") == set()


def test_the_nearest_repository_counts(tmp_path: Path) -> None:
    inner = repository(tmp_path / "libs" / "inner", REMOTE)
    assert of(tmp_path, "a.py", "libs/b.py") == set()
    assert of(tmp_path, "a.py", "libs/inner/c.py", "libs/inner") == {inner}
    repository(tmp_path, REMOTE)
    own = repository(tmp_path / "own", "[core]\n")
    assert of(tmp_path, "own/a.py") == set()
    assert of(own, "a.py") == set()


def test_a_repository_that_lies_elsewhere_or_cannot_be_read_counts_as_a_clone(tmp_path: Path) -> None:
    (tmp_path / "worktree").mkdir()
    (tmp_path / "worktree" / ".git").write_text("gitdir: /elsewhere\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").symlink_to("/elsewhere")
    (tmp_path / "bare" / ".git").mkdir(parents=True)
    for name in ("worktree", "linked", "bare"):
        assert of(tmp_path, f"{name}/a.py") == {tmp_path / name}


def test_a_link_is_in_no_clone_that_it_leads_to(tmp_path: Path) -> None:
    repository(tmp_path / "outside", REMOTE)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "outside")
    assert of(tmp_path / "work", "link") == set()
