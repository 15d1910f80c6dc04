"""The tool that finds lines of text."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from local.tools.code_tools.code_tool import CodeTool
from local.tools.tool import ToolOutput


class SearchCodeTool(CodeTool):
    """Find lines in the workspace's text files by a regular expression. Ignored files are left out."""

    name = "search_code"
    replaces = "grep, rg"

    async def run(
        self,
        pattern: Annotated[str, Field(min_length=1, max_length=2000, description="A regular expression, as of Python")],
        path: Annotated[str, "The folder or file"] = ".",
        files: Annotated[str, "Which files, such as *.py"] = "",
        ignore_case: bool = False,
    ) -> ToolOutput:
        """Each file with the lines and their numbers."""
        return await self.found("text", pattern, path, pattern=files, ignore_case=ignore_case)
