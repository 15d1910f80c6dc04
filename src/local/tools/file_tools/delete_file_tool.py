"""The tool that takes a file away."""

from __future__ import annotations

from typing import Annotated

from local.tools.file_tools.file_tool import ChangingFileTool
from local.tools.file_tools.workspace_files import cause_of
from local.tools.tool import ToolOutput


class DeleteFileTool(ChangingFileTool):
    """Delete one file of the workspace. What it held is kept, so that the user can have it back."""

    name = "delete_file"
    replaces = "rm"

    async def run(self, path: Annotated[str, "The file, from the workspace on"]) -> ToolOutput:
        """That the file is gone."""
        where = self._files.path_to_change(self, path)
        await self._files.editor.delete(where, cause_of(self))
        return ToolOutput(f"{where} is deleted; what it held is kept, and the user can have it back.", undoable=True)
