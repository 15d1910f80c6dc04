"""A repository in which everything that can name a program for git names one: none of them is run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from local.core.errors import ToolError
from local.core.workspace import Workspace
from local.files.git import GitProgram, GitRepository
from tests.files.conftest import Opened
from tests.files.git_repositories import git, repository

HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change", "reference-transaction",
    "pre-auto-gc", "post-checkout", "post-rewrite", "applypatch-msg", "push-to-checkout", "fsmonitor-watchman",
)  # fmt: skip
# A setting that names a program, by what the program is called when it is run.
SETTINGS = {
    "core.fsmonitor": "fsmonitor",
    "core.pager": "pager",
    "pager.log": "pager-log",
    "pager.status": "pager-status",
    "core.editor": "editor",
    "sequence.editor": "sequence-editor",
    "core.sshCommand": "ssh",
    "core.gitProxy": "proxy",
    "core.askPass": "askpass",
    "core.alternateRefsCommand": "alternate-refs",
    "credential.helper": "credential",
    "diff.external": "diff-external",
    "diff.evil.command": "diff-command",
    "diff.conv.textconv": "textconv",
    "filter.dirty.clean": "clean",
    "filter.dirty.smudge": "smudge",
    "filter.long.process": "process",
    "merge.evil.driver": "merge-driver",
    "gpg.program": "gpg",
    "gpg.ssh.program": "gpg-ssh",
    "gpg.ssh.defaultKeyCommand": "gpg-key",
    "interactive.diffFilter": "diff-filter",
    "trailer.sign.command": "trailer",
    "gc.recentObjectsHook": "gc-hook",
    "uploadpack.packObjectsHook": "pack-hook",
    "alias.status": "alias-status",
    "alias.commit-tree": "alias-commit-tree",
}
SWITCHES = {
    "commit.gpgSign": "true", "log.showSignature": "true", "gc.auto": "1", "maintenance.auto": "true",
    "diff.submodule": "log", "status.submoduleSummary": "true", "submodule.recurse": "true",
    "protocol.allow": "always", "extensions.worktreeConfig": "true",
    "extensions.partialClone": "origin", "remote.origin.promisor": "true",
}  # fmt: skip
ATTRIBUTES = "*.evil diff=evil merge=evil\n*.conv diff=conv\n*.dirty filter=dirty\n*.long filter=long\n"
# What a person's own git runs of these while it does the same four things: the proof that the traps are set.
AT_LEAST = {
    "fsmonitor", "worktree", "include", "include-if", "diff-external", "diff-command", "textconv", "clean", "process",
    "gpg", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change",
    "reference-transaction", "submodule", "environment-diff", "environment-config",
}  # fmt: skip


class HostileRepository:
    """Programs leave a file with their name in `.traps/run`, which lies in the workspace: a sandbox has that, too."""

    def __init__(self, root: Path) -> None:
        self.root = repository(root)
        self.traps = root / ".traps"
        (self.traps / "run").mkdir(parents=True)
        for name in ("a.evil", "b.conv", "c.dirty", "d.long"):
            (root / name).write_text("one\n")
        self._with_submodule()
        git(root, "add", ".")
        git(root, "commit", "--quiet", "--message", "More")
        signed = git(root, "cat-file", "commit", "HEAD").replace(
            "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n\n", 1
        )
        (self.traps / "signed").write_text(signed)
        git(root, "update-ref", "HEAD", git(root, "hash-object", "-t", "commit", "-w", ".traps/signed").strip())
        for name in ("a.txt", "a.evil", "b.conv", "c.dirty", "d.long"):
            (root / name).write_text("two\n")
        self._set()
        for name in self.run():  # while it was made
            (self.traps / "run" / name).unlink()

    def _with_submodule(self) -> None:
        inner = repository(self.root / "inner")
        (self.root / ".gitmodules").write_text(
            '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n'
        )
        git(self.root, "add", "inner", ".gitmodules")
        git(inner, "config", "core.fsmonitor", self.trap("submodule"))
        (inner / "a.txt").write_text("changed within\n")

    def trap(self, name: str) -> str:
        """A program that notes that it was run."""
        path = self.root / ".traps" / name
        path.write_text(f"#!/bin/sh\ntouch {self.root}/.traps/run/{name}\ncat 2>/dev/null </dev/null\nexit 0\n")
        path.chmod(0o755)
        return str(path)

    def _set(self) -> None:
        own = self.root / ".git"
        lines = ["[core]", "\trepositoryformatversion = 1"]
        for key, value in {**{key: self.trap(name) for key, name in SETTINGS.items()}, **SWITCHES}.items():
            section, _, last = key.rpartition(".")
            first, _, second = section.partition(".")
            value = f"!{value}" if first == "alias" else value
            lines += [f'[{first} "{second}"]' if second else f"[{first}]", f"\t{last} = {value}"]
        lines += ['[remote "origin"]', f"\turl = ext::{self.trap('promisor')}"]
        lines += [
            "[include]",
            f"\tpath = {self.traps}/included",
            f'[includeIf "gitdir:{self.root}/"]',
            f"\tpath = {self.traps}/included-if",
        ]
        (self.traps / "included").write_text(f"[core]\n\tfsmonitor = {self.trap('include')}\n")
        (self.traps / "included-if").write_text(f"[diff]\n\texternal = {self.trap('include-if')}\n")
        (own / "config.worktree").write_text(f"[core]\n\tfsmonitor = {self.trap('worktree')}\n")
        (own / "config").write_text("\n".join(lines) + "\n")
        (self.root / ".gitattributes").write_text(ATTRIBUTES)
        (own / "info" / "attributes").write_text(ATTRIBUTES)
        for name in HOOKS:
            shutil.copy(self.trap(name), own / "hooks" / name)
        self.trap("git")  # a program of that name beside the files
        shutil.copy(self.traps / "git", self.root / "git")

    def run(self) -> set[str]:
        """Those that were run."""
        return {path.name for path in (self.traps / "run").iterdir()}


@pytest.fixture
def hostile(tmp_path: Path) -> HostileRepository:
    return HostileRepository(tmp_path / "work")


def hostile_environment(hostile: HostileRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS", "GIT_PROXY_COMMAND"):
        monkeypatch.setenv(
            name, hostile.trap("environment-diff" if name == "GIT_EXTERNAL_DIFF" else f"environment-{name}")
        )
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", hostile.trap("environment-config"))


async def test_no_program_that_a_repository_names_is_run(
    hostile: HostileRepository, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile_environment(hostile, monkeypatch)
    told = opened(hostile.root)
    assert await told.branch() == "main"
    assert {entry.path for entry in await told.status()} >= {"a.txt", "a.evil", "b.conv", "c.dirty", "d.long", "git"}
    assert "+two" in await told.diff([])
    await told.diff([], staged=True)
    assert "+one" in await told.diff([], revision="HEAD~1")
    assert "More" in await told.log([])
    made = await told.make_commit("Mine", ["a.txt", "a.evil", "b.conv", "c.dirty", "d.long"])
    assert len(made.files) == 5
    assert hostile.run() == set()


def test_git_as_a_person_runs_it_runs_them(hostile: HostileRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    root = hostile.root
    git(root, "status", check=False)
    (root / ".git" / "config.worktree").write_text("")
    git(root, "config", "--file", ".git/config", "--unset-all", "filter.long.process")  # it ends whoever asks it
    git(root, "status", check=False)
    (hostile.traps / "included").write_text("")
    git(root, "log", "-p", check=False)
    git(root, "diff", check=False)
    (hostile.traps / "included-if").write_text("")
    git(root, "diff", check=False)
    git(root, "config", "--file", ".git/config", "--unset-all", "diff.external")
    git(root, "diff", check=False)
    git(root, "commit", "--all", "--message", "x", check=False)
    git(root, "-c", "commit.gpgSign=false", "commit", "--all", "--message", "x", check=False)
    hostile_environment(hostile, monkeypatch)
    git(root, "diff", "HEAD~1", check=False)
    assert hostile.run() >= AT_LEAST, (sorted(hostile.run()), sorted(AT_LEAST - hostile.run()))


async def test_what_lies_outside_is_not_told_by_a_setting(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "canary.txt").write_text("CANARY\n")
    root = repository(tmp_path / "work")
    git(root, "config", "core.worktree", str(tmp_path / "outside"))
    git(root, "config", "core.excludesFile", str(tmp_path / "outside" / "canary.txt"))
    git(root, "config", "mailmap.file", str(tmp_path / "outside" / "canary.txt"))
    told = opened(root)
    said = f"{await told.status()} {await told.diff([])} {await told.log([])}"
    assert "anary" not in said and "CANARY" not in said


@pytest.mark.usefixtures("uncontained")
async def test_git_shows_no_file_from_outside_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("CANARY\n")
    root = repository(tmp_path / "work")
    told = GitRepository(Workspace(root), GitProgram(root))
    for paths in (["../outside"], ["a.txt", "/etc/passwd"]):  # as no tool would say it: it checks paths before
        with pytest.raises(ToolError) as refused:
            await told.diff(paths)
        assert refused.value.kind == "git_failed"
