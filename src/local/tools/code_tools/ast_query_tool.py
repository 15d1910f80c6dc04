"""The tool that finds syntax."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from local.tools.code_tools.code_tool import CodeTool
from local.tools.tool import ToolOutput


class AstQueryTool(CodeTool):
    """Find syntax in programs by a query of tree-sitter, such as (call function: (identifier) @name)."""

    name = "ast_query"

    async def run(
        self,
        query: Annotated[str, Field(min_length=1, max_length=4000, description="What @names capture is told")],
        path: Annotated[str, "The folder or file"] = ".",
    ) -> ToolOutput:
        """Each capture with its file, line and text."""
        return await self.found("syntax", query, path)
