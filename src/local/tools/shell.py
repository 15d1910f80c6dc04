"""The tools that run commands, in one process: a job that one of them has begun is read and ended by others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Self

from local.errors import SandboxMissing, SandboxRefused
from local.protocol.envelope import Envelope
from local.protocol.messages import Message, SessionDeleted, ToolRequest
from local.protocol.skill_messages import SkillsChanged
from local.runtime.participant import Resources, on
from local.services.sandbox.sandbox import sandbox_of_this_machine
from local.services.sandbox.sandbox_view import SandboxView
from local.tools.commands.shell_config import ShellConfig
from local.tools.commands.shell_exec_tool import ShellExecTool
from local.tools.commands.shell_jobs import JobLimits, ShellJobs
from local.tools.commands.shell_output_tool import ShellOutputTool
from local.tools.commands.shell_script_tool import ShellScriptTool
from local.tools.commands.shell_stop_tool import ShellStopTool
from local.tools.commands.skill_folders import folders_of_skills
from local.tools.tool import Tool
from local.tools.tool_group import ToolGroup

OF_JOBS = (ShellOutputTool, ShellStopTool)

log = logging.getLogger(__name__)


class Shell(ToolGroup):
    """Runs commands in a sandbox; without one on this machine, or for folders that no command may be given, it offers
    nothing, and says why."""

    name = "shell"
    Config = ShellConfig
    publishes = ("skills.request.ready",)
    tools = (ShellExecTool, ShellScriptTool, ShellOutputTool, ShellStopTool)

    def __init__(self, config: ShellConfig, jobs: ShellJobs | None, off: str = "") -> None:
        made = [] if jobs is None else [kind(config, jobs) for kind in self.tools]
        super().__init__(config, made)
        self._jobs, self._off = jobs, off
        self._looking: asyncio.Task[None] | None = None

    @classmethod
    def build(cls, config: ShellConfig, resources: Resources) -> Self:
        """With the sandbox of this machine, if there is one and a command may be given the folders."""
        closed = (resources.data_dir, *resources.layers[1:])
        try:
            view = SandboxView(resources.workspace_folder, config.readable, closed)
            sandbox = sandbox_of_this_machine()
        except (SandboxRefused, SandboxMissing) as why:
            return cls(config, None, str(why))
        limits = JobLimits(config.limits(), config.job_seconds, config.jobs_at_once)
        return cls(config, ShellJobs(sandbox, view, limits)).with_records(resources)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run jobs until the end, which is theirs, too."""
        async with super().lifespan():
            if self._off:
                log.info("no command can be run: %s", self._off)
            self._look_for_skills()
            try:
                yield
            finally:
                self._end_looking()
                if self._jobs is not None:
                    await self._jobs.close()

    @on(SkillsChanged)
    async def hear_of_skills(self, changed: SkillsChanged, envelope: Envelope) -> None:
        """Commands are to see other skills. Nobody waits for the answer: at an end there is none."""
        self._look_for_skills()

    def _look_for_skills(self) -> None:
        """Only the latest answer counts."""
        self._end_looking()
        self._looking = asyncio.create_task(self._show_skills(), name="ask for skills")

    def _end_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _show_skills(self) -> None:
        if self._jobs is not None:
            self._jobs.view = await folders_of_skills(self, self._jobs.view)

    def offered(self) -> Iterable[Tool]:
        """What reads and ends jobs once there has been one: each schema is a part of every prompt."""
        idle = self._jobs is None or not self._jobs.have_begun
        return [tool for tool in self._tools.values() if not (idle and isinstance(tool, OF_JOBS))]

    async def call(self, request: ToolRequest, envelope: Envelope) -> Message | None:
        """One call of one of the tools; before the first job is told of, it is told what can be done with it."""
        before = len(list(self.offered()))
        result = await super().call(request, envelope)
        if len(list(self.offered())) > before:
            await self.announce()
        return result

    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """End the session's jobs, too."""
        if self._jobs is not None:
            self._jobs.forget(deleted.deleted_session_id)
        await super().forget_session(deleted, envelope)

    def details(self) -> dict[str, str]:
        """Why nothing is offered, if so."""
        return {"off": self._off} if self._off else {}


def sandbox_problem() -> SandboxMissing | None:
    """Why no command can be run on this machine; None if one can."""
    try:
        sandbox_of_this_machine()
    except SandboxMissing as missing:
        return missing
    return None
