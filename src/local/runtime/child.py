"""What runs inside a child process: its name, its signals, its log, and the lifeline to the supervisor."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setproctitle import setproctitle

from local.errors import ConfigError, LocalError
from local.runtime.logs import configure_logging, hold_warnings, one_line, release_warnings
from local.secrets.secret_mask import secret_mask
from local.tick import until_next_tick

log = logging.getLogger(__name__)

READY, BEAT, TERMINATED = b"r", b"b", b"t"  # what a child says
TROUBLE = b"e"  # a line of text follows
MOST_TROUBLE = 500  # characters of it
STOP, SHOW_WARNINGS = b"s", b"w"  # what it is told
BEATS_PER_HANG = 2.5
EXIT_FAILED, EXIT_CONFIG = 1, 2


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One process to keep alive. `target` is "package.module:function" and is called as function(lifeline, *args).

    `args` are pickled; sockets in them arrive as duplicates, so a listening socket outlives its server. A start that
    takes longer than `ready_seconds` counts as a death. The start of the system waits for a `required` child and fails
    without it; one that is not required gets one try before the start goes on. One that `outlives` the others which
    were started side by side with it is stopped when they have ended.
    """

    name: str
    kind: str
    target: str
    args: tuple[object, ...] = ()
    ready_seconds: float = 20.0
    required: bool = True
    log_level: str = "info"
    log_file: Path | None = None
    outlives: bool = False


class Lifeline:
    """The child's end of the socket pair that ties it to the supervisor.

    What the child says on it is a sign of life; that it ends says the supervisor has died. Not the bus: when the proxy
    stalls, nobody else must look dead. `interval` is how often to beat, in seconds. Every method may be called from any
    thread unless it is a coroutine or a context manager.
    """

    def __init__(self, sock: socket.socket, hang_seconds: float) -> None:
        self._sock = sock
        self._is_ready = False
        self._is_to_stop = False
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
        loop.add_signal_handler(signal.SIGTERM, lambda: stop.set() if self._is_to_stop else self._say(TERMINATED))
        try:
            yield stop
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    def obey_supervisor(self) -> None:
        """Send this process SIGTERM when the supervisor asks it to stop, show the warnings that were held when it says
        so; end the process on the spot when the supervisor has gone. Blocks: for a thread of its own."""
        with suppress(OSError):
            while told := self._sock.recv(1):
                if told == SHOW_WARNINGS:
                    release_warnings()
                else:
                    self._is_to_stop = True
                    os.kill(os.getpid(), signal.SIGTERM)
        os._exit(EXIT_FAILED)

    def _say(self, word: bytes) -> None:
        # A full pipe means that the supervisor is not listening, a broken one that it has gone: nobody to tell.
        with suppress(BlockingIOError, BrokenPipeError):
            self._sock.send(word, socket.MSG_DONTWAIT)


def main(spec: ChildSpec, sock: socket.socket, hang_seconds: float) -> None:
    """Be the child `spec`. `sock` is its end of the lifeline. Ends in SystemExit with the child's exit status."""
    setproctitle(f"local2 {spec.name}")
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to the whole group; the supervisor decides
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    configure_logging(spec.name, spec.log_level, spec.log_file)
    hold_warnings()  # until the supervisor knows whether the start has failed
    os.register_at_fork(after_in_child=sock.close)  # a grandchild must not keep up the look of a living child
    lifeline = Lifeline(sock, hang_seconds)
    logging.getLogger().addHandler(_Complaints(lifeline))
    threading.Thread(target=lifeline.obey_supervisor, name="lifeline", daemon=True).start()
    status = _exit_status(spec, lifeline)
    release_warnings()
    sys.exit(status)


class _Complaints(logging.Handler):
    """Tells the supervisor, too, what is logged as wrong before a child is ready."""

    def __init__(self, lifeline: Lifeline) -> None:
        super().__init__(logging.WARNING)
        self._lifeline = lifeline

    def emit(self, record: logging.LogRecord) -> None:
        self._lifeline.complain(record.getMessage())


def _exit_status(spec: ChildSpec, lifeline: Lifeline) -> int:
    try:
        _resolve(spec)(lifeline, *spec.args)
    except ConfigError as error:
        log.error("%s", error)
        lifeline.explain(str(error))
        return EXIT_CONFIG
    except Exception as error:  # the last place where it can become a line for a person
        for cause in _causes(error):
            kind = "" if isinstance(cause, LocalError) else f"{type(cause).__name__}: "
            log.error("%s%s", kind, cause, exc_info=cause if log.isEnabledFor(logging.DEBUG) else None)
            lifeline.explain(f"{kind}{cause}")
        return EXIT_FAILED
    return 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What went wrong, out of the groups in which tasks wrap it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    else:
        yield error


def _resolve(spec: ChildSpec) -> Callable[..., Any]:
    module, _, function = spec.target.partition(":")
    try:
        target: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{spec.name}: cannot load {spec.target} (package.module:function): {error}") from error
    return target
