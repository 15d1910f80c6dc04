"""A folder in which skills lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from local.errors import ToolError
from local.services.workspace.workspace import MOST_DEPTH, FileFacts, Workspace
from local.services.workspace.workspace_path import WorkspacePath

PlaceKind = Literal["settings", "extra", "workspace"]
IN_SETTINGS = ("skills",)  # in the folder of settings: where the owner's own lie
MOST_SKILLS = 200  # in one place


@dataclass(frozen=True, slots=True)
class SkillPlace:
    """`root` with the names `below` it, each of which is a folder: from the root on no link is followed."""

    kind: PlaceKind
    root: Path
    below: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where that is."""
        return self.root.joinpath(*self.below)

    @property
    def needs_approval(self) -> bool:
        """Whether others than the owner may write there."""
        return self.kind != "settings"

    def files(self) -> Workspace:
        """The way to its files."""
        return Workspace(self.root)

    def path(self, *names: str) -> WorkspacePath:
        """The path of something in it."""
        return WorkspacePath((*self.below, *names))

    def names(self) -> list[str]:
        """The names of the folders and links in it, sorted; none where there is no such place. What begins with a dot
        is none of ours."""
        try:
            found = list(self.files().entries(self.path()))
        except ToolError:
            return []
        names = (entry.path.rpartition("/")[2] for entry in found if entry.kind in ("folder", "link"))
        return sorted(name for name in names if not name.startswith("."))[:MOST_SKILLS]

    def within(self, name: str) -> Iterator[FileFacts]:
        """The files in the folder of a skill."""
        for entry in self.files().entries(self.path(name), MOST_DEPTH):
            if entry.kind == "file":
                yield entry

    def signature(self) -> tuple[object, ...]:
        """Something that is another one as soon as a skill comes, goes or says something else."""
        return tuple((name, *self._state(name), *self._state(name, "SKILL.md")) for name in self._listed())

    def _listed(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))[: 2 * MOST_SKILLS]  # noqa: PTH208 - names alone, each second
        except OSError:
            return []

    def _state(self, *names: str) -> tuple[int, ...]:
        try:
            found = self.folder.joinpath(*names).lstat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode
