"""What ignore files say of the files below them: .gitignore and .ignore, as git reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".ignore")
MOST_BYTES = 200_000  # of one ignore file; what is larger is none


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one folder, those of the nearest ignore file last; each with the path of its folder,
    which ends with / but for the workspace's own, the empty one."""

    rules: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def within(self, folder: str, texts: Sequence[bytes]) -> IgnoreRules:
        """The rules in a folder below, which holds ignore files with those contents."""
        added = []
        for text in texts:
            lines = text.decode("utf-8", "replace").splitlines()
            if len(text) <= MOST_BYTES and any(line.strip() and not line.startswith("#") for line in lines):
                added.append((folder, _spec(lines)))
        return IgnoreRules((*self.rules, *added)) if added else self

    def leave_out(self, path: str) -> bool:
        """Whether a file, or a folder whose path ends with /, is left out: the nearest rule decides."""
        for folder, spec in reversed(self.rules):
            found = spec.check_file(path[len(folder) :]).include
            if found is not None:
                return found
        return False


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    """Of lines that are no patterns, git says nothing."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        good = [line for line in lines if _is_pattern(line)]
        return GitIgnoreSpec.from_lines(good)


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
