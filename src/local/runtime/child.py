"""What runs inside a child process: its name, its signals, its log, and the children in it."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from setproctitle import setproctitle

from local.errors import ConfigError, LocalError
from local.runtime.lifeline import EXIT_CONFIG, EXIT_FAILED, Lifeline
from local.runtime.logs import configure_logging, hold_warnings, participant_var, release_warnings
from local.runtime.shared_lifeline import SharedLifeline

log = logging.getLogger(__name__)

THREADS = min(32, (os.cpu_count() or 1) + 4)  # that a child has at most for what blocks, as asyncio gives one by itself


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One child to keep alive, in a process of its own. `target` is "package.module:function" and is called as
    function(lifeline, *args); the function may be a coroutine.

    Children of the same `shared_process`, whose targets are coroutines, begin in one process; one of them that is
    started again gets its own. `args` are pickled; sockets in them arrive as duplicates, so a listening socket outlives
    its server. A start that takes longer than `ready_seconds` counts as a death. The start of the system waits for a
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
    loop.set_default_executor(ThreadPoolExecutor(len(specs) * THREADS))  # so that nobody waits for another's threads
    for task in asyncio.as_completed([member.task for member in members]):
        ended = await task
        members.remove(ended)
        if members:  # else the supervisor waits for the end of the process
            ended.lifeline.leave()
    return 0


class _Member:
    """One of several children in a process: the others go on when it ends."""

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
        self.lifeline.tell_status(status)
        return self


class _Complaints(logging.Handler):
    """Tells the supervisor, too, what is logged as wrong before a child is ready."""

    def __init__(self, lifeline: Lifeline, name: str) -> None:
        super().__init__(logging.WARNING)
        self._lifeline, self._name = lifeline, name

    def emit(self, record: logging.LogRecord) -> None:
        if participant_var.get() in ("", self._name):
            self._lifeline.complain(record.getMessage())


def _attend(lifeline: Lifeline, name: str) -> None:
    """Tell the supervisor of troubles, and listen to what it says."""
    logging.getLogger().addHandler(_Complaints(lifeline, name))
    threading.Thread(target=lifeline.obey_supervisor, name="lifeline", daemon=True).start()


def _explained(error: Exception, lifeline: Lifeline) -> int:
    """The exit status of a child that has ended by an error, which is logged, and told the supervisor."""
    if isinstance(error, ConfigError):
        log.error("%s", error)
        lifeline.explain(str(error))
        return EXIT_CONFIG
    for cause in _causes(error):
        kind = "" if isinstance(cause, LocalError) else f"{type(cause).__name__}: "
        log.error("%s%s", kind, cause, exc_info=cause if log.isEnabledFor(logging.DEBUG) else None)
        lifeline.explain(f"{kind}{cause}")
    return EXIT_FAILED


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
