"""The files that a search goes through: those of a folder of the workspace that no ignore file leaves out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from local.errors import ToolError
from local.services.code.ignore_rules import IGNORE_FILES, MOST_BYTES, IgnoreRules
from local.services.workspace.workspace import Workspace, open_regular
from local.services.workspace.workspace_path import WorkspacePath

UNREAD = (".git", ".hg", ".svn")  # never looked into
MOST_DEPTH = 60
START = 8192  # bytes in which a NUL says that a file is no text


@dataclass(slots=True)
class CodeFiles:
    """Iterates over path and content of each text file below `path`, sorted by name, each folder after the files beside
    it. `pattern` is for names or paths, `wanted` for names; a file that is named itself is read whatever is ignored.

    Links are not followed, files of more than `most_bytes` not read; `counted` of each sort were met. `digests` has the
    SHA-256 of what was `shown`, by path. Raises `ToolError` as `Workspace` does.
    """

    workspace: Workspace
    path: WorkspacePath
    most_bytes: int
    pattern: str = ""
    wanted: Callable[[str], bool] = field(default=lambda name: True)
    counted: dict[str, int] = field(default_factory=lambda: {"files": 0, "large": 0, "binary": 0})
    digests: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        if self.path.parts and self.workspace.facts(self.path).kind == "file":
            yield str(self.path), self.workspace.read(self.path, self.most_bytes)
            return
        yield from self._below(self.path, self._rules_above(), MOST_DEPTH)

    def shown(self, path: str, content: bytes) -> None:
        """Words of this file are told."""
        self.digests[path] = hashlib.sha256(content).hexdigest()

    def _rules_above(self) -> IgnoreRules:
        """Those that hold in the folder; none at all if they would leave it out: then it was named on purpose."""
        rules = IgnoreRules()
        for length in range(len(self.path.parts)):
            above = WorkspacePath(self.path.parts[:length])
            with self.workspace.folder(above) as folder:
                rules = rules.within(_prefix(above), _ignore_texts(folder, set(IGNORE_FILES)))
            if rules.leave_out(_prefix(WorkspacePath(self.path.parts[: length + 1]))):
                return IgnoreRules()
        return rules

    def _below(self, path: WorkspacePath, rules: IgnoreRules, depth: int) -> Iterator[tuple[str, bytes]]:
        prefix = _prefix(path)
        with self.workspace.folder(path) as folder:
            files, folders = _named(folder)
            rules = rules.within(prefix, _ignore_texts(folder, files))
            for name in sorted(files):
                if self._fits(prefix, name) and not rules.leave_out(f"{prefix}{name}"):
                    content = self._content(folder, WorkspacePath((*path.parts, name)))
                    if content is not None:
                        yield f"{prefix}{name}", content
        for name in sorted(folders - set(UNREAD)):
            if depth > 0 and not rules.leave_out(f"{prefix}{name}/"):
                try:
                    yield from self._below(WorkspacePath((*path.parts, name)), rules, depth - 1)
                except ToolError:  # it is gone meanwhile, or may not be opened
                    continue

    def _fits(self, prefix: str, name: str) -> bool:
        pattern = self.pattern
        fits = not pattern or fnmatchcase(name, pattern) or fnmatchcase(f"{prefix}{name}", pattern)
        return fits and self.wanted(name)

    def _content(self, folder: int, path: WorkspacePath) -> bytes | None:
        """What a text file holds; None for what is none, is too large or is gone meanwhile."""
        content = _read(folder, path, self.most_bytes + 1)
        if content is None:
            return None
        if len(content) > self.most_bytes:
            self.counted["large"] += 1
        elif b"\0" in content[:START]:
            self.counted["binary"] += 1
        else:
            self.counted["files"] += 1
            return content
        return None


def _prefix(path: WorkspacePath) -> str:
    return f"{path}/" if path.parts else ""


def _named(folder: int) -> tuple[set[str], set[str]]:
    files, folders = set[str](), set[str]()
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                folders.add(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.add(entry.name)
    return files, folders


def _ignore_texts(folder: int, files: set[str]) -> list[bytes]:
    texts = [_read(folder, WorkspacePath((name,)), MOST_BYTES + 1) for name in IGNORE_FILES if name in files]
    return [text for text in texts if text is not None]


def _read(folder: int, path: WorkspacePath, most: int) -> bytes | None:
    """At most so many bytes; of what is no text the beginning alone."""
    try:
        with os.fdopen(open_regular(folder, path), "rb", buffering=0) as file:
            start = file.read(min(most, START))
            return start if len(start) < START or b"\0" in start else start + file.read(most - START)
    except (OSError, ToolError):
        return None
