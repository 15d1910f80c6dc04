"""The template: the process that all children are forked from.

Problem: a child needs some four hundred modules. Importing them takes each child a second of a processor, and the
memory that they fill would be its own. So one process, the template, imports them once and is forked for every child:
a child then starts in milliseconds, and its pages are shared until it writes to them.

The template of a `local2 run` is forked from that program itself (`fork_template`), which has imported the same, and so
is a second one, the spare. The spare takes the place of a template that has ended, and forks the next spare with its
first child (`keep_spare`), which takes milliseconds. Only where both have ended does a new interpreter import all again
(`prepare_template`). A supervisor talks to its template over a socket pair. There are three requests: fork a child (its
specs are pickled; its sockets travel beside them), fork a spare, and tell how a child ended. The template ends when the
socket pair closes, so it never outlives the program.

Invariants: a template has one thread and runs no event loop, so that a fork copies a process in a known state. A child
never depends on the template: its death shows on its lifeline, and killing the template harms no child, though nobody
then learns the exit statuses of its children. A template that does not answer within a second, or sleeps though it was
asked, is killed, as it must not fork the same child later, and the start goes on with the spare. A child that it has
forked before it was killed ends with its lifeline: each try has new ones.

Rejected: multiprocessing's forkserver. It runs the program's main script again in each child and starts a second
process for semaphores that nobody has; both could only be kept from it by replacing parts of the standard library.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import io
import logging
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from setproctitle import setproctitle

from local.core.environment import environment_with
from local.runtime.child import STATUS_LOST, ChildProcess, ChildSpec, ForkLost, ProcessStart, main
from local.runtime.logs import configure_logging
from local.runtime.runner import explained

log = logging.getLogger(__name__)

SEND_SECONDS = 10.0
START_SECONDS = 1.0
FORKED_START_SECONDS = 5.0  # of the first child: the machine is busy with the start of the system
FIRST_START_SECONDS = 60.0  # a new interpreter may still be importing
REAP_SECONDS, KILLED_SECONDS = 1.0, 4.0  # to tell an exit status, and once more after a kill
LOOK_SECONDS = 0.25  # after which it is looked whether one that does not answer is at work
ASLEEP = frozenset("STt")  # of the states in /proc: neither at work nor waiting for a processor or a disk
GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)  # which terminals and service managers send to everybody
FORK, SPARE, REAP = b"f", b"s", b"r"
SIZE, NUMBER = struct.Struct("!I"), struct.Struct("!q")
MOST_SOCKETS = 250  # in one message, which Linux limits to 253


class TemplateEnded(ForkLost):
    """The template has ended, or was killed."""


# The protocol: a request is a letter and a pickle, an answer is a number.


def _pickled(value: object) -> tuple[bytes, list[socket.socket]]:
    """Return a value as bytes, and the sockets in it. Raises pickle's errors."""
    sockets: list[socket.socket] = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: object) -> int | None:
            if not isinstance(obj, socket.socket):
                return None
            sockets.append(obj)
            return len(sockets) - 1

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    return buffer.getvalue(), sockets


def _unpickled(data: bytes, descriptors: Sequence[int]) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> socket.socket:
            return socket.socket(fileno=descriptors[number])

    return Unpickler(io.BytesIO(data)).load()


def _receive_exactly(sock: socket.socket, size: int) -> bytes:
    """Raises `TemplateEnded` where the other end is closed."""
    data = b""
    while len(data) < size:
        try:
            part = sock.recv(size - len(data))
        except ConnectionResetError:
            part = b""
        if not part:
            raise TemplateEnded
        data += part
    return data


# The template as its program sees it.


class TemplateProcess:
    """A running template: it forks children for this program and knows their exit statuses. Threads may share it."""

    def __init__(self, pid: int, control: socket.socket, first_seconds: float = FIRST_START_SECONDS) -> None:
        """`first_seconds` is how long its first answer may take."""
        self.pid = pid
        self._seconds, self._has_answered = first_seconds, False
        self._control, self._asking = control, threading.Lock()
        atexit.register(control.close)

    def fork(self, specs: Sequence[ChildSpec], lifelines: Sequence[socket.socket], hang_seconds: float) -> int:
        """Fork one process for these children; returns its id. Raises `TimeoutError`, `TemplateEnded`, `OSError` if no
        further process is possible, and pickle's errors.
        """
        what, sockets = _pickled((specs, lifelines, hang_seconds))
        data = pickle.dumps((sys.path, what))  # read in two steps: the second may need that path
        with self._asking:
            self._send(FORK, data, sockets)
            pid = self._answer(self._seconds)
            self._seconds = START_SECONDS
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def fork_spare(self) -> TemplateProcess:
        """Fork another template. Raises `TimeoutError`, `TemplateEnded`, and `OSError` if no further process is
        possible."""
        ours, theirs = socket.socketpair()
        with theirs, self._asking:
            self._send(SPARE, b"", [theirs])
            pid = self._answer(self._seconds)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return TemplateProcess(pid, ours, START_SECONDS)

    def reap(self, pid: int) -> int:
        """The exit status of a child that is to have ended, which is killed if it has not; negative for a signal.
        Raises `TimeoutError`, `TemplateEnded`."""
        with self._asking:
            self._send(REAP, NUMBER.pack(pid))
            try:
                return self._answer(REAP_SECONDS, pid)
            except TimeoutError:
                if _state(pid) == ENDED:
                    raise  # so it is the template that does not answer
                with suppress(ProcessLookupError):  # it lives on without a lifeline
                    os.kill(pid, signal.SIGKILL)
                return self._answer(KILLED_SECONDS, pid)

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:  # seen before, or no child of this program: another template has forked it
            return self._is_closed(0.0)

    def kill(self) -> None:
        """End the process at once."""
        if not self.has_ended():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            try:
                os.waitpid(self.pid, 0)
            except ChildProcessError:
                self._is_closed(KILLED_SECONDS)

    def _is_closed(self, seconds: float) -> bool:
        """Whether the template's end of the socket pair closes within that time, which no child of it has open."""
        if self._control.fileno() < 0:
            return True
        try:
            return self._has_said(seconds) and not self._control.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:  # it has ended with a request unread
            return True

    def close(self) -> None:
        """Let go of a process that has ended."""
        self._control.close()

    def _send(self, what: bytes, data: bytes, sockets: Sequence[socket.socket] = ()) -> None:
        if self._control.fileno() < 0:
            raise TemplateEnded
        head = what + SIZE.pack(len(data))
        try:
            self._control.settimeout(SEND_SECONDS)
            if sockets:
                socket.send_fds(self._control, [head], [sock.fileno() for sock in sockets])
            else:
                self._control.sendall(head)
            self._control.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise TemplateEnded from None

    def _answer(self, seconds: float, child: int | None = None) -> int:
        """Raises `TimeoutError` after so long, or soon for a template that sleeps though it has all that it needs: the
        `child` of whose end it is to tell has ended."""
        until = time.monotonic() + seconds
        while not self._has_said(min(LOOK_SECONDS, max(0.0, until - time.monotonic()))):
            is_ready = self._has_answered and (child is None or _state(child) == ENDED)
            is_over = time.monotonic() >= until or (is_ready and _state(self.pid) in ASLEEP)
            if is_over and not self._has_said(0.0):
                raise TimeoutError
        self._has_answered = True
        return int(NUMBER.unpack(_receive_exactly(self._control, NUMBER.size))[0])

    def _has_said(self, seconds: float) -> bool:
        return bool(select.select([self._control], [], [], seconds)[0])


ENDED = "Z"


def _state(pid: int) -> str:
    """The letter that Linux has for the state of a process; empty elsewhere. One that has ended is a zombie until the
    template asks for its exit status."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


_current: TemplateProcess | None = None  # of this program, which all its supervisors share
_spare: TemplateProcess | None = None
_making = threading.Lock()


def prepare_template(preload: Sequence[str]) -> TemplateProcess:
    """Return the template of this program; if it has ended, the spare; if both have, an interpreter that imports the
    modules `preload`.

    Does not wait for the imports. Modules that cannot be imported are logged, and left to the children.
    """
    global _current, _spare
    with _making:
        if _current is not None and _current.has_ended():
            _current.close()
            _current = None
            if _spare is not None and not _spare.has_ended():
                _current, _spare = _spare, None
        _current = _current or _started(preload)
        return _current


def keep_spare(template: TemplateProcess) -> None:
    """Have the template that has just forked a child fork a spare one, unless there is one."""
    global _spare
    with _making:
        if template is not _current or (_spare is not None and not _spare.has_ended()):
            return
        if _spare is not None:
            _spare.close()
            _spare = None
        try:
            _spare = template.fork_spare()
        except (TimeoutError, TemplateEnded):
            template.kill()  # it is not to answer later
        except OSError as error:
            log.warning("there is no spare template: %s", error.strerror)


def fork_template() -> None:
    """Fork the template and a spare one from this program, which has imported the modules that its children share. For
    a program without a second thread. Raises `OSError`.
    """
    global _current, _spare
    signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)  # until the templates ignore them
    _settle()
    _current, _spare = _forked(), _forked()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)


def _forked() -> TemplateProcess:
    ours, theirs = socket.socketpair()
    with theirs:
        pid = os.fork()
        if pid == 0:
            _be_template(theirs.fileno())
    return TemplateProcess(pid, ours, FORKED_START_SECONDS)


def _started(preload: Sequence[str]) -> TemplateProcess:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.set_inheritable(True)
        call = f"from local.runtime.template import _be_template; _be_template({theirs.fileno()}, {[*preload]!r})"
        program = f"import sys; sys.path[:] = {sys.path!r}; {call}"
        command = [sys.executable, "-c", program]
        pid = os.posix_spawn(sys.executable, command, environment_with({}), setsigmask=GROUP_SIGNALS)
    return TemplateProcess(pid, ours)


def import_all(names: Sequence[str]) -> None:
    """Import modules; log errors and continue. If a template ended by such an error, it could start no child, and the
    faulty module would remain unknown.
    """
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a module
            configure_logging("template", "info")
            log.error("a module that all processes share cannot be imported: %s", explained(error))


# Inside the template.


def _be_template(control: int, preload: Sequence[str] = ()) -> NoReturn:
    """Serve requests on the socket of that number until the program has ended; first import the modules of `preload`
    that are missing. Never returns, neither here nor in a child.
    """
    status = 1
    try:
        _leave_program(control)
        _make_ready(preload)
        _serve(socket.socket(fileno=control))
    except TemplateEnded:
        status = 0
    except BaseException:  # noqa: BLE001 - the last place where it can be said
        traceback.print_exc()
    finally:
        _end(status)


def _leave_program(control: int) -> None:
    """Let go of the program's files, and of its signals: a terminal sends those to the template, too, which ends with
    its program. Forked children inherit that, so none is hit that has not yet begun to look after itself."""
    os.closerange(3, control)
    os.closerange(control + 1, os.sysconf("SC_OPEN_MAX"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)
    setproctitle("local2 template")


def _make_ready(preload: Sequence[str]) -> None:
    """Import the shared modules, and prepare the memory for forking."""
    gc.disable()  # a collection while modules are imported takes a tenth of that time
    configure_logging("template", "info")
    import_all(preload)
    if preload:
        _settle()
    gc.enable()
    # Nearly all of our garbage is freed by its last reference; looking for cycles after every 700 objects costs each
    # turn more than it finds.
    gc.set_threshold(20_000, 20, 20)


def _settle() -> None:
    """Arrange the memory so that children write to few shared pages, because each page that a child writes to is
    copied.
    """
    # It refers to names all over the memory, whose reference counts would change.
    (getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()
    gc.freeze()  # a collection of garbage writes to every object that it looks at
    gc.collect()  # of nothing: it empties the lists of free blocks
    gc.freeze()


def _serve(control: socket.socket) -> NoReturn:
    """Serve requests. Raises `TemplateEnded` when the program has ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # the work is done below
    ended: dict[int, int] = {}  # exit statuses that were not requested yet
    awaited: int | None = None
    sources: list[Any] = [control, woken]
    while True:
        for ready in select.select(sources, [], [])[0]:
            if ready is control:
                what, data, descriptors = _request(control)
                if what in (FORK, SPARE):
                    if (pid := _fork()) == 0:
                        signal.set_wakeup_fd(-1)
                        if what == SPARE:
                            _be_template(descriptors[0])
                        for number in (control.detach(), woken, wake):
                            os.close(number)
                        _be_child(data, descriptors)
                    for number in descriptors:
                        os.close(number)
                    _answer(control, pid)
                else:
                    (awaited,) = NUMBER.unpack(data)
            else:
                os.read(woken, 4096)
                ended |= _newly_ended()
        if awaited in ended:
            _answer(control, ended.pop(awaited))
            awaited = None


def _request(control: socket.socket) -> tuple[bytes, bytes, list[int]]:
    """A request, its pickle, and the descriptors that came with it. Raises `TemplateEnded`."""
    try:
        head, descriptors, _, _ = socket.recv_fds(control, 1 + SIZE.size, MOST_SOCKETS)
    except ConnectionResetError:
        raise TemplateEnded from None
    head += _receive_exactly(control, 1 + SIZE.size - len(head)) if head else b""
    if not head:
        raise TemplateEnded
    (size,) = SIZE.unpack(head[1:])
    return head[:1], _receive_exactly(control, size), descriptors


def _answer(control: socket.socket, number: int) -> None:
    """Answer one request. Raises `TemplateEnded` if the program has ended in the middle of its request."""
    try:
        control.sendall(NUMBER.pack(number))
    except (BrokenPipeError, ConnectionResetError):
        raise TemplateEnded from None


def _newly_ended() -> dict[int, int]:
    ended = {}
    with suppress(ChildProcessError):  # there is no child
        while (pid := (found := os.waitpid(-1, os.WNOHANG))[0]) != 0:
            ended[pid] = os.waitstatus_to_exitcode(found[1])
    return ended


def _fork() -> int:
    """The id of a new process, 0 in that one; the error's number, negative, where there can be none."""
    try:
        return os.fork()
    except OSError as error:
        return -(error.errno or 1)


def _be_child(data: bytes, descriptors: Sequence[int]) -> NoReturn:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        sys.path[:], what = pickle.loads(data)
        main(*_unpickled(what, descriptors))
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the last place where it can be said
        traceback.print_exc()
    finally:
        _end(status)


def _end(status: int) -> NoReturn:
    """End this process without the program's exit handlers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)


# Children, as the supervisor starts and ends them.


class ForkedProcess:
    """A process that the template has forked for a child, or for several."""

    def __init__(self, pid: int, template: TemplateProcess, children: int = 1) -> None:
        self.pid = pid
        self._template, self._children = template, children
        self._status: int | None = None

    def reap(self, said: int | None) -> int | None:
        """Return the exit status of one of its ended children, which has sent it itself (`said`) if other children of
        its process continue; negative for a signal, `STATUS_LOST` if its template has ended; None if the template did
        not answer and was killed. Blocks.
        """
        self._children -= 1
        if said is None or not self._children:
            self._wait()
        return self._status if said is None else said

    def _wait(self) -> None:
        if self._status is not None:
            return
        try:
            self._status = self._template.reap(self.pid)
        except TemplateEnded:
            self._status = STATUS_LOST
        except TimeoutError:
            self._template.kill()


class Template:
    """The starter of a supervisor's child processes; close it when all of them have ended."""

    def __init__(self, preload: Sequence[str], hang_seconds: float) -> None:
        self._preload = preload
        self._hang_seconds = hang_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="template")
        self._shared: dict[str, ProcessStart] = {}

    def share(self, specs: Sequence[ChildSpec]) -> None:
        """Have the children of `specs` begin in one process, as soon as the first of them is started."""
        start = ProcessStart(specs, self._fork)
        self._shared |= dict.fromkeys([spec.name for spec in specs], start)

    async def start(self, spec: ChildSpec, *callbacks: Callable[[], None]) -> ChildProcess:
        """Fork the child and call back on this loop for its messages, as `ChildProcess` does. Raises the error of the
        start; a template that does not answer is killed, and another one is tried.
        """
        start = self._shared.pop(spec.name, None) or ProcessStart([spec], self._fork)
        return ChildProcess(*await start.take(spec.name), *callbacks)

    async def reap(self, child: ChildProcess) -> int | None:
        """Return the exit status of an ended child, negative for a signal; None if it is no longer known."""
        status = await asyncio.get_running_loop().run_in_executor(self._thread, child.reap)
        if status is None:
            log.error("the template did not report the exit status of process %d, and was killed", child.pid)
        return None if status == STATUS_LOST else status

    def close(self) -> None:
        """Release the thread; the template itself ends with this process."""
        for start in self._shared.values():
            start.close()
        self._thread.shutdown(wait=False)

    async def _fork(self, specs: Sequence[ChildSpec], theirs: Sequence[socket.socket]) -> ForkedProcess:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._forked, specs, theirs)

    def _forked(self, specs: Sequence[ChildSpec], theirs: Sequence[socket.socket]) -> ForkedProcess:
        template = prepare_template(self._preload)
        try:
            forked = ForkedProcess(template.fork(specs, theirs, self._hang_seconds), template, len(specs))
        except (TimeoutError, TemplateEnded) as error:
            why = "has ended" if isinstance(error, TemplateEnded) else "does not answer"
            template.kill()
            log.warning("the template %s and is replaced, to start %s", why, ", ".join(spec.name for spec in specs))
            raise TemplateEnded(f"the template {why}") from None
        keep_spare(template)
        return forked
