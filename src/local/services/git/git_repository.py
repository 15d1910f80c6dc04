"""What a workspace's repository tells, and how a commit of it is made."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from local.errors import ToolError
from local.services.git.git_folder import GitFolder, git_folder
from local.services.git.git_program import GitProgram, settings_of
from local.services.workspace.workspace import Workspace

# Neither a program nor another repository is asked how files differ.
PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--submodule=short")
LOG_FORMAT = "%h %ad %an: %s%d%w(0,4,4)%+b"
NOBODY = "LoCAL2"
NO_MAIL = "local2@localhost"
HEAD = ("rev-parse", "--revs-only", "HEAD^{commit}", "HEAD^{tree}")  # of which a new repository has none
STATUS = (
    "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all", "--",
)  # fmt: skip
ADD = ("update-index", "--add", "--remove", "-z", "--stdin")
UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
CONFLICTS = ("DD", "AU", "UD", "UA", "DU", "AA", "UU")
_IDS = re.compile(rb"([0-9a-f]{40,})\n([0-9a-f]{40,})\n")  # no line of a status begins like that


@dataclass(frozen=True, slots=True)
class GitEntry:
    """A file that is not as in the last commit: both letters of `git status --short`, and its path."""

    letters: str
    path: str


@dataclass(frozen=True, slots=True)
class NewCommit:
    """A commit that no branch has yet: `branch` is to have it, which held `before` in its file, None for no file."""

    commit: str
    branch: str
    before: bytes | None
    files: tuple[GitEntry, ...]


class GitRepository:
    """Each call looks anew at what there is. Raises `ToolError`: no_repository, elsewhere, git_failed, too_slow."""

    def __init__(self, workspace: Workspace, program: GitProgram) -> None:
        self.workspace = workspace
        self._program = program
        self._read: tuple[bytes, dict[str, str]] | None = None  # settings, and what they say

    async def branch(self) -> str:
        """What is checked out, for a person."""
        async with self._opened() as folder:
            return folder.branch.removeprefix("refs/heads/") or f"no branch, at {folder.head[:12]}"

    async def status(self, paths: Sequence[str] = ()) -> list[GitEntry]:
        """The files that are not as in the last commit, ignored ones left out; of those paths, or all."""
        async with self._opened() as folder:
            return await self._status(folder, paths)

    async def diff(self, paths: Sequence[str], *, staged: bool = False, revision: str = "") -> str:
        """How files differ from the last commit, or what is staged of that; or what a commit has changed, or one
        against another, as in `a..b`."""
        async with self._opened() as folder:
            if ".." in revision:
                arguments = ["diff", *PLAIN, "--end-of-options", _sane(revision)]
            elif revision:
                arguments = ["show", *PLAIN, "-m", "--first-parent", "--format=%h %ad %an: %s", "--date=short",
                             "--end-of-options", _sane(revision)]  # fmt: skip
            else:
                return await self._diff_of_files(folder, paths, staged=staged)
            return _text(await self._git(folder, [*arguments, "--", *paths]))

    async def log(self, paths: Sequence[str], *, revision: str = "", most: int = 20, words: str = "") -> str:
        """The latest commits, with what was said of each."""
        async with self._opened() as folder:
            found = [f"--grep={words}", "--fixed-strings", "--regexp-ignore-case"] if words else []
            arguments = ["log", f"--max-count={most}", f"--format={LOG_FORMAT}", "--date=short", "--no-color",
                         "--no-show-signature", "--no-mailmap", "--ignore-submodules=all", *found,
                         "--end-of-options", _sane(revision or "HEAD")]  # fmt: skip
            try:
                lines = _text(await self._git(folder, [*arguments, "--", *paths])).splitlines()
            except ToolError as error:
                if revision or not await self._is_without_commits(folder, error):
                    raise
                return "there are no commits yet"
            return "\n".join(line.rstrip() for line in lines if line.strip())

    async def make_commit(self, message: str, paths: Sequence[str]) -> NewCommit:
        """A commit of those files as they are now, of all that differ if none is named; what else is staged stays
        staged. Raises `ToolError`: nothing_changed, conflict, under_way, no_branch, and as the others."""
        async with self._opened() as folder:
            self._require_ready(folder)
            before = self._of_branch(folder)
            parent, its_tree, told = await self._head_and_status(folder, paths)
            entries = [each for each in told if not each.path.endswith("/")]
            if not entries:
                raise ToolError("there is nothing to commit: no file differs from the last one", kind="nothing_changed")
            if conflicts := [each.path for each in entries if each.letters in CONFLICTS]:
                raise ToolError(f"conflicts are not solved yet in {', '.join(conflicts[:10])}", kind="conflict")
            listed = b"".join(entry.path.encode("utf-8", "surrogateescape") + b"\0" for entry in entries)
            tree = await self._tree(folder, parent, listed)
            if tree == its_tree:
                text = "there is nothing to commit: the files are as in the last commit"
                raise ToolError(text, kind="nothing_changed")
            commit = await self._committed(folder, tree, parent, message, listed)
            return NewCommit(commit, folder.branch, before, tuple(entries))

    async def _diff_of_files(self, folder: GitFolder, paths: Sequence[str], *, staged: bool) -> str:
        arguments = ["diff", *PLAIN, *(["--cached"] if staged else []), "--end-of-options"]
        try:
            return _text(await self._git(folder, [*arguments, "HEAD", "--", *paths]))
        except ToolError as error:
            if not await self._is_without_commits(folder, error):
                raise
        return _text(await self._git(folder, [*arguments, await self._empty_tree(folder), "--", *paths]))

    async def _is_without_commits(self, folder: GitFolder, error: ToolError) -> bool:
        """Whether git has failed because there is no HEAD: asked afterwards, as each question takes a sandbox."""
        return error.kind == "git_failed" and not await self._git(folder, HEAD)

    async def _committed(self, folder: GitFolder, tree: str, parent: str, message: str, listed: bytes) -> str:
        """The commit; the repository's own index has its files as they are now, too."""
        said = folder.path / "message"
        said.write_bytes(message.strip().encode("utf-8", "replace") + b"\n")
        commit = ["commit-tree", tree, *(["-p", parent] if parent else []), "-F", str(said)]
        name, mail = await self._identity(folder)
        named = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail,
                 "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail}  # fmt: skip
        return (await self._git(folder, ADD, commit, said=listed, environment=named, writes=True)).decode().strip()

    async def _tree(self, folder: GitFolder, parent: str, listed: bytes) -> str:
        """The last commit's files with those as they are now, made in an index that is thrown away."""
        part = f"local2-{uuid.uuid4().hex[:12]}.index"
        own = replace(folder, index=folder.index.with_name(part))
        calls = ["read-tree", parent or "--empty"], ADD, ["write-tree"]
        try:
            return (await self._git(own, *calls, said=listed, writes=True)).decode().strip()
        finally:
            self._drop(part)

    def _drop(self, part: str) -> None:
        with suppress(ToolError, FileNotFoundError), self.workspace.folder(self.workspace.path(".git")) as opened:
            os.unlink(part, dir_fd=opened)

    def _require_ready(self, folder: GitFolder) -> None:
        if not folder.branch.startswith("refs/heads/"):
            raise ToolError("no branch is checked out, so that a commit would belong to none", kind="no_branch")
        for name in (*UNDER_WAY, f"{folder.branch}.lock"):
            with suppress(ToolError):
                self.workspace.facts(self.workspace.path(f".git/{name}"))
                text = f"something is under way in this repository (.git/{name}): its user has to end that first"
                break
        else:
            return
        raise ToolError(text, kind="under_way")

    def _of_branch(self, folder: GitFolder) -> bytes | None:
        """What the branch's own file holds; None where it has none: a packed branch, or a new one."""
        try:
            return self.workspace.read(self.workspace.path(f".git/{folder.branch}"), 1000)
        except ToolError as error:
            if error.kind in ("not_found", "not_a_folder"):
                return None
            raise

    async def _status(self, folder: GitFolder, paths: Sequence[str]) -> list[GitEntry]:
        return _entries(await self._git(folder, [*STATUS, *paths]))

    async def _head_and_status(self, folder: GitFolder, paths: Sequence[str]) -> tuple[str, str, list[GitEntry]]:
        """The last commit and its tree, both empty where there is none; and the files that are not as in it."""
        told = await self._git(folder, HEAD, [*STATUS, *paths])
        if (found := _IDS.match(told)) is None:
            return "", "", _entries(told)
        return found[1].decode(), found[2].decode(), _entries(told[found.end() :])

    async def _empty_tree(self, folder: GitFolder) -> str:
        return (await self._git(folder, ["hash-object", "-t", "tree", "/dev/null"])).decode().strip()

    async def _identity(self, folder: GitFolder) -> tuple[str, str]:
        """Who commits: as the repository says, whose settings are read and not obeyed, else as its owner says."""
        settings = {**await self._program.of_owner(), **await self._settings(folder)}
        return settings.get("user.name") or NOBODY, settings.get("user.email") or NO_MAIL

    async def _settings(self, folder: GitFolder) -> dict[str, str]:
        """What stands in the repository's settings, the last of each key; what they include is not read. Git is asked
        once for the same text: each time takes a sandbox."""
        text = folder.their_settings.read_bytes()
        if self._read is None or self._read[0] != text:
            arguments = ["config", "--file", str(folder.their_settings), "--no-includes", "--list", "-z"]
            self._read = text, settings_of(await self._git(folder, arguments))
        return self._read[1]

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[GitFolder]:
        with git_folder(self.workspace) as folder:
            folder.keep(await self._settings(folder))
            yield folder

    async def _git(
        self,
        folder: GitFolder,
        *calls: Sequence[str],
        said: bytes = b"",
        environment: Mapping[str, str] | None = None,
        writes: bool = False,
    ) -> bytes:
        told = {**folder.environment, **(environment or {})}
        return await self._program.run(calls, folder.path, told, said, writes=writes)


def _entries(told: bytes) -> list[GitEntry]:
    lines = told.decode("utf-8", "surrogateescape").split("\0")
    return [GitEntry(line[:2], line[3:]) for line in lines if line]


def _sane(revision: str) -> str:
    """A revision as git takes it. Raises `ToolError` (bad_argument)."""
    if revision.startswith("-") or any(ord(each) < 32 for each in revision):
        raise ToolError(
            f"{revision!a} is no revision; expected such as HEAD~2, a branch or a commit", kind="bad_argument"
        )
    return revision


def _text(output: bytes) -> str:
    return output.decode("utf-8", "backslashreplace")
