"""A child's end of the socket pair that ties it to the supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from local.runtime.logs import one_line, release_warnings
from local.secrets.secret_mask import secret_mask
from local.tick import until_next_tick

READY, BEAT, TERMINATED = b"r", b"b", b"t"  # what a child says
TROUBLE = b"e"  # a line of text follows
MOST_TROUBLE = 500  # characters of it
STOP, SHOW_WARNINGS = b"s", b"w"  # what it is told
BEATS_PER_HANG = 2.5
EXIT_FAILED, EXIT_CONFIG = 1, 2


class Lifeline:
    """The child's end of the socket pair that ties it to the supervisor.

    What the child says on it is a sign of life; that it ends says the supervisor has died. Not the bus: when the proxy
    stalls, nobody else must look dead. `interval` is how often to beat, in seconds. Every method may be called from any
    thread unless it is a coroutine or a context manager.
    """

    def __init__(self, sock: socket.socket, hang_seconds: float) -> None:
        self._sock = sock
        self._is_ready = False
        self._is_to_stop = self._has_left = False
        self.interval = hang_seconds / BEATS_PER_HANG

    def ready(self) -> None:
        """Tell the supervisor that this child does its work from now on."""
        self._say(READY)
        self._is_ready = True

    def beat(self) -> None:
        """Tell the supervisor that this child is alive; without effect before `ready`. Never blocks."""
        if self._is_ready:
            self._say(BEAT)

    def until_next_beat(self) -> float:
        """How many seconds to wait now before `beat`: all children beat together."""
        return until_next_tick(time.monotonic(), self.interval)

    def complain(self, trouble: str) -> None:
        """Tell the supervisor what keeps this child from becoming ready; without effect after `ready`."""
        if not self._is_ready:
            self.explain(trouble)

    def explain(self, end: str) -> None:
        """Tell the supervisor why this child ends."""
        self._say(TROUBLE + one_line(secret_mask.text(end))[:MOST_TROUBLE].encode(errors="replace") + b"\n")

    async def keep_beating(self) -> None:
        """Beat until cancelled, from the loop whose health the beat stands for."""
        while True:
            self.beat()
            await asyncio.sleep(self.until_next_beat())

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[asyncio.Event]:
        """Beat for as long as the block lasts; the event given is set when this process is asked to stop (SIGTERM).

        Finish what is in flight inside the block: outside it SIGTERM ends the process at once.
        """
        with self.stoppable() as stop:
            beating = asyncio.create_task(self.keep_beating(), name="lifeline")
            try:
                yield stop
            finally:
                beating.cancel()
                await asyncio.wait([beating])

    @contextmanager
    def stoppable(self) -> Iterator[asyncio.Event]:
        """`serving` without the beats.

        A SIGTERM that does not come from the supervisor is only passed on to it: it may have gone to the whole process
        group, and then the supervisor decides who ends when.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: stop.set() if self._is_to_stop else self.pass_on_sigterm())
        try:
            yield stop
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    def obey_supervisor(self) -> None:
        """Begin to stop when the supervisor asks for it, show the warnings that were held when it says so; end the
        process on the spot when the supervisor has gone. Blocks: for a thread of its own."""
        with suppress(OSError):
            while told := self._sock.recv(1):
                if told == SHOW_WARNINGS:
                    release_warnings()
                else:
                    self._is_to_stop = True
                    self._stop()
        if not self._has_left:
            os._exit(EXIT_FAILED)

    def pass_on_sigterm(self) -> None:
        """Tell the supervisor that somebody else has sent SIGTERM."""
        self._say(TERMINATED)

    def _stop(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def _say(self, word: bytes) -> None:
        # A full pipe means that the supervisor is not listening, a broken one that it has gone: nobody to tell.
        with suppress(BlockingIOError, BrokenPipeError):
            self._sock.send(word, socket.MSG_DONTWAIT)
