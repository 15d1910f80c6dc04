"""The tool that makes a file, or writes one anew."""

from __future__ import annotations

import asyncio
from typing import Annotated

from local.services.workspace.text_diff import text_diff
from local.tools.file_tools.file_tool import ChangingFileTool
from local.tools.tool import ToolOutput


class WriteFileTool(ChangingFileTool):
    """Write a whole text file in the workspace. It is a new one, with the folders on the way to it, or takes the place
    of what is there. To change parts of a file, use edit_file. The user can undo it."""

    name = "write_file"
    replaces = "tee, echo with >"

    async def run(
        self,
        path: Annotated[str, "The file, from the workspace on, such as src/todo.py"],
        content: Annotated[str, "All that the file is to hold"],
    ) -> ToolOutput:
        """How the file has changed, as a diff."""
        where = self._files.path_to_change(self, path)
        digest = await asyncio.to_thread(self._files.workspace.digest, where)
        before = None if digest is None else await self._files.read(where)
        after = content.encode("utf-8", "replace")
        lines = len(content.splitlines())
        if before == after:
            return ToolOutput(f"{where} holds exactly that already ({lines} lines); nothing was written.")
        tainted = digest is not None and await self._files.holds_strangers_words([str(where)], [digest])
        await self._files.write(self, where, after, before, keeps_taint=False)
        if before is None:
            return ToolOutput(f"{where} is new: {lines} lines, {len(after)} bytes.", undoable=True)
        diff = text_diff(str(where), before, after)
        return ToolOutput(f"{where} was written anew: {lines} lines.\n{diff}", undoable=True, tainted=tainted)
