"""The tool that reads what a job writes."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from local.protocol.envelope import session_of
from local.tools.commands.shell_config import ShellConfig
from local.tools.commands.shell_jobs import ShellJobs
from local.tools.tool import Tool, ToolOutput

PART_BYTES = 20_000
MAX_WAIT_SECONDS = 60
SLACK_SECONDS = 10.0


class ShellOutputTool(Tool):
    """Read what a job writes that was begun in the background, or list the jobs of this conversation."""

    name = "shell_output"
    Config = ShellConfig
    effect = "read"
    safety = "L0"
    category = "shell"
    timeout_seconds = MAX_WAIT_SECONDS + SLACK_SECONDS
    max_result_chars = 30_000

    def __init__(self, config: ShellConfig, jobs: ShellJobs) -> None:
        super().__init__(config)
        self._jobs = jobs

    async def run(
        self,
        job: Annotated[str, "Its name; nothing lists the jobs there are"] = "",
        start: Annotated[int, Field(ge=0, description="The byte to begin at; 0 is the beginning")] = 0,
        wait: Annotated[
            int, Field(ge=0, le=MAX_WAIT_SECONDS, description="Wait so many seconds for more, or for its end")
        ] = 0,
    ) -> ToolOutput:
        """How the command stands, and its output from `start` on."""
        session_id = session_of(self.asked_by(), self.request().query_id)
        if not job:
            lines = [f"{each.name}: {each.status()}: {each.asked.shown}" for each in self._jobs.of(session_id)]
            return ToolOutput("\n".join(lines) or "There are no jobs.")
        found = self._jobs.job(job, session_id)
        try:
            async with asyncio.timeout(wait):
                await found.more_than(start)
        except TimeoutError:
            pass
        total = found.process.output.size
        end = min(start + PART_BYTES, total)
        place = f"[Bytes {start} to {end} of {total}. To read on, call shell_output with start={end}.]"
        return ToolOutput(f"{found.status()}\n\n{found.text(start, PART_BYTES)}\n\n{place}")
