"""Runs git: contained where bubblewrap is there, with no settings but those that are written for it."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from local.errors import SandboxMissing, SandboxRefused, ToolError
from local.services.sandbox.bubblewrap import Bubblewrap
from local.services.sandbox.launch import PATH, ContainedCommand, Launch
from local.services.sandbox.launch_gate import LaunchGate
from local.services.sandbox.sandbox_limits import MB, SandboxLimits
from local.services.sandbox.sandbox_view import SandboxView

GET_IT = "git is not installed; install it (Debian, Ubuntu: apt install git; macOS: xcode-select --install)"
SECONDS = 20.0
MOST_BYTES = 4 * MB  # of output; git is ended when it writes more
READ_BYTES = 64 * 1024
LIMITS = SandboxLimits(seconds=SECONDS, memory_bytes=1024 * MB, processes=16, output_bytes=MOST_BYTES)
# Whatever is not named here does not exist for git: no home, no settings of the system, no helper of any sort.
ENVIRONMENT: Mapping[str, str] = {
    "PATH": PATH, "HOME": "/nonexistent", "LANG": "C.UTF-8", "TERM": "dumb",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat",
    "GIT_EDITOR": "false", "GIT_ASKPASS": "false", "GIT_SSH_COMMAND": "false", "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_LITERAL_PATHSPECS": "1",
}  # fmt: skip


class GitProgram:
    """The one that is installed. `closed` are folders of which nothing may be seen by what it runs."""

    def __init__(self, workspace: Path, closed: tuple[Path, ...] = ()) -> None:
        self._workspace, self._closed = workspace, closed

    @staticmethod
    def installed() -> str | None:
        """Where git is; None if it is not installed."""
        return shutil.which("git")

    async def run(
        self,
        calls: Sequence[Sequence[str]],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        said: bytes = b"",
        *,
        writes: bool = False,
    ) -> bytes:
        """What git writes to its standard output, given `said` as its input and `folder` as its own folder, called with
        each of these arguments in turn until a call fails: all in one sandbox, as each costs more than git itself. Only
        what `writes` may change the workspace. Raises `ToolError`: git_missing, git_failed, too_slow."""
        if (program := self.installed()) is None:
            raise ToolError(GET_IT, kind="git_missing")
        where = {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(self._workspace)}
        variables = {**ENVIRONMENT, **where, **(environment or {})}
        command = ContainedCommand(_in_turn(program, calls), environment=variables)
        launch = await asyncio.to_thread(self._launch, command, folder, writes)
        with launch:
            code, output, troubles = await _ran(launch, dict(command.environment), said, self._workspace)
        if code and len(output) < MOST_BYTES:
            words = troubles.decode("utf-8", "replace").strip() or f"it ended with {code}"
            raise ToolError(f"git {', '.join(each[0] for each in calls)}: {words[:1000]}", kind="git_failed")
        return output

    async def of_owner(self) -> dict[str, str]:
        """What the settings of the owner of this machine's account say of them: user.name and user.email."""
        arguments = (self.installed() or "git", "config", "--global", "-z", "--get-regexp", r"^user\.(name|email)$")
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments, cwd="/", stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            said, _ = await process.communicate()
        except OSError:
            return {}
        return settings_of(said)

    @cached_property
    def _sandbox(self) -> Bubblewrap | None:
        with suppress(SandboxMissing):
            return Bubblewrap.found() if sys.platform.startswith("linux") else None
        return None

    def _launch(self, command: ContainedCommand, folder: Path, writes: bool) -> Launch:
        if self._sandbox is None:
            return Launch(*command.argv)
        try:
            view = SandboxView(self._workspace, (folder,), self._closed, writable=writes)
        except SandboxRefused as refused:
            raise ToolError(str(refused), kind="refused") from None
        return self._sandbox.launch(command, view, LIMITS)


def _in_turn(program: str, calls: Sequence[Sequence[str]]) -> list[str]:
    first, *others = ([program, *arguments] for arguments in calls)
    return ["/bin/sh", "-c", " && ".join(map(shlex.join, (first, *others)))] if others else first


def settings_of(listed: bytes) -> dict[str, str]:
    """Settings as `git config -z` lists them, the last of each key."""
    pairs = (entry.partition("\n") for entry in listed.decode("utf-8", "replace").split("\0") if entry)
    return {key: value if mark else "true" for key, mark, value in pairs}


async def _ran(launch: Launch, environment: dict[str, str], said: bytes, folder: Path) -> tuple[int, bytes, bytes]:
    """The exit code, and what was written to both streams."""
    gate = LaunchGate() if launch.reports else None
    process: asyncio.subprocess.Process | None = None
    try:
        process = await asyncio.create_subprocess_exec(
            launch.argv[0], *(gate.options if gate else ()), *launch.argv[1:], cwd=folder, env=environment,
            pass_fds=(*launch.descriptors, *(gate.descriptors if gate else ())), start_new_session=True,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        if gate is not None:
            gate.started()
            await asyncio.to_thread(gate.open, LIMITS)
        async with asyncio.timeout(SECONDS):
            return await _communicated(process, said)
    except TimeoutError:
        raise ToolError(f"git did not finish within {SECONDS:g} s and was ended", kind="too_slow") from None
    except (OSError, ValueError) as error:
        raise ToolError(f"git could not be started: {error}", kind="git_failed") from None
    finally:
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        if gate is not None:
            gate.close()


async def _communicated(process: asyncio.subprocess.Process, said: bytes) -> tuple[int, bytes, bytes]:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    troubles = asyncio.create_task(_read(process.stderr, READ_BYTES))
    output = asyncio.create_task(_read(process.stdout, MOST_BYTES))
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(said)
            await process.stdin.drain()
        process.stdin.close()
        told = await output
        if len(told) >= MOST_BYTES:
            with suppress(ProcessLookupError):
                process.kill()
        return await process.wait(), told, await troubles
    finally:
        troubles.cancel()
        output.cancel()


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    """The first bytes of a stream; the rest of it is left to whoever ends the writer."""
    read = bytearray()
    while len(read) < most and (data := await stream.read(READ_BYTES)):
        read += data
    return bytes(read[:most])
