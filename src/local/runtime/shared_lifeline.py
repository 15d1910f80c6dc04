"""The lifeline of one of several children in a process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from local.runtime.lifeline import Lifeline


class SharedLifeline(Lifeline):
    """The lifeline of one of several children in a process: what it is told concerns that child alone, which ends while
    the others go on. Belongs to the running loop. `cancel` ends a child that is to stop before it serves.
    """

    def __init__(self, sock: socket.socket, hang_seconds: float, cancel: Callable[[], object]) -> None:
        super().__init__(sock, hang_seconds)
        self._loop, self._cancel = asyncio.get_running_loop(), cancel
        self._asked: asyncio.Event | None = None  # while it serves

    @contextmanager
    def stoppable(self) -> Iterator[asyncio.Event]:
        """The event given is set when the child is asked to stop."""
        self._asked = asyncio.Event()
        try:
            yield self._asked
        finally:
            self._asked = None

    def tell_status(self, status: int) -> None:
        """Tell the supervisor the exit status of this child, one digit."""
        self._say(b"%d" % status)

    def leave(self) -> None:
        """Have this child be gone for the supervisor, though the process lives on."""
        self._has_left = True
        with suppress(OSError):  # the supervisor has gone
            self._sock.shutdown(socket.SHUT_RDWR)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._begin_to_stop)

    def _begin_to_stop(self) -> None:
        if self._asked is not None:
            self._asked.set()
        else:
            self._cancel()
