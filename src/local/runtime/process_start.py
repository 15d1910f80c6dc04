"""The start of a process in which children begin."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from local.runtime.child import ChildSpec
from local.runtime.forked_process import ForkedProcess

Fork = Callable[[Sequence[ChildSpec], Sequence[socket.socket]], Awaitable[ForkedProcess]]


class ProcessStart:
    """The start of a process in which the children of `specs` begin, one or several: `fork` makes it when the first of
    them is taken."""

    def __init__(self, specs: Sequence[ChildSpec], fork: Fork) -> None:
        self._specs, self._fork = specs, fork
        self._ours: dict[str, socket.socket] = {}  # the ends of lifelines that nobody has taken yet
        self._forking: asyncio.Task[ForkedProcess] | None = None

    async def take(self, name: str) -> tuple[ForkedProcess, socket.socket]:
        """The process with one of the children, and the end of its lifeline; once for each. Raises whatever kept the
        process from starting."""
        if self._forking is None:
            self._forking = asyncio.create_task(self._begin(), name=f"start {name}")
        try:
            return await asyncio.shield(self._forking), self._ours.pop(name)
        except BaseException:
            self._close(name)
            raise

    def close(self) -> None:
        """Let go of the children that nobody has taken: their process ends."""
        for name in tuple(self._ours):
            self._close(name)

    async def _begin(self) -> ForkedProcess:
        theirs = []
        for spec in self._specs:
            self._ours[spec.name], end = socket.socketpair()
            theirs.append(end)
        try:
            return await self._fork(self._specs, theirs)
        finally:
            for end in theirs:
                end.close()

    def _close(self, name: str) -> None:
        if (end := self._ours.pop(name, None)) is not None:
            end.close()
