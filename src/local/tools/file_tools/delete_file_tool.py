"""The tool that takes a file away."""

from __future__ import annotations

from typing import Annotated

from local.tools.file_tools.workspace_files import FilesConfig, WorkspaceFiles, cause_of
from local.tools.tool import Tool, ToolOutput


class DeleteFileTool(Tool):
    """Delete one file of the workspace. What it held is kept, so that the user can have it back."""

    name = "delete_file"
    effect = "write"
    safety = "L1"
    category = "write"
    trusted = True

    def __init__(self, config: FilesConfig, files: WorkspaceFiles) -> None:
        super().__init__(config)
        self._files = files

    async def run(self, path: Annotated[str, "The file, from the workspace on"]) -> ToolOutput:
        """That it is gone."""
        where = self._files.path_to_change(self, path)
        await self._files.editor.delete(where, cause_of(self))
        return ToolOutput(f"{where} is deleted; what it held is kept, and the user can have it back.", undoable=True)
