"""A program that serves on its standard input and output, in its sandbox, until it ends or is closed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from local.errors import ToolError
from local.services.sandbox.launch import Launch
from local.services.sandbox.launch_gate import LaunchGate
from local.services.sandbox.sandbox_limits import SandboxLimits

LINE_BYTES = 16 * 1024 * 1024
KEPT_BYTES = 2000  # of what it says last on its error output
READ_BYTES = 64 * 1024
END_SECONDS = 2.0  # for one whose input has ended


class ContainedServer:
    """Lines in and out, for as long as `contained` holds it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said, self._killed_for = b"", ""

    @classmethod
    @asynccontextmanager
    async def contained(cls, launch: Launch, limits: SandboxLimits) -> AsyncIterator[ContainedServer]:
        """Start it, and end it with all that it has started. Raises `ToolError` (start_failed)."""
        gate = LaunchGate() if launch.reports else None
        try:
            process = await cls._started(launch, limits, gate)
            server = cls(process)
            hearing = asyncio.create_task(server._hear_errors())
            try:
                yield server
            finally:
                await server._end()
                hearing.cancel()
        finally:
            if gate is not None:
                gate.close()

    @staticmethod
    async def _started(launch: Launch, limits: SandboxLimits, gate: LaunchGate | None) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        with launch:
            try:
                process = await asyncio.create_subprocess_exec(
                    launch.argv[0], *(gate.options if gate else ()), *launch.argv[1:], cwd=launch.folder,
                    pass_fds=(*launch.descriptors, *(gate.descriptors if gate else ())), stdin=pipe, stdout=pipe,
                    stderr=pipe, start_new_session=True, limit=LINE_BYTES,
                )  # fmt: skip
                if gate is not None:
                    gate.started()
                    await asyncio.to_thread(gate.open, limits)
            except (OSError, ValueError) as error:
                raise ToolError(f"it could not be started: {error}", kind="start_failed") from None
        return process

    async def read_line(self) -> bytes:
        """The next line; empty when no more will come. One that says too much at once is ended."""
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.readline()
        except ValueError:
            self._kill(f"it wrote a line of more than {LINE_BYTES // 1024**2} MB")
        await self._drain()
        return b""

    async def write_line(self, line: bytes) -> None:
        """Raises `OSError` where it reads no more."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def ended(self) -> str:
        """Wait for its end, and say how it was."""
        code = await self._process.wait()
        if self._killed_for:
            return self._killed_for
        said = self._said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"it has ended with {code}" + (f": {said}" if said else "")

    async def _hear_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(READ_BYTES):
            self._said = (self._said + data)[-KEPT_BYTES:]

    async def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._drain(), END_SECONDS)
        self._kill("it was ended")
        await self._drain()
        await self._process.wait()

    async def _drain(self) -> None:
        """What it still writes is dropped, but read to the end, or its own end would not be noticed."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(READ_BYTES):
            pass

    def _kill(self, why: str) -> None:
        if self._process.returncode is None:
            self._killed_for = why
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
