"""A folder for git that has the objects, branches and index of a repository, and nothing that lies in its settings."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.errors import ToolError
from local.services.workspace.workspace import Workspace
from local.services.workspace.workspace_path import WorkspacePath

MOST_BYTES = 1_000_000  # of the settings or of HEAD
# What git has to find of a repository beside its index: where that is no settings, and names no program.
LINKED = (
    "objects", "refs", "packed-refs", "shallow", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "info/exclude",
)  # fmt: skip
# The settings of a repository without which its files and objects would be read wrongly; of all others git never hears.
KEPT = (
    "core.repositoryformatversion", "core.filemode", "core.ignorecase", "core.symlinks", "core.precomposeunicode",
    "core.autocrlf", "core.eol", "extensions.objectformat",
)  # fmt: skip
_VALUE = re.compile(r"[A-Za-z0-9]{0,20}")
# Nobody has set anything else: this says once more what could run a program, or write to or read from elsewhere.
OURS = """\
[core]
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
	excludesFile = /dev/null
	logAllRefUpdates = false
	bigFileThreshold = 20m
	quotePath = false
	pager = cat
	editor = false
	sshCommand = false
[diff]
	ignoreSubmodules = all
	submodule = short
[submodule]
	recurse = false
[protocol]
	allow = never
[gc]
	auto = 0
[maintenance]
	auto = false
[commit]
	gpgSign = false
[log]
	showSignature = false
"""
_ELSEWHERE = {
    "objects/info/alternates": "takes objects from elsewhere (objects/info/alternates)",
    "objects/info/http-alternates": "takes objects from elsewhere (objects/info/http-alternates)",
    "commondir": "is a part of another one (commondir)",
    "reftable": "keeps its branches in a reftable",
}


@dataclass(frozen=True, slots=True)
class GitFolder:
    """`path` is what git is told is its folder, `index` the repository's own one; `head` is what HEAD says."""

    path: Path
    index: Path
    head: str

    @property
    def environment(self) -> Mapping[str, str]:
        """What git has to be told beside its folder."""
        return {"GIT_INDEX_FILE": str(self.index)}

    @property
    def branch(self) -> str:
        """The branch that is checked out, with refs/heads/; empty where there is none."""
        return self.head.removeprefix("ref:").strip() if self.head.startswith("ref:") else ""

    def keep(self, settings: Mapping[str, str]) -> None:
        """Add those of the repository's settings that say how it is to be read."""
        kept = {key: value for key, value in settings.items() if key in KEPT and _VALUE.fullmatch(value)}
        lines = ["[{}]\n\t{} = {}".format(*key.split("."), value) for key, value in kept.items()]
        (self.path / "config").write_text("\n".join([OURS.rstrip(), *lines, ""]))

    @property
    def their_settings(self) -> Path:
        """A copy of the repository's settings, for nothing but reading what stands there."""
        return self.path / "settings-of-the-repository"


@contextmanager
def git_folder(workspace: Workspace) -> Iterator[GitFolder]:
    """The folder for the repository of the workspace. Raises `ToolError`: no_repository, elsewhere."""
    _require_repository(workspace)
    real = workspace.root / ".git"
    head = _read(workspace, "HEAD").decode("utf-8", "replace").strip()
    with tempfile.TemporaryDirectory(prefix="local2-git-") as made:
        path = Path(made)
        (path / "info").mkdir()
        for name in LINKED:
            (path / name).symlink_to(real / name)
        (path / "HEAD").write_text(f"{head}\n")
        folder = GitFolder(path, real / "index", head)
        folder.their_settings.write_bytes(_read(workspace, "config"))
        folder.keep({})
        yield folder


def is_repository(workspace: Workspace) -> bool:
    """Whether the workspace is a repository, wherever that lies."""
    return _kind(workspace, "") is not None


def _require_repository(workspace: Workspace) -> None:
    kind = _kind(workspace, "")
    if kind is None:
        raise ToolError("the workspace is no git repository (it has no .git)", kind="no_repository")
    if kind != "folder":
        text = "the workspace's .git is no folder: its repository lies elsewhere, which is not followed"
        raise ToolError(text, kind="elsewhere")
    for name in ("objects", "refs"):
        if _kind(workspace, name) != "folder":
            raise ToolError(f".git/{name} is no folder: this is no whole repository", kind="elsewhere")
    for name, what in _ELSEWHERE.items():
        if _kind(workspace, name) is not None:
            raise ToolError(f"this repository {what}, which is not read here", kind="elsewhere")


def _kind(workspace: Workspace, name: str) -> str | None:
    """What there is of that name in .git; None for nothing."""
    try:
        return workspace.facts(_path(name)).kind
    except ToolError as error:
        if error.kind in ("not_found", "gone"):
            return None
        raise


def _read(workspace: Workspace, name: str) -> bytes:
    try:
        return workspace.read(_path(name), MOST_BYTES)
    except ToolError as error:
        if error.kind == "not_found" and name == "config":
            return b""
        raise


def _path(name: str) -> WorkspacePath:
    return WorkspacePath((".git", *(part for part in name.split("/") if part)))
