"""The tool that changes one place of a file."""

from __future__ import annotations

import difflib
import hashlib
from typing import Annotated

from pydantic import Field

from local.errors import ToolError
from local.services.workspace.text_diff import text_diff
from local.services.workspace.workspace_path import WorkspacePath
from local.tools.file_tools.file_tool import ChangingFileTool
from local.tools.file_tools.workspace_files import text_of
from local.tools.tool import ToolOutput

MOST_PLACES = 10
SHOWN_CHARS = 160
NEAR = 0.6  # of 1: how alike a line has to be to be named


class EditFileTool(ChangingFileTool):
    """Replace text in a file of the workspace. The old text has to be copied exactly, with its indentation, and stand
    there once: give enough lines around the place. The result shows what has changed. The user can undo it."""

    name = "edit_file"
    replaces = "sed -i, patch"

    async def run(
        self,
        path: Annotated[str, "The file, from the workspace on"],
        old: Annotated[str, Field(min_length=1, description="The text to replace, exactly as it stands there")],
        new: Annotated[str, "The text to put in its place"],
    ) -> ToolOutput:
        """The change as a diff."""
        where = self._files.path_to_change(self, path)
        before = await self._files.read(where)
        tainted = await self._files.holds_strangers_words([str(where)], [hashlib.sha256(before).hexdigest()])
        try:
            edited = replaced(where, text_of(where, before), old, new)
        except ToolError as error:
            raise ToolError(str(error), kind=error.kind, tainted=tainted) from None  # it may name a line
        after = edited.encode("utf-8", "replace")
        await self._files.write(self, where, after, before, keeps_taint=True)
        return ToolOutput(text_diff(str(where), before, after), undoable=True, tainted=tainted)


def replaced(path: WorkspacePath, text: str, old: str, new: str) -> str:
    """The text with `new` in the place of `old`, whose line ends are those of the text. Raises `ToolError`:
    not_found, not_unique, unchanged."""
    if "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    if old == new:
        raise ToolError("old and new are the same text; nothing was changed", kind="unchanged")
    if (times := text.count(old)) == 1:
        return text.replace(old, new)
    if times == 0:
        raise ToolError(f"that text does not stand in {path}; nothing was changed{_near(text, old)}", kind="not_found")
    places, start = list[str](), 0
    while (at := text.find(old, start)) >= 0 and len(places) < MOST_PLACES:
        places.append(str(text.count("\n", 0, at) + 1))
        start = at + 1
    more = ", …" if times > MOST_PLACES else ""
    words = f"that text stands {times} times in {path}, at the lines {', '.join(places)}{more}"
    raise ToolError(f"{words}; nothing was changed. Give more lines around the one that is meant", kind="not_unique")


def _near(text: str, old: str) -> str:
    """What the model may have meant: the same text with other blanks, or the line that is most like its first one."""
    lines = text.splitlines()
    wanted = next((line for line in old.splitlines() if line.strip()), "").strip()
    for number, line in enumerate(lines, start=1):
        if wanted and line.strip() == wanted:
            return f". Line {number} has its first line, with other blanks or other lines after it: {_cut(line)!r}"
    near = difflib.get_close_matches(wanted, {line.strip() for line in lines[:5000]}, n=1, cutoff=NEAR)
    if not near:
        return ""
    number = next(number for number, line in enumerate(lines, start=1) if line.strip() == near[0])
    return f". Most like its first line is line {number}: {_cut(lines[number - 1])!r}"


def _cut(line: str) -> str:
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"
