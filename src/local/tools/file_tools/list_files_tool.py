"""The tool that lists what lies in a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated

from pydantic import Field

from local.services.workspace.workspace import FileFacts
from local.services.workspace.workspace_path import WorkspacePath, on_one_line
from local.tools.file_tools.file_tool import FileTool
from local.tools.file_tools.workspace_contents import CLOSED
from local.tools.tool import ToolOutput


class ListFilesTool(FileTool):
    """List files and folders of the workspace. It tells their sizes. With a pattern such as *.py or src/*/test_*.py
    only what it fits, by name or by path."""

    name = "list_files"
    safety = "L0"
    category = "read"
    replaces = "ls, find, tree"

    async def run(
        self,
        path: Annotated[str, "The folder, from the workspace on; . is the workspace"] = ".",
        pattern: Annotated[str, "Which names or paths, such as *.md; empty for all"] = "",
        depth: Annotated[int, Field(ge=1, le=40, description="How many folders deep to look")] = 3,
    ) -> ToolOutput:
        """A line for each: a folder ends with /, a file is followed by its size and the day of its last change."""
        where = self._files.path(self, path)
        most = self._files.config.max_list_entries
        found = await asyncio.to_thread(self._found, where, pattern, depth, most + 1)
        lines = [_line(entry) for entry in found[:most]]
        if len(found) > most:
            lines.append(f"… and more: the first {most} are shown. Name a folder, or give a pattern.")
        tainted = await self._files.holds_strangers_words(entry.path for entry in found[:most])
        return ToolOutput("\n".join([f"{where}/ ({_counted(found[:most])})", *lines]), tainted=tainted)

    def _found(self, where: WorkspacePath, pattern: str, depth: int, most: int) -> Sequence[FileFacts]:
        entries = self._files.workspace.entries(where, depth, CLOSED)
        return list(islice((entry for entry in entries if not pattern or _fits(entry.path, pattern)), most))


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path.rpartition("/")[2], pattern) or fnmatchcase(path, pattern)


def _counted(found: Iterable[FileFacts]) -> str:
    kinds = [entry.kind for entry in found]
    return f"{kinds.count('file')} files, {kinds.count('folder')} folders"


def _line(entry: FileFacts) -> str:
    path = on_one_line(entry.path)
    if entry.kind == "folder":
        return f"{path}/"
    if entry.kind != "file":
        return f"{path} ({entry.kind}, not followed)" if entry.kind == "link" else f"{path} ({entry.kind})"
    return f"{path}  {size_of(entry.size)}  {datetime.fromtimestamp(entry.modified_at):%Y-%m-%d}"


def size_of(size: int) -> str:
    """A number of bytes for a person."""
    for unit, length in (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size} B"
