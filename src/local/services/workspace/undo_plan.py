"""Decides whether changes can be undone, and what each file is to hold then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from local.errors import ToolError
from local.services.workspace.change_store import FileChange
from local.services.workspace.workspace_path import shown

MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class FileUndo:
    """One file that holds `present` and shall hold `target`, both as SHA-256, None for no file; `changes` are those
    that are undone by that, the first one first."""

    path: str
    present: str | None
    target: str | None
    changes: Sequence[FileChange]


def undo_plan(changes: Iterable[FileChange], root: str, present: Callable[[str], str | None]) -> list[FileUndo]:
    """What undoes those changes, by file. `present` tells the SHA-256 of what a file holds now.

    Raises `ToolError`: changed, where a file holds something else than the last of its changes left or was changed by
    somebody else between two of them; elsewhere, where they were made in another workspace.
    """
    by_path: defaultdict[str, list[FileChange]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.number):
        if change.root != root:
            text = f"{shown(change.path)} was changed in the workspace {change.root}, and this one is {root}"
            raise ToolError(text, kind="elsewhere")
        by_path[change.path].append(change)
    plan = [FileUndo(path, present(path), made[0].before, made) for path, made in by_path.items()]
    if faults := [fault for undo in plan if (fault := _fault(undo))]:
        more = f"; and {len(faults) - MOST_TOLD} more" if len(faults) > MOST_TOLD else ""
        raise ToolError(f"nothing was undone: {'; '.join(faults[:MOST_TOLD])}{more}", kind="changed")
    return plan


def _fault(undo: FileUndo) -> str | None:
    """Why a file cannot be brought back without losing something; None if it can."""
    if any(earlier.after != later.before for earlier, later in pairwise(undo.changes)):
        return f"{shown(undo.path)} was changed by somebody else between these changes"
    if undo.present in (undo.changes[-1].after, undo.target):
        return None
    what = "is not there any more" if undo.present is None else "was changed since"
    return f"{shown(undo.path)} {what}; undo later changes first"
