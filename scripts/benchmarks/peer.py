"""A process of a benchmark, and the pipe to it."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from benchmarks.figure import BenchmarkFailed

Pipe = Connection
ANSWER_SECONDS = 30.0


class Peer:
    """Runs `target(pipe, *args)` in a fresh process. Use as `async with`: entered when it has said its first word."""

    def __init__(self, target: Callable[..., None], *args: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._name = target.__name__
        self._pipe, self._theirs = context.Pipe()
        self._process = context.Process(target=target, args=(self._theirs, *args), daemon=True)

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    async def __aenter__(self) -> Self:
        self._process.start()
        self._theirs.close()
        self.greeting = await self.hear()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        self._process.kill()
        await asyncio.to_thread(self._process.join)

    def tell(self, word: Any) -> None:
        """Send it a command."""
        self._pipe.send(word)

    async def hear(self) -> Any:
        """The peer's next word. Raises `BenchmarkFailed` when it died or says nothing for half a minute."""
        return await asyncio.to_thread(self._hear)

    def _hear(self) -> Any:
        try:
            if self._pipe.poll(ANSWER_SECONDS):
                return self._pipe.recv()
        except (EOFError, OSError):
            raise BenchmarkFailed(f"the process {self._name} ended before it had answered") from None
        raise BenchmarkFailed(f"the process {self._name} did not answer within {ANSWER_SECONDS:g} s")
