"""What each tool for the repository is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from local.errors import ToolError
from local.services.git.git_repository import GitRepository
from local.services.workspace.workspace_path import WorkspacePath
from local.tools.commands.readable_output import readable_output
from local.tools.file_tools.file_tool import FileTool
from local.tools.file_tools.workspace_files import FilesConfig, WorkspaceFiles
from local.tools.tool import ToolOutput

MOST_PATHS = 1000  # whose contents are looked at for words of strangers


class GitTool(FileTool):
    """A tool over the workspace's repository."""

    category = "git"
    timeout_seconds = 60.0

    def __init__(self, config: FilesConfig, files: WorkspaceFiles, repository: GitRepository) -> None:
        super().__init__(config, files)
        self._repository = repository
        self.max_result_chars = config.max_part_chars

    def paths(self, path: str) -> list[str]:
        """What git is to look at, none for everything; also whether this user may. Raises `ToolError`."""
        where = self._files.path(self, path)
        return [str(where)] if where.parts else []

    def told(self, text: str, *, tainted: bool) -> ToolOutput:
        """A result in characters that can be shown anywhere."""
        return super().told(readable_output(text.encode("utf-8", "surrogateescape")), tainted=tainted)

    async def holds_strangers_words(self, paths: Sequence[str]) -> bool:
        """Whether strangers' words may stand in those files, as they are now."""
        digests = await asyncio.to_thread(self._digests, paths)
        return len(paths) > MOST_PATHS or await self._files.holds_strangers_words(paths, digests)

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
