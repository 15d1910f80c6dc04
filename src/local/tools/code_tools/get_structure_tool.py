"""The tool that tells what a folder of programs is made of."""

from __future__ import annotations

from typing import Annotated

from local.tools.code_tools.code_tool import CodeTool
from local.tools.tool import ToolOutput


class GetStructureTool(CodeTool):
    """Tell the classes and functions of all programs in a folder, with their lines."""

    name = "get_structure"

    async def run(self, path: Annotated[str, "The folder or file"] = ".") -> ToolOutput:
        """Each file with its symbols."""
        return await self.found("structure", "", path)
