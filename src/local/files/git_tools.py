"""The tools that read the workspace's repository and commit to it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated

from pydantic import Field

from local.core.errors import ToolError
from local.core.text import readable_output
from local.core.workspace import WorkspacePath
from local.files.git import GitRepository
from local.files.tools import FilesConfig, FileTaint, FileTool, WorkspaceFiles, cause_of
from local.tools.tool import ToolOutput

MOST_PATHS = 1000  # whose contents are checked for untrusted text


class GitTool(FileTool):
    """A tool over the workspace's repository."""

    category = "git"
    timeout_seconds = 60.0

    def __init__(self, config: FilesConfig, files: WorkspaceFiles, repository: GitRepository) -> None:
        super().__init__(config, files)
        self._repository = repository
        self.max_result_chars = config.max_part_chars

    def paths(self, path: str) -> list[str]:
        """Return the paths for git, none for everything; checks that this user may use them. Raises `ToolError`."""
        where = self._files.path(self, path)
        return [str(where)] if where.parts else []

    def as_text(self, text: str, taint: FileTaint) -> ToolOutput:
        """A result in characters that can be shown anywhere."""
        return super().as_text(readable_output(text.encode("utf-8", "surrogateescape")), taint)

    async def taint_of(self, paths: Sequence[str]) -> FileTaint:
        """Whether those files may hold untrusted text, as they are now."""
        if len(paths) > MOST_PATHS:
            return FileTaint(tainted=True)
        return await self._files.taint_of(paths, await asyncio.to_thread(self._digests, paths))

    def _digests(self, paths: Sequence[str]) -> set[str]:
        found = set[str]()
        for path in islice(paths, MOST_PATHS):
            try:
                digest = self._files.workspace.digest(WorkspacePath(tuple(path.split("/"))))
            except ToolError:  # a link or a folder holds no text
                continue
            if digest is not None:
                found.add(digest)
        return found


# The tool that makes a commit.

MOST_SHOWN = 30


class GitCommitTool(GitTool):
    """Commit files of the workspace as they are now. The user can undo it."""

    name = "git_commit"
    replaces = "git add, git commit"
    effect = "write"
    safety = "L1"

    def __init__(self, config: FilesConfig, files: WorkspaceFiles, repository: GitRepository) -> None:
        super().__init__(config, files, repository)
        self._one = asyncio.Lock()

    async def run(
        self,
        message: Annotated[str, Field(min_length=1, max_length=10_000)],
        paths: Annotated[tuple[str, ...], "Files or folders; none for all that changed"] = (),
    ) -> ToolOutput:
        """The branch then has the commit: the one change, which an undo takes back. The files stay staged then."""
        wanted = [each for path in paths or ["."] for each in self.paths(path)]
        async with self._one:
            made = await self._repository.make_commit(message, wanted)
            where = WorkspacePath((".git", *made.branch.split("/")))
            expected = None if made.before is None else hashlib.sha256(made.before).hexdigest()
            content = f"{made.commit}\n".encode()
            await self._files.editor.write(where, content, cause_of(self), expected, keeps_taint=False)
        names = [entry.path for entry in made.files]
        more = f"\n… and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
        branch = made.branch.removeprefix("refs/heads/")
        text = f"{made.commit[:10]} on {branch}: {len(names)} files\n" + "\n".join(names[:MOST_SHOWN]) + more
        return replace(self.as_text(text, await self._files.taint_of(names)), undoable=True)


# The tool that shows how files differ.


class GitDiffTool(GitTool):
    """Show what has changed since the last commit, or in a commit."""

    name = "git_diff"
    replaces = "git diff, git show"
    safety = "L0"

    async def run(
        self,
        path: Annotated[str, "The file or folder"] = ".",
        commit: Annotated[str, "What this commit changed; a..b compares two"] = "",
        staged: bool = False,
    ) -> ToolOutput:
        """The changes as a diff. Files that git does not know yet are named."""
        paths = self.paths(path)
        text = await self._repository.diff(paths, staged=staged, revision=commit)
        if commit:  # another person may have made it
            return self.as_text(text or "no difference", FileTaint(tainted=True))
        entries = await self._repository.status(paths)
        unknown = [entry.path for entry in entries if entry.letters == "??"]
        if unknown and not staged:
            text += f"\nnot known to git yet: {', '.join(unknown[:50])}{', …' if len(unknown) > 50 else ''}"
        known = [entry.path for entry in entries if entry.letters != "??"]
        # Lines of the last commit are shown, too, which anybody may have written: for those the whole folder is named.
        taint = await self.taint_of([".", *(entry.path for entry in entries)] if entries else [])
        if await self._held(known, staged=staged):
            taint = FileTaint(tainted=True)
        return self.as_text(text.lstrip("\n") or "no difference", taint)

    async def _held(self, paths: Sequence[str], *, staged: bool) -> bool:
        """Whether those files held untrusted text, which a diff shows as lines that have gone or are staged."""
        if not paths or not await self._files.editor.changes.knows_untrusted_contents():
            return False
        digests = await self._repository.earlier_digests(paths, staged=staged)
        return digests is None or await self._files.editor.is_tainted((), digests)


# The tool that shows commits.


class GitLogTool(GitTool):
    """List commits, the latest first."""

    name = "git_log"
    replaces = "git log"
    safety = "L0"

    async def run(
        self,
        path: Annotated[str, "Those that changed this"] = ".",
        branch: Annotated[str, "Where to begin, or a..b; empty for the present one"] = "",
        text: Annotated[str, "Words of their messages"] = "",
        count: Annotated[int, Field(ge=1, le=500)] = 20,
    ) -> ToolOutput:
        """A line for each, and the rest of its message below. Anybody may have written it, whatever name it has."""
        found = await self._repository.log(self.paths(path), revision=branch, most=count, words=text)
        return self.as_text(found or "no such commit", FileTaint(tainted=True))


# The tool that shows the differences from the last commit.


class GitStatusTool(GitTool):
    """Tell the branch and the changed files of the git repository."""

    name = "git_status"
    replaces = "git status"
    safety = "L0"

    async def run(self) -> ToolOutput:
        """The branch, and a line for each file, with git's two letters."""
        self.paths(".")
        branch = await self._repository.branch()
        entries = await self._repository.status()
        most = self._files.config.max_list_entries
        lines = [f"{entry.letters} {entry.path}" for entry in entries[:most]]
        if len(entries) > most:
            lines.append(f"… and {len(entries) - most} more")
        heading = f"on {branch}: {len(entries)} files differ from the last commit" if entries else f"on {branch}: clean"
        taint = await self._files.taint_of(entry.path for entry in entries)
        return self.as_text("\n".join([heading, *lines]), taint)
