"""The tool that finds definitions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from local.tools.code_tools.code_tool import CodeTool
from local.tools.tool import ToolOutput


class FindSymbolTool(CodeTool):
    """Find where a class, function, method or type is defined, with its lines."""

    name = "find_symbol"

    async def run(
        self,
        name: Annotated[str, Field(min_length=1, max_length=500, description="Such as Basket or Basket.total")],
        path: Annotated[str, "The folder or file"] = ".",
    ) -> ToolOutput:
        """Each definition with its file and lines."""
        return await self.found("definitions", name, path)
