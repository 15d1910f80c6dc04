"""What each tool for files is."""

from __future__ import annotations

from local.tools.file_tools.workspace_files import FilesConfig, WorkspaceFiles
from local.tools.tool import Tool, ToolOutput

TAIL_SHARE = 4  # a quarter of a result that is cut off is from the end


class FileTool(Tool):
    """A tool over the workspace's files. How much it may do, it says itself."""

    trusted = True  # and says where it shows a stranger's words

    def __init__(self, config: FilesConfig, files: WorkspaceFiles) -> None:
        super().__init__(config)
        self._files = files

    def told(self, text: str, *, tainted: bool) -> ToolOutput:
        """A result of which, where it is too long, the beginning and the end are shown."""
        return ToolOutput(text, tainted=tainted, tail=self.max_result_chars // TAIL_SHARE)


class ChangingFileTool(FileTool):
    """A tool that changes a file, so that it can be undone."""

    effect = "write"
    safety = "L1"
    category = "write"
