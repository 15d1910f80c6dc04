"""The tool that tells of commits."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from local.tools.git_tools.git_tool import GitTool
from local.tools.tool import ToolOutput


class GitLogTool(GitTool):
    """List commits, the latest first."""

    name = "git_log"
    replaces = "git log"
    safety = "L0"

    async def run(
        self,
        path: Annotated[str, "Those that changed this"] = ".",
        branch: Annotated[str, "Where to begin, or a..b; empty for the present one"] = "",
        text: Annotated[str, "Words of their messages"] = "",
        count: Annotated[int, Field(ge=1, le=500)] = 20,
    ) -> ToolOutput:
        """A line for each, and the rest of its message below. Anybody may have written it, whatever name it has."""
        found = await self._repository.log(self.paths(path), revision=branch, most=count, words=text)
        return self.told(found or "no such commit", tainted=True)
