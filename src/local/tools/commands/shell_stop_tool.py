"""The tool that ends a job."""

from __future__ import annotations

from typing import Annotated

from local.protocol.envelope import session_of
from local.tools.commands.command_tool import CommandTool
from local.tools.tool import ToolOutput


class ShellStopTool(CommandTool):
    """End a job that was begun in the background, with all that it has started."""

    name = "shell_stop"

    async def run(self, job: Annotated[str, "Its name"]) -> ToolOutput:
        """How the command ended."""
        found = self._jobs.job(job, session_of(self.asked_by(), self.request().query_id))
        await found.process.stop()
        await self._jobs.end_of(found)
        return ToolOutput(f"{found.name}: {found.status()}")
