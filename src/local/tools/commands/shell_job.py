"""One command that runs for a call: what it was asked, what it has written, how it ended."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from local.errors import ToolError
from local.services.sandbox.command_outcome import CommandOutcome
from local.services.sandbox.contained_process import ContainedProcess
from local.tools.commands.readable_output import is_binary, readable_output

TELL_SECONDS = 0.25  # between two messages about one command's output
TOLD_BYTES = 8000  # of it in one of them


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """A command as its call has asked for it; `session_id` is whose it is."""

    shown: str
    argv: tuple[str, ...]
    session_id: str


class ShellJob:
    """A command under way. `tell(start, text)` hears of its output while it comes."""

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
        """There is more output: it is told, at once or a quarter of a second after what was told last."""
        self._grown.set()
        if self._telling is None:
            self._tell_new()

    async def see_to_its_end(self) -> None:
        """Wait until it has ended. Raises `ToolError` where it could not even begin; cancelled, it ends it."""
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
        """Until there is more output than so many bytes, or it has ended."""
        while not self.is_over() and self.process.output.size <= size:
            self._grown.clear()
            await self._grown.wait()

    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.outcome is not None or bool(self.trouble)

    def status(self) -> str:
        """How the job stands, in a line."""
        if self.outcome is None:
            if self.trouble:
                return self.trouble
            return f"running, {self.process.output.size} bytes of output so far"
        return self.outcome.explained(self.asked.argv, self.process.limits)

    def text(self, start: int = 0, length: int = -1) -> str:
        """The output from a byte on, as it can be read."""
        data = self.process.output.part(start, length)
        note = "[This is binary; what is no text stands here as \\x and two digits.]\n" if is_binary(data) else ""
        return note + readable_output(data)

    def _tell_new(self) -> None:
        self._telling = None
        size = self.process.output.size
        if size == self._told:
            return
        start = max(self._told, size - TOLD_BYTES)
        self._tell(start, readable_output(self.process.output.part(start, size - start)))
        self._told = size
        self._telling = asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell_new)


def shown(argv: tuple[str, ...]) -> str:
    """An argument vector as a person reads it."""
    return shlex.join(argv)
