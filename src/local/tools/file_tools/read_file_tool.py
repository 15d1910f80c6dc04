"""The tool that reads a file: small ones whole, of large ones first what they are made of, then any part."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated

from pydantic import Field

from local.errors import ToolError
from local.services.reading.file_outline import file_outline
from local.services.reading.outline import FilePart, Outline
from local.services.workspace.workspace_path import WorkspacePath, shown
from local.tools.file_tools.file_tool import FileTool
from local.tools.file_tools.list_files_tool import size_of
from local.tools.tool import ToolOutput

OUTLINE_SHARE = 8  # an outline has at most the eighth part of a file's characters,
LEAST_OUTLINE, MOST_OUTLINE = 1500, 8000  # within these
MOST_NAMED = 5


class ReadFileTool(FileTool):
    """Read a file of the workspace. A small one comes whole. Of a large one come first its headings, symbols, keys or
    columns with their lines: then read the part that is needed, by its name or by its lines."""

    name = "read_file"
    safety = "L0"
    category = "read"
    replaces = "cat, head, tail, sed -n"

    async def run(
        self,
        path: Annotated[str, "The file, from the workspace on"],
        part: Annotated[str, "A heading, symbol or key of the file to read; empty for none"] = "",
        start: Annotated[int, Field(ge=0, description="The first line to read; 0 for none")] = 0,
        end: Annotated[int, Field(ge=0, description="The last line to read; 0 for the end")] = 0,
    ) -> ToolOutput:
        """The text, or what the file is made of."""
        where = self._files.path(self, path)
        content = await self._files.read(where)
        outline = await asyncio.to_thread(file_outline, str(where), content)
        config = self._files.config
        text = told(where, outline, part, (start, end), len(content), config.whole_file_chars, config.max_part_chars)
        digest = hashlib.sha256(content).hexdigest()
        return ToolOutput(text, tainted=await self._files.holds_strangers_words([str(where)], [digest]))


def told(
    path: WorkspacePath,
    outline: Outline,
    part: str,
    lines: tuple[int, int],
    size: int,
    whole_chars: int,
    part_chars: int,
) -> str:
    """What the model reads of a file that has `size` bytes; `lines` are the first and the last one that are wanted.
    Raises `ToolError` (no_such_part, bad_argument)."""
    chars = sum(len(line) + 1 for line in outline.lines)
    heading = f"{path}: {outline.kind}, {len(outline.lines)} lines, {size_of(size)}"
    if part:
        return _named_part(path, outline, part, heading, part_chars)
    if any(lines):
        return f"{heading}\n{_lines(outline, *lines, part_chars)}"
    if chars <= whole_chars and outline.lines:
        return f"{heading}\n" + "\n".join(outline.lines)
    budget = min(max(LEAST_OUTLINE, chars // OUTLINE_SHARE), MOST_OUTLINE)
    how = "\n(Read a part by its name, or by its lines with start and end.)" if outline.lines else ""
    return f"{heading}\n{outline.told(budget)}{how}"


def _named_part(path: WorkspacePath, outline: Outline, part: str, heading: str, most_chars: int) -> str:
    found = outline.named(part)
    if not found:
        text = f"{path} has no part that is called {shown(part)}; read it without, for the parts that it has"
        raise ToolError(text, kind="no_such_part")
    others = [f"{each.start}-{each.end} {each.title}" for each in found[1 : MOST_NAMED + 1]]
    also = f"\n(Others of that name: {'; '.join(others)})" if others else ""
    first: FilePart = found[0]
    return f"{heading}\n{_lines(outline, first.start, first.end, most_chars)}{also}"


def _lines(outline: Outline, start: int, end: int, most_chars: int) -> str:
    """The lines from `start` to `end`, as many of them as have room."""
    last = len(outline.lines)
    first, wanted = max(1, start), min(end or last, last)
    if first > last or wanted < first:
        raise ToolError(f"there are {last} lines, and {start} to {end} are none of them", kind="bad_argument")
    taken, room = list[str](), most_chars
    for line in outline.lines[first - 1 : wanted]:
        room -= len(line) + 1
        if room < 0:
            break
        taken.append(line)
    if not taken:
        return f"line {first}, its first {most_chars} characters:\n{outline.lines[first - 1][:most_chars]}"
    until = first + len(taken) - 1
    more = f"\n(Cut off here; go on with start={until + 1}.)" if until < wanted else ""
    return f"lines {first} to {until}:\n" + "\n".join(taken) + more
