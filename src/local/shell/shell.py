"""The tools that run commands, in one process: a job that one of them has begun is read and ended by others."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field

from local.bus.envelope import Envelope, Trace, new_id, session_of
from local.bus.message import Message
from local.bus.messages import SessionDeleted, ToolJob, ToolProgress, ToolRequest
from local.core.config import Settings
from local.core.errors import LocalError, SandboxMissing, SandboxRefused, ToolError
from local.core.text import is_binary, readable_output
from local.runtime.participant import Participant, Publications, Resources, on
from local.sandbox.process import MB, CommandOutcome, ContainedCommand, ContainedProcess, SandboxLimits
from local.sandbox.sandbox import Sandbox, SandboxView, sandbox_of_this_machine
from local.skills.messages import SkillRequest, SkillResult, SkillsChanged
from local.tools.group import ToolGroup
from local.tools.tool import Tool, ToolOutput

# The settings of the tools that run commands.


class ShellConfig(Settings):
    """The settings in `shell.yaml`; the comments there explain each key."""

    timeout_seconds: float = Field(120, gt=0, le=3600)
    job_seconds: float = Field(3600, gt=0)
    jobs_at_once: int = Field(4, ge=0)
    memory_mb: int = Field(2048, ge=16)
    processes: int = Field(256, ge=4)
    file_mb: int = Field(512, ge=1)
    scratch_mb: int = Field(256, ge=1)
    scratch_files: int = Field(100_000, ge=100)
    output_mb: int = Field(32, ge=1, le=256)
    free_mb: int = Field(512, ge=0)
    free_files: int = Field(10_000, ge=0)
    max_result_chars: int = Field(30_000, ge=1000)
    readable: tuple[Path, ...] = ()

    def limits(self) -> SandboxLimits:
        """The limits of a command that is waited for."""
        return SandboxLimits(
            seconds=self.timeout_seconds, memory_bytes=self.memory_mb * MB, processes=self.processes,
            file_bytes=self.file_mb * MB, scratch_bytes=self.scratch_mb * MB, output_bytes=self.output_mb * MB,
            scratch_files=self.scratch_files, free_bytes=self.free_mb * MB, free_files=self.free_files,
        )  # fmt: skip


# One command of a call: its request, its output, its end.

TELL_SECONDS = 0.25  # between two messages about one command's output
TOLD_BYTES = 8000  # of it in one of them


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """A command as its call requested it; `session_id` is its session."""

    shown: str
    argv: tuple[str, ...]
    session_id: str


class ShellJob:
    """A running command. `tell(start, text)` receives its output as it comes."""

    def __init__(self, name: str, asked: AskedCommand, tell: Callable[[int, str], object]) -> None:
        self.name, self.asked = name, asked
        self.outcome: CommandOutcome | None = None
        self.trouble = ""  # what kept it from ever running
        self.process: ContainedProcess
        self._tell = tell
        self._told = 0
        self._telling: asyncio.TimerHandle | None = None
        self._grown = asyncio.Event()

    def grew(self) -> None:
        """Report more output, at once or a quarter of a second after the last report."""
        self._grown.set()
        if self._telling is None:
            self._publish_new()

    async def see_to_its_end(self) -> None:
        """Wait until the command has ended. Raises `ToolError` if it could not begin. If cancelled, it ends it."""
        try:
            self.outcome = await self.process.wait()
        except ToolError as error:
            self.trouble = str(error)
            raise
        finally:
            self._grown.set()
            if self._telling is not None:
                self._telling.cancel()

    async def more_than(self, size: int) -> None:
        """Wait until there is more output than so many bytes, or it has ended."""
        while not self.is_over() and self.process.output.size <= size:
            self._grown.clear()
            await self._grown.wait()

    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.outcome is not None or bool(self.trouble)

    def status(self) -> str:
        """Return the job's state in a line."""
        if self.outcome is None:
            if self.trouble:
                return self.trouble
            return f"running, {self.process.output.size} bytes of output so far"
        return self.outcome.explained(self.asked.argv, self.process.limits)

    def text(self, start: int = 0, length: int = -1) -> str:
        """The output from a byte on, as it can be read."""
        data = self.process.output.part(start, length)
        note = "[This is binary; bytes that are not text are shown as \\x and two digits.]\n" if is_binary(data) else ""
        return note + readable_output(data)

    def _publish_new(self) -> None:
        self._telling = None
        size = self.process.output.size
        if size == self._told:
            return
        start = max(self._told, size - TOLD_BYTES)
        self._tell(start, readable_output(self.process.output.part(start, size - start)))
        self._told = size
        self._telling = asyncio.get_running_loop().call_later(TELL_SECONDS, self._publish_new)


def shown(argv: tuple[str, ...]) -> str:
    """An argument vector as a person reads it."""
    return shlex.join(argv)


# The running commands of one process, also those that continue after their call has ended.

ENDED_KEPT = 16  # jobs whose output can still be read


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits of commands: those of each one, the time limit of background commands, and how many of these
    may run."""

    each: SandboxLimits
    job_seconds: float
    jobs_at_once: int


class ShellJobs:
    """The commands of this process and their start. `view` is what a new command can see."""

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
        """Start a command in the background; `ended` is awaited when it has ended. Raises `ToolError`."""
        running = [job for job in self._jobs.values() if not job.is_over()]
        if len(running) >= self._limits.jobs_at_once:
            names = ", ".join(job.name for job in running)
            text = f"{len(running)} jobs are running ({names}), which is the maximum: stop one first"
            raise ToolError(text, kind="too_many")
        self._count += 1
        limits = replace(self._limits.each, seconds=self._limits.job_seconds)
        job = await self._begun(f"job-{self._count}", command, asked, tell, limits)
        self._jobs[job.name] = job
        self._tasks[job.name] = asyncio.create_task(self._see_through(job, ended), name=job.name)
        return job

    @property
    def have_begun(self) -> bool:
        """Whether any background job was started."""
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
        """Wait until a job has ended."""
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
        """End the jobs of a session, and delete their output."""
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
        with suppress(ToolError):  # the job reports it
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


# The base of the tools that start commands: how a call becomes a job, and a job a result.

log = logging.getLogger(__name__)

TAIL_SHARE = 3  # a third of a result that is cut off is from the end
SLACK_SECONDS = 10.0  # for starting and ending, so that a command's own time limit comes first
FIRST_SECONDS = 1.0  # how long is waited for the first output of a job


class CommandTool(Tool):
    """Base class of tools whose calls run commands in the sandbox."""

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
        """Return the answer of a call: how the command ended and its output, or the name of its job. Raises
        `ToolError`: not_yours for users other than the owner.
        """
        trace, request = self.asked_by(), self.request()
        self.require_owner()
        asked = AskedCommand(shown, tuple(command.argv), session_of(trace, request.query_id))
        tell = self._teller(request, trace)
        if not background:
            job = await self._jobs.run(command, asked, tell)
            try:
                return result(job, self.max_result_chars, await asyncio.to_thread(job.text))
            finally:
                job.process.close()
        job = await self._jobs.start(command, asked, tell, lambda ended: self._publish_end(ended, request, trace))
        await self.bus.publish(_job_state(job, request, "running"), trace)
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                await job.more_than(0)
        except TimeoutError:
            pass
        begun = f"{job.name} has started. shell_output reads its output, shell_stop ends it."
        return ToolOutput(f"{begun}\n{job.status()}\n\n{job.text()}".rstrip(), tail=self.max_result_chars // TAIL_SHARE)

    def _teller(self, request: ToolRequest, trace: Trace) -> Callable[[int, str], None]:
        def tell(start: int, text: str) -> None:
            progress = ToolProgress(
                query_id=request.query_id, respondent_id=request.respondent_id, call_id=request.call_id,
                tool=self.name, start=start, text=text,
            )  # fmt: skip
            self.bus.post(progress, trace)

        return tell

    async def _publish_end(self, job: ShellJob, request: ToolRequest, trace: Trace) -> None:
        """Publish a job's end with all of its output, although the model may not have read it."""
        try:
            output = await asyncio.to_thread(job.text)
            await self.bus.publish(_job_state(job, request, "ended", output), trace)
        except LocalError as error:
            log.error("the end of %s could not be published: %s", job.name, error)


def result(job: ShellJob, max_chars: int, output: str) -> ToolOutput:
    """Return how a command ended and its output; of long output the beginning and the end."""
    text = f"{job.status()}\n\n{output}" if output else f"{job.status()}\n\n(no output)"
    return ToolOutput(text, tail=max_chars // TAIL_SHARE)


def _job_state(job: ShellJob, request: ToolRequest, state: str, output: str = "") -> ToolJob:
    outcome = job.status() if state == "ended" else ""
    return ToolJob(
        query_id=request.query_id, respondent_id=request.respondent_id, call_id=request.call_id, tool=request.tool,
        job=job.name, state="ended" if outcome else "running", command=job.asked.shown, outcome=outcome, output=output,
    )  # fmt: skip


# The tool that runs one command.

SHELL = ("/bin/bash", "-c")


class ShellExecTool(CommandTool):
    """Run a command in the workspace and read its exit code and output. It sees the workspace and the system's
    programs, no network and nothing else; /tmp is empty each time. Its standard input is empty."""

    name = "shell_exec"

    async def run(
        self,
        command: Annotated[
            str | list[str], "A command line for bash; or a list, the program and its arguments, which no shell reads"
        ],
        folder: Annotated[str, "Where to run it, counted from the workspace"] = ".",
        background: Annotated[
            bool, Field(description="Do not wait for its end: for servers, and for what takes longer than two minutes")
        ] = False,
    ) -> ToolOutput:
        """Return how the command ended and its output."""
        argv = tuple(command) if isinstance(command, list) else (*SHELL, command)
        if not argv or not argv[0] or (isinstance(command, str) and not command.strip()):
            raise ToolError(
                "command is empty; expected a command line, or a program and its arguments", kind="bad_arguments"
            )
        line = command if isinstance(command, str) else shown(argv)
        return await self.carried_out(ContainedCommand(argv, self._jobs.folder(folder)), line, background)


# The tool that reads a job's output.

PART_BYTES = 20_000
MAX_WAIT_SECONDS = 60


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
        """Return the state of the job, and its output from `start` on."""
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


# The tool that runs a script.


class ShellScriptTool(CommandTool):
    """Run a script of several lines in the workspace, as shell_exec runs a command; it is not kept as a file."""

    name = "shell_script"

    async def run(
        self,
        script: Annotated[str, "The text of the script"],
        interpreter: Annotated[str, "The program that reads it, such as bash, sh, python3, node or perl"] = "bash",
        arguments: Annotated[list[str], "What the script is given"] = [],  # noqa: B006 - it is never changed
        folder: Annotated[str, "Where to run it, counted from the workspace"] = ".",
        background: Annotated[bool, "Do not wait for its end"] = False,
    ) -> ToolOutput:
        """Return how the script ended and its output."""
        if not script.strip():
            raise ToolError("script is empty; expected the text of a script", kind="bad_arguments")
        if not interpreter or interpreter.startswith("-"):
            raise ToolError(f"interpreter is {interpreter!r}; expected a program", kind="bad_arguments")
        text = script.encode("utf-8", "surrogateescape")
        command = ContainedCommand((interpreter,), self._jobs.folder(folder), text, tuple(arguments))
        return await self.carried_out(command, f"{interpreter}: {script}", background)


# The tool that ends a job.


class ShellStopTool(CommandTool):
    """End a job that was begun in the background, with all that it has started."""

    name = "shell_stop"

    async def run(self, job: Annotated[str, "Its name"]) -> ToolOutput:
        """Return how the command ended."""
        found = self._jobs.job(job, session_of(self.asked_by(), self.request().query_id))
        await found.process.stop()
        await self._jobs.end_of(found)
        return ToolOutput(f"{found.name}: {found.status()}")


# The skills whose programs commands may run.

ANSWER_SECONDS = 5.0


async def folders_of_skills(asker: Participant, view: SandboxView) -> SandboxView:
    """Return a view that shows the skills which are ready now; the same view if the skill service does not answer.
    Those of the workspace are shown in place: a command could move them while another one starts.
    """
    try:
        result = await asker.bus.request(SkillRequest(verb="ready"), SkillResult, ANSWER_SECONDS, Trace(new_id()))
    except LocalError as error:
        log.debug("the skills that commands may see are unknown: %s", error)
        return view
    shown = list[Path]()
    for skill in result.skills:
        folder = Path(skill.folder)
        try:
            replace(view, skills=(folder,))
        except SandboxRefused as refused:
            log.warning("the skill %s is not shown to commands: %s", skill.name, refused)
            continue
        if skill.place != "workspace":
            shown.append(folder)
    return replace(view, skills=tuple(shown))


OF_JOBS = (ShellOutputTool, ShellStopTool)


class Shell(ToolGroup):
    """The participant that runs commands in a sandbox. Without a sandbox on this machine, or for folders that commands
    must not access, it offers no tools and reports the reason.
    """

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
        """Build the participant with this machine's sandbox, if there is one and commands may access the folders."""
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
    async def on_skills_changed(self, changed: SkillsChanged, envelope: Envelope) -> None:
        """Update the skills that commands can see, in the background, because at the end of the process there may be
        no answer.
        """
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
        """Return the offered tools. Those for jobs are offered after the first job, because each schema is part of
        every prompt.
        """
        idle = self._jobs is None or not self._jobs.have_begun
        return [tool for tool in self._tools.values() if not (idle and isinstance(tool, OF_JOBS))]

    async def call(self, request: ToolRequest, envelope: Envelope) -> Message | None:
        """Execute one call; before the first job is reported, the model is offered the tools for jobs."""
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
