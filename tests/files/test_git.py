"""What git tells of a workspace, and commits of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.core.errors import ToolError
from local.core.workspace import Workspace
from local.files.git import GitEntry, GitProgram, GitRepository, git_folder, is_repository
from tests.files.conftest import Opened
from tests.files.git_repositories import git, repository


@pytest.fixture
def plain(uncontained: None) -> Opened:
    """The repository of a folder, as git without a sandbox sees it."""
    return lambda root: GitRepository(Workspace(root), GitProgram(root))


async def test_a_repository_is_told_and_committed_to_as_its_user_would(opened: Opened, tmp_path: Path) -> None:
    root = repository(tmp_path / "work")
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "ä b\n.txt").write_text("new\n")
    told = opened(root)
    assert await told.branch() == "main"
    assert await told.status() == [GitEntry(" M", "a.txt"), GitEntry("??", "ä b\n.txt")]
    assert "+two" in await told.diff([])
    assert (await told.log([])).splitlines()[1:] == ["    The body."]
    assert "+one" in await told.diff([], revision="HEAD")
    made = await told.make_commit("Second", ["a.txt"])
    assert (made.branch, made.files) == ("refs/heads/main", (GitEntry(" M", "a.txt"),))
    assert git(root, "log", "--format=%s|%an|%P", "-1", made.commit) == f"Second|LoCAL2|{(made.before or b'').decode()}"
    assert git(root, "show", "--format=", "--name-only", made.commit) == "a.txt\n"
    git(root, "fsck", "--strict")
    assert not list((root / ".git").glob("local2-*"))


async def test_what_is_staged_beside_a_commit_stays_staged(tmp_path: Path, plain: Opened) -> None:
    root = repository(tmp_path / "work")
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text("changed\n")
    git(root, "add", "b.txt")
    made = await plain(root).make_commit("Only c", ["c.txt"])
    git(root, "update-ref", "HEAD", made.commit)
    assert git(root, "status", "--porcelain") == " M a.txt\nA  b.txt\n"


async def test_who_commits_is_read_from_the_repository_then_from_its_owner(tmp_path: Path, plain: Opened) -> None:
    root = repository(tmp_path / "work")
    git(root, "config", "--global", "user.name", "Owner")
    git(root, "config", "--global", "user.email", "owner@example.org")
    git(root, "config", "user.email", "here@example.org")
    (root / "a.txt").unlink()
    made = await plain(root).make_commit("Gone", [])
    assert git(root, "log", "-1", "--format=%an %ae", made.commit) == "Owner here@example.org\n"


async def test_the_first_commit_of_a_repository_has_no_parent(tmp_path: Path, plain: Opened) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a.txt").write_text("one\n")
    told = plain(tmp_path)
    assert await told.log([]) == "there are no commits yet"
    assert await told.diff([]) == ""
    made = await told.make_commit("First", ["a.txt"])
    assert (made.before, git(tmp_path, "log", "--format=%P", made.commit)) == (None, "\n")


async def test_settings_that_say_how_files_are_read_are_kept_and_no_others(tmp_path: Path, plain: Opened) -> None:
    root = repository(tmp_path / "work")
    git(root, "config", "core.fileMode", "false")
    git(root, "config", "core.eol", "$(touch x)")
    (root / "a.txt").chmod(0o755)
    assert await plain(root).status() == []
    with git_folder(Workspace(root)) as folder:
        folder.keep({"core.filemode": "false", "core.eol": "a\n[alias]", "core.pager": "less"})
        kept = (folder.path / "config").read_text()
    assert "filemode = false" in kept
    assert "alias" not in kept and "less" not in kept


async def test_what_is_no_revision_is_no_option_either(tmp_path: Path, plain: Opened) -> None:
    told = plain(repository(tmp_path / "work"))
    for name, kind in (("--output=x", "bad_argument"), ("a\0b", "bad_argument"), ("nowhere", "git_failed")):
        for call in (told.diff([], revision=name), told.log([], revision=name)):
            with pytest.raises(ToolError) as refused:
                await call
            assert refused.value.kind == kind
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == [".git", "a.txt"]


def elsewhere(root: Path, how: str) -> None:
    """The workspace's repository lies outside of it, as a whole or in parts."""
    other, mine = repository(root.parent / "other"), root / ".git"
    if how == "a file":
        root.mkdir()
        mine.write_text(f"gitdir: {other / '.git'}\n")
        return
    if how == "a link":
        root.mkdir()
        mine.symlink_to(other / ".git")
        return
    repository(root)
    if how == "objects":
        (mine / "objects").rename(root.parent / "objects")
        (mine / "objects").symlink_to(other / ".git" / "objects")
    elif how == "alternates":
        (mine / "objects" / "info" / "alternates").write_text(f"{other / '.git' / 'objects'}\n")
    else:
        (mine / how).write_text(f"{other / '.git'}\n")


async def test_a_repository_that_lies_elsewhere_is_not_followed(tmp_path: Path, plain: Opened) -> None:
    for how in ("a file", "a link", "objects", "alternates", "commondir"):
        root = tmp_path / how / "work"
        root.parent.mkdir()
        elsewhere(root, how)
        assert is_repository(Workspace(root))
        with pytest.raises(ToolError) as refused:
            await plain(root).status()
        assert refused.value.kind in ("elsewhere", "link")


async def test_no_repository_and_no_git_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Opened) -> None:
    with pytest.raises(ToolError, match="no git repository"):
        await plain(tmp_path).status()
    root = repository(tmp_path / "work")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ToolError, match="install it"):
        await plain(root).status()


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [("taken back", "nothing_changed"), ("detached", "no_branch"), ("MERGE_HEAD", "under_way"), ("lock", "under_way")],
)
async def test_a_commit_that_cannot_be_made_leaves_everything_as_it_is(
    tmp_path: Path, trouble: str, kind: str, plain: Opened
) -> None:
    root = repository(tmp_path / "work")
    (root / "a.txt").write_text("changed\n")
    if trouble == "taken back":
        git(root, "add", "a.txt")
        (root / "a.txt").write_text(git(root, "show", "HEAD:a.txt"))
    elif trouble == "detached":
        git(root, "checkout", "--quiet", "--detach")
    elif trouble == "lock":
        (root / ".git" / "refs" / "heads" / "main.lock").write_text("")
    elif trouble == "MERGE_HEAD":
        (root / ".git" / trouble).write_text(git(root, "rev-parse", "HEAD"))
    index = (root / ".git" / "index").read_bytes()
    with pytest.raises(ToolError) as refused:
        await plain(root).make_commit("No", [])
    assert (refused.value.kind, (root / ".git" / "index").read_bytes()) == (kind, index)
