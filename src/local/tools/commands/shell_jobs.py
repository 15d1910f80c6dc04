"""The commands that run for calls of one process, and those that go on after their call has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from local.errors import ToolError
from local.services.sandbox.contained_process import ContainedProcess
from local.services.sandbox.launch import ContainedCommand
from local.services.sandbox.sandbox import Sandbox
from local.services.sandbox.sandbox_limits import SandboxLimits
from local.services.sandbox.sandbox_view import SandboxView
from local.tools.commands.shell_job import AskedCommand, ShellJob

ENDED_KEPT = 16  # jobs of which the output can still be read


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits of each command, how long those may take that nobody waits for, and how many of the latter there may
    be."""

    each: SandboxLimits
    job_seconds: float
    jobs_at_once: int


class ShellJobs:
    """Starts commands in the sandbox, in one workspace. `view` is what those see that are started from then on."""

    def __init__(self, sandbox: Sandbox, view: SandboxView, limits: JobLimits) -> None:
        self._sandbox, self.view, self._limits = sandbox, view, limits
        self._jobs: dict[str, ShellJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._count = 0

    async def run(self, command: ContainedCommand, asked: AskedCommand, tell: Callable[[int, str], object]) -> ShellJob:
        """A command, when it has ended; close its process. Raises `ToolError`; cancelled, it is ended."""
        job = await self._begun("", command, asked, tell, self._limits.each)
        try:
            await job.see_to_its_end()
        except BaseException:
            job.process.close()
            raise
        return job

    async def start(
        self, command: ContainedCommand, asked: AskedCommand, tell: Callable[[int, str], object],
        ended: Callable[[ShellJob], Awaitable[object]],
    ) -> ShellJob:  # fmt: skip
        """A command that goes on by itself; `ended` is awaited when it does not any more. Raises `ToolError`."""
        running = [job for job in self._jobs.values() if not job.is_over()]
        if len(running) >= self._limits.jobs_at_once:
            names = ", ".join(job.name for job in running)
            text = f"{len(running)} jobs are running ({names}), which is as many as there may be: stop one first"
            raise ToolError(text, kind="too_many")
        self._count += 1
        limits = replace(self._limits.each, seconds=self._limits.job_seconds)
        job = await self._begun(f"job-{self._count}", command, asked, tell, limits)
        self._jobs[job.name] = job
        self._tasks[job.name] = asyncio.create_task(self._see_through(job, ended), name=job.name)
        return job

    @property
    def have_begun(self) -> bool:
        """Whether there has been any that nobody waits for."""
        return self._count > 0

    def job(self, name: str, session_id: str) -> ShellJob:
        """A job of a session. Raises `ToolError` (unknown_job) for any other."""
        job = self._jobs.get(name)
        if job is None or job.asked.session_id != session_id:
            known = ", ".join(each.name for each in self.of(session_id)) or "none"
            raise ToolError(f"there is no job {name!r}; of this conversation there are: {known}", kind="unknown_job")
        return job

    def of(self, session_id: str) -> list[ShellJob]:
        """The jobs of a session, the oldest first."""
        return [job for job in self._jobs.values() if job.asked.session_id == session_id]

    async def end_of(self, job: ShellJob) -> None:
        """Until a job has ended."""
        if (task := self._tasks.get(job.name)) is not None:
            await asyncio.wait({task})

    def folder(self, named: str) -> str:
        """A folder of the workspace, counted from it. Raises `ToolError` (bad_arguments) for one that is not in it."""
        path, workspace = Path(named), self.view.workspace.resolve()
        if path.is_absolute() and path.is_relative_to(workspace):
            path = path.relative_to(workspace)
        if path.is_absolute() or ".." in path.parts:
            text = f"folder is {named!r}; expected one in the workspace {workspace}, counted from there"
            raise ToolError(text, kind="bad_arguments")
        return str(path)

    def forget(self, session_id: str) -> None:
        """End the jobs of a session, and drop what they have written."""
        for job in self.of(session_id):
            if job.is_over():
                self._drop(job)
            else:
                self._jobs.pop(job.name)
                job.process.kill()

    async def close(self) -> None:
        """End all of them."""
        for job in self._jobs.values():
            job.process.kill()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for job in list(self._jobs.values()):
            self._drop(job)

    async def _begun(
        self, name: str, command: ContainedCommand, asked: AskedCommand, tell: Callable[[int, str], object],
        limits: SandboxLimits,
    ) -> ShellJob:  # fmt: skip
        job = ShellJob(name, asked, tell)
        self.view.workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        job.process = ContainedProcess(self.view.workspace, limits, job.grew)
        await job.process.start(self._sandbox.launch(command, self.view, limits))
        return job

    async def _see_through(self, job: ShellJob, ended: Callable[[ShellJob], Awaitable[object]]) -> None:
        with suppress(ToolError):  # the job tells of it
            await job.see_to_its_end()
        if job.name in self._jobs:
            await ended(job)
        else:  # it was forgotten
            job.process.close()
        self._tasks.pop(job.name, None)
        over = [each for each in self._jobs.values() if each.is_over()]
        for old in over[:-ENDED_KEPT]:
            self._drop(old)

    def _drop(self, job: ShellJob) -> None:
        self._jobs.pop(job.name, None)
        job.process.close()
