"""The code that runs inside a child process: its name, its signals, its log, and the children in it."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from setproctitle import setproctitle

from local.core.errors import ConfigError, LocalError, StoreTooNew
from local.core.files import until_next_tick
from local.core.secrets import secret_mask
from local.runtime.logs import configure_logging, hold_warnings, one_line, participant_var, release_warnings

# A child's end of the socket pair that ties it to the supervisor.

READY, BEAT, TERMINATED = b"r", b"b", b"t"  # sent by a child
TROUBLE = b"e"  # a line of text follows
MOST_TROUBLE = 500  # characters of it
STOP, SHOW_WARNINGS = b"s", b"w"  # sent by the supervisor
BEATS_PER_HANG = 2.5
EXIT_FAILED, EXIT_CONFIG = 1, 2


class Lifeline:
    """A child's end of the socket pair that connects it to the supervisor.

    Everything that the child sends over it is a sign of life. When it closes, the supervisor has died. It is not the
    bus, because a hanging proxy must not make all other processes look dead. `interval` is the time between two beats
    in seconds. Every method may be called from any thread unless it is a coroutine or a context manager.
    """

    def __init__(self, sock: socket.socket, hang_seconds: float) -> None:
        self._sock = sock
        self._is_ready = False
        self._is_to_stop = self._has_left = False
        self.interval = hang_seconds / BEATS_PER_HANG

    def ready(self) -> None:
        """Report to the supervisor that this child is ready."""
        self._send(READY)
        self._is_ready = True

    def beat(self) -> None:
        """Report to the supervisor that this child is alive; without effect before `ready`. Never blocks."""
        if self._is_ready:
            self._send(BEAT)

    def until_next_beat(self) -> float:
        """Return the seconds to wait before `beat`: all children beat together."""
        return until_next_tick(time.monotonic(), self.interval)

    def complain(self, trouble: str) -> None:
        """Report what keeps this child from becoming ready; without effect after `ready`."""
        if not self._is_ready:
            self.explain(trouble)

    def explain(self, end: str) -> None:
        """Report to the supervisor why this child ends."""
        self._send(TROUBLE + one_line(secret_mask.text(end))[:MOST_TROUBLE].encode(errors="replace") + b"\n")

    async def keep_beating(self) -> None:
        """Beat until cancelled, from the loop whose health the beat reports."""
        while True:
            self.beat()
            await asyncio.sleep(self.until_next_beat())

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[asyncio.Event]:
        """Beat for as long as the block lasts; the yielded event is set when this process is asked to stop (SIGTERM).

        Finish the work in flight inside the block: outside it SIGTERM ends the process at once.
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
        """Stop when the supervisor asks for it, show held warnings on its request, and end the process immediately
        when the supervisor has gone. Blocks, so run it in a separate thread.
        """
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
        """Report to the supervisor that another process has sent SIGTERM."""
        self._send(TERMINATED)

    def _stop(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def _send(self, word: bytes) -> None:
        # A full pipe means that the supervisor does not read it now, a broken one that the supervisor has ended.
        with suppress(BlockingIOError, BrokenPipeError):
            self._sock.send(word, socket.MSG_DONTWAIT)


# The lifeline of one of several children in a process.


class SharedLifeline(Lifeline):
    """The lifeline of one of several children in a process.

    Messages of the supervisor concern only that child, which ends while the others continue. It belongs to the running
    loop. `cancel` ends a child that is asked to stop before it serves.
    """

    def __init__(self, sock: socket.socket, hang_seconds: float, cancel: Callable[[], object]) -> None:
        super().__init__(sock, hang_seconds)
        self._loop, self._cancel = asyncio.get_running_loop(), cancel
        self._asked: asyncio.Event | None = None  # while it serves

    @contextmanager
    def stoppable(self) -> Iterator[asyncio.Event]:
        """Yield an event that is set when the child is asked to stop."""
        self._asked = asyncio.Event()
        try:
            yield self._asked
        finally:
            self._asked = None

    def send_status(self, status: int) -> None:
        """Send the exit status of this child to the supervisor, as one digit."""
        self._send(b"%d" % status)

    def leave(self) -> None:
        """Report this child as ended to the supervisor, although its process lives on."""
        self._has_left = True
        with suppress(OSError):  # the supervisor has ended
            self._sock.shutdown(socket.SHUT_RDWR)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._begin_to_stop)

    def _begin_to_stop(self) -> None:
        if self._asked is not None:
            self._asked.set()
        else:
            self._cancel()


log = logging.getLogger(__name__)

THREADS = min(32, (os.cpu_count() or 1) + 4)  # for blocking calls of a child, as many as asyncio has by default


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A child that the supervisor keeps alive, in a process of its own. `target` is "package.module:function" and is
    called as function(lifeline, *args); the function may be a coroutine.

    Children of the same `shared_process`, whose targets are coroutines, begin in one process; one of them that is
    started again gets its own. `args` are pickled; sockets in them arrive as duplicates, so a listening socket outlives
    its server. A start that takes longer than `ready_seconds` counts as a death, but a later start may take as long as
    the child keeps saying what it waits for. The start of the system waits for a
    `required` child and fails without it; one that is not required gets one try before the start goes on. One that
    `outlives` the others which were started side by side with it is stopped when they have ended.
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
    shared_process: str = ""


def main(specs: Sequence[ChildSpec], socks: Sequence[socket.socket], hang_seconds: float) -> None:
    """Be the child of `specs`, or all of them. `socks` are the ends of their lifelines. Ends in SystemExit with the
    child's exit status."""
    name = "+".join(spec.name for spec in specs)
    setproctitle(f"local2 {name}")
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to the whole group; the supervisor decides
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    configure_logging(name, specs[0].log_level, specs[0].log_file)
    hold_warnings()  # until the supervisor knows whether the start has failed
    for sock in socks:
        os.register_at_fork(after_in_child=sock.close)  # a grandchild must not keep up the look of a living child
    if len(specs) == 1:
        lifeline = Lifeline(socks[0], hang_seconds)
        _attend(lifeline, name)
        status = _alone(specs[0], lifeline)
    else:
        status = asyncio.run(_together(specs, socks, hang_seconds))
    release_warnings()
    sys.exit(status)


def _alone(spec: ChildSpec, lifeline: Lifeline) -> int:
    try:
        serving = _resolve(spec)(lifeline, *spec.args)
        if asyncio.iscoroutine(serving):
            asyncio.run(serving)
    except Exception as error:  # noqa: BLE001 - the last place where it can become a line for a person
        return _explained(error, lifeline)
    return 0


async def _together(specs: Sequence[ChildSpec], socks: Sequence[socket.socket], hang_seconds: float) -> int:
    members = {_Member(spec, sock, hang_seconds) for spec, sock in zip(specs, socks, strict=True)}

    def pass_on_sigterm() -> None:
        for member in members:
            member.lifeline.pass_on_sigterm()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, pass_on_sigterm)
    loop.set_default_executor(ThreadPoolExecutor(len(specs) * THREADS))  # so that no child waits for another's threads
    for task in asyncio.as_completed([member.task for member in members]):
        ended = await task
        members.remove(ended)
        if members:  # else the supervisor waits for the end of the process
            ended.lifeline.leave()
    return 0


class _Member:
    """One of several children in a process. When it ends, the others continue."""

    def __init__(self, spec: ChildSpec, sock: socket.socket, hang_seconds: float) -> None:
        self.task = asyncio.create_task(self._live(spec), name=spec.name)
        self.lifeline = SharedLifeline(sock, hang_seconds, self.task.cancel)
        _attend(self.lifeline, spec.name)

    async def _live(self, spec: ChildSpec) -> Self:
        participant_var.set(spec.name)
        status = 0
        try:
            await _resolve(spec)(self.lifeline, *spec.args)
        except asyncio.CancelledError:  # asked to stop before it served
            pass
        except Exception as error:  # noqa: BLE001 - as for a child that is alone
            status = _explained(error, self.lifeline)
        self.lifeline.send_status(status)
        return self


class _Complaints(logging.Handler):
    """A log handler that also reports warnings and errors to the supervisor until the child is ready."""

    def __init__(self, lifeline: Lifeline, name: str) -> None:
        super().__init__(logging.WARNING)
        self._lifeline, self._name = lifeline, name

    def emit(self, record: logging.LogRecord) -> None:
        if participant_var.get() in ("", self._name):
            self._lifeline.complain(record.getMessage())


def _attend(lifeline: Lifeline, name: str) -> None:
    """Report problems to the supervisor, and receive its messages."""
    logging.getLogger().addHandler(_Complaints(lifeline, name))
    threading.Thread(target=lifeline.obey_supervisor, name="lifeline", daemon=True).start()


def _explained(error: Exception, lifeline: Lifeline) -> int:
    """Return the exit status of a child that has ended with an error; the error is logged and reported to the
    supervisor.
    """
    if isinstance(error, ConfigError):
        log.error("%s", error)
        lifeline.explain(str(error))
        return EXIT_CONFIG
    causes = list(_causes(error))
    for cause in causes:
        kind = "" if isinstance(cause, LocalError) else f"{type(cause).__name__}: "
        log.error("%s%s", kind, cause, exc_info=cause if log.isEnabledFor(logging.DEBUG) else None)
        lifeline.explain(f"{kind}{cause}")
    return EXIT_CONFIG if any(isinstance(cause, StoreTooNew) for cause in causes) else EXIT_FAILED


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return the causes inside the groups in which tasks wrap them."""
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


class StartedProcess(Protocol):
    """A process that was started for one child, or for several."""

    pid: int

    def reap(self, said: int | None) -> int | None:
        """Return the exit status of one of its ended children; see `ForkedProcess` in template.py."""


# One running child process: its messages on the lifeline, its signals, its end.

# For the exit status of a child whose template has ended.
STATUS_LOST = 255
STATUS = re.compile(rb"\d")  # the last sign of one that has shared a process
SIGNAL_NAMES = {number.value: number.name for number in signal.Signals}


class ChildProcess:
    """A started child, as the supervisor sees it.

    `gone` is set when the child's end of the lifeline has closed, which only its death causes. `last_words` is the
    latest reason that it gave for not being ready; empty while it works. It belongs to the event loop that made it.
    """

    def __init__(
        self,
        process: StartedProcess,
        sock: socket.socket,
        on_ready: Callable[[], None],
        on_beat: Callable[[], None],
        on_terminated: Callable[[], None],
    ) -> None:
        self.pid = process.pid
        self.gone = asyncio.Event()
        self.last_words = ""
        self.on_trouble: Callable[[], object] = lambda: None  # called when there are new last words
        self._half_said = b""
        self._status: int | None = None  # sent by itself
        self._process, self._sock = process, sock
        self._on_ready, self._on_beat, self._on_terminated = on_ready, on_beat, on_terminated
        sock.setblocking(False)
        asyncio.get_running_loop().add_reader(sock, self._listen)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the child unless it has ended: afterwards its pid may be another's."""
        if not self.gone.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def ask_to_stop(self) -> None:
        """Ask the child to finish its work in flight and end."""
        self._send(STOP)

    def show_warnings(self) -> None:
        """Make the child print its warnings on the terminal from now on."""
        self._send(SHOW_WARNINGS)

    def _send(self, word: bytes) -> None:
        with suppress(BlockingIOError, BrokenPipeError):  # the pipe is full of earlier signals, or the child has ended
            if not self.gone.is_set():
                self._sock.send(word)

    def abandon(self) -> None:
        """Kill the child and ignore its messages."""
        self.send_signal(signal.SIGKILL)
        self._hang_up()

    def reap(self) -> int | None:
        """Return the exit status of an ended child, negative for a signal, `STATUS_LOST` if it is no longer known; None
        if the template does not answer. Blocks.
        """
        return self._process.reap(self._status)

    def _listen(self) -> None:
        while not self.gone.is_set():
            try:
                said = self._sock.recv(4096)
            except BlockingIOError:
                return
            except ConnectionResetError:  # it ended before it read the request to stop
                said = b""
            if said:
                self._take(self._half_said + said)
            else:
                self._hang_up()

    def _take(self, said: bytes) -> None:
        """Read signs of life, with lines of text between them, the last of which may be incomplete."""
        signs, begin, rest = said.partition(TROUBLE)
        self._heed(signs)
        line, end, others = rest.partition(b"\n")
        if end:
            self.last_words = line.decode(errors="replace")
            self.on_trouble()
            self._half_said = b""
            self._take(others)
        else:
            self._half_said = begin + rest

    def _heed(self, signs: bytes) -> None:
        if READY in signs:
            self.last_words = ""
            self._on_ready()
        elif BEAT in signs:
            self._on_beat()
        if TERMINATED in signs:
            self._on_terminated()
        if status := STATUS.search(signs):
            self._status = int(status[0])

    def _hang_up(self) -> None:
        if not self.gone.is_set():
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()
            self.gone.set()


def describe_end(status: int | None) -> str:
    """Return an exit status of `Template.reap` as text."""
    if status is None:
        return "exit status unknown"
    if status >= 0:
        return f"exit status {status}"
    return f"killed by {SIGNAL_NAMES.get(-status, f'signal {-status}')}"


# The start of a process in which children begin.

Fork = Callable[[Sequence[ChildSpec], Sequence[socket.socket]], Awaitable[StartedProcess]]
TRIES = 3  # the template, the spare and a new interpreter


class ForkLost(Exception):
    """The process that was asked for a fork has ended without an answer: the fork may have been made or not."""


class ProcessStart:
    """The start of a process for the children of `specs`: `fork` starts it when the first of them is taken, and is
    called again, with new lifelines, if it raises `ForkLost`. A child of the lost fork ends with its lifeline."""

    def __init__(self, specs: Sequence[ChildSpec], fork: Fork) -> None:
        self._specs, self._fork = specs, fork
        self._ours: dict[str, socket.socket] = {}  # the ends of lifelines that are not taken yet
        self._forking: asyncio.Task[StartedProcess] | None = None

    async def take(self, name: str) -> tuple[StartedProcess, socket.socket]:
        """The process with one of the children, and the end of its lifeline; once for each. Raises whatever kept the
        process from starting."""
        if self._forking is None:
            self._forking = asyncio.create_task(self._begin(), name=f"start {name}")
            # the waiting caller may be stopped first, and then the result is not needed
            self._forking.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(self._forking), self._ours.pop(name)
        except BaseException:
            self._close(name)
            raise

    def close(self) -> None:
        """Release the children that were not taken; their process ends."""
        for name in tuple(self._ours):
            self._close(name)

    async def _begin(self) -> StartedProcess:
        given_up = set[str]()  # whose waiting callers were stopped
        for tries_left in reversed(range(TRIES)):
            theirs = [self._lifeline(spec.name) for spec in self._specs]
            for name in given_up:
                self._close(name)
            try:
                return await self._fork(self._specs, theirs)
            except ForkLost:
                if not tries_left:
                    raise
                given_up = {spec.name for spec in self._specs} - self._ours.keys()
            finally:
                for end in theirs:
                    end.close()
        raise AssertionError("the last try returns or raises")

    def _lifeline(self, name: str) -> socket.socket:
        self._close(name)
        self._ours[name], theirs = socket.socketpair()
        return theirs

    def _close(self, name: str) -> None:
        if (end := self._ours.pop(name, None)) is not None:
            end.close()
