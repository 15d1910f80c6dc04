"""The base of the tools that start commands: how a call becomes a job, and a job a result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import ClassVar

from local.errors import LocalError
from local.protocol.envelope import Trace, session_of
from local.protocol.messages import ToolRequest
from local.protocol.progress_messages import ToolJob, ToolProgress
from local.runtime.participant import Publications
from local.services.sandbox.launch import ContainedCommand
from local.tools.commands.shell_config import ShellConfig
from local.tools.commands.shell_job import AskedCommand, ShellJob
from local.tools.commands.shell_jobs import ShellJobs
from local.tools.owner_only import require_owner
from local.tools.tool import Tool, ToolOutput

log = logging.getLogger(__name__)

TAIL_SHARE = 3  # a third of a result that is cut off is from the end
SLACK_SECONDS = 10.0  # for starting and ending, so that a command's own time limit comes first
FIRST_SECONDS = 1.0  # how long is waited for the first output of a job


class CommandTool(Tool):
    """A tool whose calls run commands in the sandbox."""

    Config = ShellConfig
    effect = "write"
    category = "shell"
    max_result_chars = 30_000
    publishes: ClassVar[Publications | None] = (ToolProgress, ToolJob)

    def __init__(self, config: ShellConfig, jobs: ShellJobs) -> None:
        super().__init__(config)
        self._jobs = jobs
        self.timeout_seconds = config.timeout_seconds + SLACK_SECONDS

    async def carried_out(self, command: ContainedCommand, shown: str, background: bool) -> ToolOutput:
        """What a call of it answers: how the command ended and what it has written; or the name of its job. Raises
        `ToolError`: not_yours for anybody but the owner."""
        trace, request = self.asked_by(), self.request()
        require_owner(trace)
        asked = AskedCommand(shown, tuple(command.argv), session_of(trace, request.query_id))
        tell = self._teller(request, trace)
        if not background:
            job = await self._jobs.run(command, asked, tell)
            try:
                return result(job, self.max_result_chars, await asyncio.to_thread(job.text))
            finally:
                job.process.close()
        job = await self._jobs.start(command, asked, tell, lambda ended: self._tell_end(ended, request, trace))
        await self.bus.publish(_told(job, request, "running"), trace)
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                await job.more_than(0)
        except TimeoutError:
            pass
        begun = f"{job.name} has begun. shell_output reads what it writes, shell_stop ends it."
        return ToolOutput(f"{begun}\n{job.status()}\n\n{job.text()}".rstrip(), tail=self.max_result_chars // TAIL_SHARE)

    def _teller(self, request: ToolRequest, trace: Trace) -> Callable[[int, str], None]:
        def tell(start: int, text: str) -> None:
            progress = ToolProgress(
                query_id=request.query_id, respondent_id=request.respondent_id, call_id=request.call_id,
                tool=self.name, start=start, text=text,
            )  # fmt: skip
            self.bus.post(progress, trace)

        return tell

    async def _tell_end(self, job: ShellJob, request: ToolRequest, trace: Trace) -> None:
        """All that a job has written is on record, although nobody may have read it."""
        try:
            output = await asyncio.to_thread(job.text)
            await self.bus.publish(_told(job, request, "ended", output), trace)
        except LocalError as error:
            log.error("the end of %s could not be told: %s", job.name, error)


def result(job: ShellJob, max_chars: int, output: str) -> ToolOutput:
    """How a command ended, then what it has written, from its beginning and its end where that is too long."""
    text = f"{job.status()}\n\n{output}" if output else f"{job.status()}\n\n(no output)"
    return ToolOutput(text, tail=max_chars // TAIL_SHARE)


def _told(job: ShellJob, request: ToolRequest, state: str, output: str = "") -> ToolJob:
    outcome = job.status() if state == "ended" else ""
    return ToolJob(
        query_id=request.query_id, respondent_id=request.respondent_id, call_id=request.call_id, tool=request.tool,
        job=job.name, state="ended" if outcome else "running", command=job.asked.shown, outcome=outcome, output=output,
    )  # fmt: skip
