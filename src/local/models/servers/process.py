"""One run of a server program, and its log."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Self

from local.environment import environment_with
from local.models.servers import guard
from local.models.servers.spec import ServerSpec

MAX_BYTES = 2 * 1024 * 1024
_LAST_LINES = 3


class LogFile:
    """Appends to `path`; what is older goes to `<name>.1` when that is full, and what was there is forgotten.

    Blocks for the disk. Raises OSError where the file cannot be written.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def write(self, data: bytes) -> None:
        """Append what the server has said."""
        lines = (line.strip() for line in data.decode(errors="replace").splitlines())
        self._last.extend(line for line in lines if line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size + len(data) > self._max_bytes:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        with self.path.open("ab") as file:
            file.write(data)

    @property
    def last_words(self) -> str:
        """The end of what this process has written, on one line."""
        return " | ".join(self._last) or "nothing"


log = logging.getLogger(__name__)

GRACE_SECONDS = 5.0  # shorter than what the supervisor gives to us
_CHUNK_BYTES = 65_536


class ServerProcess:
    """The server runs while the `async with` block lasts, and not a moment longer than this process; see `guard`.

    What it says goes to `log_file`.
    """

    def __init__(self, spec: ServerSpec, log_file: LogFile, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._spec, self._log_file, self._grace_seconds = spec, log_file, grace_seconds
        self._process: asyncio.subprocess.Process
        self._end: asyncio.Task[int]

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(Path(guard.__file__)), str(self._grace_seconds), *self._spec.command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env=environment_with(self._spec.variables), process_group=0,
        )  # fmt: skip
        self._end = asyncio.create_task(self._follow(), name=f"log of {self._spec.name}")
        return self

    async def __aexit__(self, *error: object) -> None:
        """End the server; the guard sees to it that this takes no longer than `grace_seconds`."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._end

    @property
    def has_ended(self) -> bool:
        """Whether the server ended by itself."""
        return self._end.done()

    async def ended(self, seconds: float) -> bool:
        """Wait for the server to end, for so long at most; gives whether it has."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._end), seconds)
        return self.has_ended

    def how_it_ended(self) -> str:
        """For a person: its exit status or signal and its last words, and where there are more."""
        status = self._end.result()
        how = f"was killed by {signal.Signals(status - 128).name}" if status > 128 else f"ended with status {status}"
        return f"{self._spec.name} {how}; it said last: {self._log_file.last_words} (all of it: {self._log_file.path})"

    async def _follow(self) -> int:
        """Write down what it says until it has ended; gives its exit status."""
        assert self._process.stdout is not None
        complained = False
        while data := await self._process.stdout.read(_CHUNK_BYTES):
            try:
                await asyncio.to_thread(self._log_file.write, data)
            except OSError as error:
                if not complained:
                    log.error("what %s says cannot be kept: %s", self._spec.name, error)
                complained = True
        return await self._process.wait()
