"""What sorts of things there are in a workspace, so that nobody is offered tools for what is not there."""

from __future__ import annotations

from itertools import islice

from local.errors import ToolError
from local.services.git.git_folder import is_repository
from local.services.git.git_program import GitProgram
from local.services.reading.code_outline import is_code
from local.services.workspace.workspace import Workspace

MOST_ENTRIES = 1000  # that are looked at
MOST_DEPTH = 4
KINDS = {"files", "programs", "repository"}
CLOSED = (".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv")  # not looked into unless they are named


class WorkspaceContents:
    """`kinds` are those found so far, of: files, programs, repository. What has gone since counts as there."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.kinds: set[str] = set()

    def is_complete(self) -> bool:
        """Whether there is nothing left to look for."""
        return self.kinds == KINDS

    def look(self) -> bool:
        """Look for what was not there yet; whether something is new. Blocks; nothing is looked for twice."""
        before = len(self.kinds)
        try:
            if "repository" not in self.kinds and GitProgram.installed() and is_repository(self._workspace):
                self.kinds.add("repository")
            if "programs" not in self.kinds:
                self._look_at_files()
        except ToolError:  # the workspace is gone: each call says so
            return False
        return len(self.kinds) > before

    def _look_at_files(self) -> None:
        entries = self._workspace.entries(self._workspace.path("."), MOST_DEPTH, CLOSED)
        for entry in islice(entries, MOST_ENTRIES):
            if entry.kind == "file":
                self.kinds.add("files")
                if is_code(entry.path):
                    self.kinds.add("programs")
                    return
