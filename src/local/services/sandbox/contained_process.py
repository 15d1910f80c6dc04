"""One command while it runs in its sandbox: its output as it comes, its limits, and its end with all it has started."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from local.errors import ToolError
from local.services.sandbox.command_outcome import SIGNAL_BASE, CommandOutcome, EndedBy
from local.services.sandbox.launch import Launch
from local.services.sandbox.launch_gate import LaunchGate
from local.services.sandbox.output_file import OutputFile
from local.services.sandbox.process_tree import ProcessTree
from local.services.sandbox.sandbox_limits import SandboxLimits

READ_BYTES = 64 * 1024
LOOK_SECONDS = 0.1  # between two looks at what the processes take; after EARLY_SECONDS, LATER_LOOK_SECONDS
LATER_LOOK_SECONDS = 0.25
EARLY_SECONDS = 2.0
GRACE_SECONDS = 2.0  # between the word to stop and the end
REST_SECONDS = 10.0  # for what is in the pipe when all processes have ended: only a busy machine takes long
SANDBOX_PROCESSES = 2  # bubblewrap outside and inside, which are not the command's


class ContainedProcess:
    """Begun by `start`; `output` grows while it runs, `heard` is told of each addition.

    Where bubblewrap contains it, nothing of it outlives this process: bubblewrap ends with its parent, and the
    command's process namespace with bubblewrap.
    """

    def __init__(self, workspace: Path, limits: SandboxLimits, heard: Callable[[], object]) -> None:
        self.output = OutputFile()
        self.limits = limits
        self._workspace, self._heard = workspace, heard
        self._ended_by = EndedBy.ITSELF
        self._started = time.monotonic()
        self._gate: LaunchGate | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, launch: Launch) -> None:
        """Begin. Raises `ToolError`: too_long for an argument list that no system takes, start_failed."""
        with launch:
            self._gate = LaunchGate() if launch.reports else None
            held = self._gate.descriptors if self._gate else ()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    launch.argv[0], *(self._gate.options if self._gate else ()), *launch.argv[1:], cwd=launch.folder,
                    pass_fds=(*launch.descriptors, *held), stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                if self._gate is not None:
                    self._gate.started()
                    await asyncio.to_thread(self._gate.open, self.limits)
            except (OSError, ValueError) as error:
                self.close()
                raise _not_started(error) from None
            except asyncio.CancelledError:
                self.close()
                raise

    async def wait(self) -> CommandOutcome:
        """Until it has ended, by itself or at a limit. Cancelled, it ends the command. Raises `ToolError`
        (start_failed) if the sandbox itself has failed."""
        assert self._process is not None
        reading = asyncio.create_task(self._read(self._process))
        watching = asyncio.create_task(self._watch(ProcessTree(self._process.pid)))
        try:
            async with asyncio.timeout(self.limits.seconds):
                await self._process.wait()
        except TimeoutError:
            self._end(EndedBy.TIME)
            await self._process.wait()
        finally:
            watching.cancel()
            self.kill()
            with suppress(TimeoutError):
                await asyncio.wait_for(reading, REST_SECONDS)
        return self._outcome(self._process)

    async def stop(self) -> None:
        """Ask all processes to end, and end those that do not within two seconds."""
        if self._process is None or self._process.returncode is not None:
            return
        self._ended_by = EndedBy.STOPPED
        ProcessTree(self._process.pid).signal(signal.SIGTERM, spare=SANDBOX_PROCESSES if self._gate else 0)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), GRACE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End every process of it at once; nothing if it has ended."""
        if self._process is not None and self._process.returncode is None:
            if self._ended_by is EndedBy.ITSELF:
                self._ended_by = EndedBy.STOPPED
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and let go of what it has written."""
        self.kill()
        self.output.close()
        if self._gate is not None:
            self._gate.close()

    def _end(self, why: EndedBy) -> None:
        if self._ended_by is EndedBy.ITSELF:
            self._ended_by = why
        self.kill()

    def _outcome(self, process: asyncio.subprocess.Process) -> CommandOutcome:
        seconds = time.monotonic() - self._started
        code = process.returncode or 0
        code = SIGNAL_BASE - code if code < 0 else code
        if self._gate is not None:
            told = self._gate.exit_code()
            if self._ended_by is EndedBy.ITSELF and told is None:
                said = self.output.part(0, 1000).decode("utf-8", "replace").strip()
                raise ToolError(f"the sandbox could not be made: {said or code}", kind="start_failed")
        return CommandOutcome(self._ended_by, code if self._ended_by is EndedBy.ITSELF else None, seconds)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Until all who could write have ended: what comes after an end at a limit is dropped, but taken, or the end of
        the process would not be noticed."""
        assert process.stdout is not None
        while data := await process.stdout.read(READ_BYTES):
            if self._ended_by is EndedBy.ITSELF or self._ended_by is EndedBy.STOPPED:
                self._add(data)

    def _add(self, data: bytes) -> None:
        room = self.limits.output_bytes - self.output.size
        try:
            self.output.append(data[:room])
        except OSError:
            self._end(EndedBy.DISK)
        self._heard()
        if len(data) > room:
            self._end(EndedBy.OUTPUT)

    async def _watch(self, tree: ProcessTree) -> None:
        """Look at what all processes take together, which no limit of a single one covers."""
        while True:
            early = time.monotonic() - self._started < EARLY_SECONDS
            await asyncio.sleep(LOOK_SECONDS if early else LATER_LOOK_SECONDS)
            if why := self._over(tree):
                self._end(why)

    def _over(self, tree: ProcessTree) -> EndedBy | None:
        allowed = self.limits.processes + SANDBOX_PROCESSES
        threads, held = tree.usage(allowed)
        if threads > allowed:
            return EndedBy.PROCESSES
        if held > self.limits.memory_bytes and tree.proportional_bytes() > self.limits.memory_bytes:
            return EndedBy.MEMORY
        return EndedBy.DISK if shutil.disk_usage(self._workspace).free < self.limits.free_bytes else None


def _not_started(error: OSError | ValueError) -> ToolError:
    if isinstance(error, ValueError):
        return ToolError(f"the command cannot be given to a program: {error}", kind="bad_arguments")
    if error.errno == errno.E2BIG:
        return ToolError("the arguments are longer than a program can be given: put them into a file", kind="too_long")
    return ToolError(f"the command could not be started: {error.strerror}", kind="start_failed")
