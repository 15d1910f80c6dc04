"""The tool that makes a commit."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated

from pydantic import Field

from local.services.git.git_repository import GitRepository
from local.services.workspace.workspace_path import WorkspacePath
from local.tools.file_tools.workspace_files import FilesConfig, WorkspaceFiles, cause_of
from local.tools.git_tools.git_tool import GitTool
from local.tools.tool import ToolOutput

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
        output = self.told(text, tainted=await self._files.holds_strangers_words(names))
        return ToolOutput(output.text, tainted=output.tainted, undoable=True)
