"""Which repository a file of the workspace belongs to, and whether that was cloned."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from local.errors import ToolError
from local.services.workspace.workspace import Workspace
from local.services.workspace.workspace_path import WorkspacePath

MOST_SETTINGS = 1_000_000  # bytes
_REMOTE = re.compile(rb"^[ \t]*\[[ \t]*remote\b", re.M | re.I)


class CloneSearch:
    """Finds the clones in a workspace, as they are while it is asked: it looks at each folder once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._nearest: dict[tuple[str, ...], Path | None] = {}

    def of(self, paths: Iterable[str]) -> set[Path]:
        """The clones that hold these files or folders. A repository is one if it names a remote, lies elsewhere, or
        cannot be read; a file belongs to the nearest one above it."""
        found = {self._above(tuple(path.split("/"))) for path in paths}
        return {clone for clone in found if clone is not None}

    def _above(self, folder: tuple[str, ...]) -> Path | None:
        if folder not in self._nearest:
            self._nearest[folder] = self._look(folder)
        return self._nearest[folder]

    def _look(self, folder: tuple[str, ...]) -> Path | None:
        path = WorkspacePath(tuple(part for part in folder if part not in ("", ".")))
        is_clone = self._is_clone(path)
        if is_clone is None:
            return self._above(folder[:-1]) if folder else None
        return self._workspace.root.joinpath(*path.parts) if is_clone else None

    def _is_clone(self, path: WorkspacePath) -> bool | None:
        """None where there is no repository."""
        git = WorkspacePath((*path.parts, ".git"))
        try:
            kind = self._workspace.facts(git).kind
        except ToolError:  # such as for a path that is a file
            return None
        if kind != "folder":
            return True
        try:
            settings = self._workspace.read(WorkspacePath((*git.parts, "config")), MOST_SETTINGS)
        except ToolError:
            return True
        return _REMOTE.search(settings) is not None
