"""The template process that children are forked from, as the supervisor sees it.

multiprocessing's forkserver imports what the children share once and forks each child from there; where there is no
fork, children are spawned. The template is shared by all supervisors of a process and ends with it. Killing it harms
no child, because a child's death is seen on its lifeline; the next start makes a new one. One that does not answer,
because it hangs or is stopped (SIGSTOP), is killed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from types import ModuleType
from typing import Any

from local.core.data_dir import HeldFolder, clear_unheld
from local.runtime.child import STATUS_LOST, ChildProcess, ChildSpec, ForkedProcess, ProcessStart, main

# The memory of a process as it is to be when others are forked from it: so that they go on sharing it.

_LARGEST, _STEP = 512, 16  # bytes: what Python's allocator gives out itself, one size to a pool
_HEADER = sys.getsizeof(b"")
_IN_A_ROW = 16  # blocks at the addresses after each other: a pool from which nothing was taken before
_MOST = 5_000  # blocks, whatever their addresses
_fillings: list[object] = []


def settle() -> None:
    """Let go of caches, fill the holes between objects, and have no collection of garbage look at what is there now.

    A process that is forked later then writes what is its own onto pages of its own, and not one by one into those that
    it shares with the others, each of which would be copied for it.
    """
    # The cache of attributes refers to names all over the memory: who replaces one would copy its page.
    (getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()
    gc.freeze()
    gc.collect()  # of nothing: it empties the lists of blocks that Python keeps to use again
    for size in range(_STEP, _LARGEST + 1, _STEP):
        _fillings.extend(_filled(size))
    gc.freeze()


def _filled(size: int) -> Iterator[object]:
    """Objects of `size` bytes in every hole of that size."""
    make, last, in_a_row = _maker(size), 0, 0
    for number in range(_MOST):
        made = make(number)
        yield made
        in_a_row = in_a_row + 1 if id(made) == last + size else 0
        last = id(made)
        if in_a_row == _IN_A_ROW:
            return


def _maker(size: int) -> Callable[[int], object]:
    if size == _STEP:
        return lambda _: object()
    if size < _HEADER:
        return lambda number: complex(number, 1)
    return lambda _: bytes(size - _HEADER)


log = logging.getLogger(__name__)

FOLDERS, OURS = "pymp-*", "local2"  # where multiprocessing has its sockets, and the file that tells ours from others

GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)  # which terminals and service managers send to everybody
START_SECONDS = 10.0
FIRST_START_SECONDS = 60.0  # with all that it has to import


def prepare_template(preload: Sequence[str]) -> ForkServerContext | SpawnContext:
    """Start the template with the modules `preload` imported, where there is fork; returns the start method's context.

    Does not wait for the imports: call it first thing in a program, and the template imports while the program does.
    A second call has no effect while the template lives. A module that cannot be imported is left to the children.
    Raises `OSError` where there is no folder for temporary files.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["local.runtime.preloading", *preload, "local.runtime.child", "local.runtime.preloaded"]
    )
    _hold_folder()
    _do_without_resource_tracker()
    signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)
    return context


@cache
def _do_without_resource_tracker() -> None:
    """Spare the process that multiprocessing starts with the template, 6 MB: it would look after semaphores and shared
    memory, of which there are none here. What is written to it goes nowhere."""
    tracker: Any = resource_tracker._resource_tracker
    if tracker._fd is None:
        tracker._fd = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


@cache
def _hold_folder() -> HeldFolder:
    """Take multiprocessing's folder of this process for ours."""
    folder = HeldFolder(Path(util.get_temp_dir()))
    (folder.path / OURS).touch()
    return folder


def clear_folders(temporary: Path) -> int:
    """Remove what processes of ours that were killed have left in the folder for temporary files; returns how many."""
    found = [mark.parent for mark in temporary.glob(f"{FOLDERS}/{OURS}")]
    return sum(clear_unheld(folder, ["listener-*", OURS]) for folder in found)


class Template:
    """Starts child processes; close it when all of them have ended."""

    def __init__(self, preload: Sequence[str], hang_seconds: float) -> None:
        self._preload = preload
        self._hang_seconds = hang_seconds
        # multiprocessing keeps books on its children without locks: one thread makes all calls into it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="template")
        self._answered: int | None = None  # the process that has started a child already
        self._shared: dict[str, ProcessStart] = {}

    def share(self, specs: Sequence[ChildSpec]) -> None:
        """Have the children of `specs` begin in one process, as soon as the first of them is started."""
        start = ProcessStart(specs, self._fork_patiently)
        self._shared |= dict.fromkeys([spec.name for spec in specs], start)

    async def start(self, spec: ChildSpec, *callbacks: Callable[[], None]) -> ChildProcess:
        """Fork the child and call back on this loop for what it says, as `ChildProcess` does. Raises whatever kept it
        from starting; a template that does not answer is killed, and the next one tried."""
        start = self._shared.pop(spec.name, None) or ProcessStart([spec], self._fork_patiently)
        return ChildProcess(*await start.take(spec.name), *callbacks)

    async def reap(self, child: ChildProcess) -> int | None:
        """The exit status of a child that is gone, negative for a signal; None if nobody knows it any more."""
        status = await asyncio.get_running_loop().run_in_executor(self._thread, child.reap)
        if status is None:
            log.error("the template has not noticed the end of process %d: it is killed", child.pid)
            _kill_template()
        return None if status == STATUS_LOST else status

    def close(self) -> None:
        """Give back the thread; the template itself ends with this process."""
        for start in self._shared.values():
            start.close()
        self._thread.shutdown(wait=False)

    async def _fork_patiently(self, specs: Sequence[ChildSpec], theirs: Sequence[socket.socket]) -> ForkedProcess:
        try:
            return await self._fork(specs, theirs)
        except TimeoutError as error:
            log.error("%s: it is killed and made anew", error)
            return await self._fork(specs, theirs)

    async def _fork(self, specs: Sequence[ChildSpec], theirs: Sequence[socket.socket]) -> ForkedProcess:
        """Raises `TimeoutError` when the template had to be killed."""
        forking = asyncio.get_running_loop().run_in_executor(self._thread, self._start_process, specs, theirs)
        seconds = START_SECONDS if _template_pid() == self._answered else FIRST_START_SECONDS
        try:
            process = await asyncio.wait_for(asyncio.shield(forking), seconds)
        except TimeoutError:
            _kill_template()
            with suppress(OSError, EOFError):  # what the thread was waiting for ends with the template
                await forking
            names = ", ".join(spec.name for spec in specs)
            raise TimeoutError(f"the template has not started {names} within {seconds:g} s") from None
        self._answered = _template_pid()
        return process

    def _start_process(self, specs: Sequence[ChildSpec], theirs: Sequence[socket.socket]) -> ForkedProcess:
        context = prepare_template(self._preload)
        process = context.Process(target=main, args=(specs, theirs, self._hang_seconds), name=specs[0].name)
        with _main_module_hidden():
            try:
                process.start()
            except EOFError:
                raise ChildProcessError("the template has ended; what it has said stands above this") from None
        return ForkedProcess(process, len(specs))


def _template_pid() -> int | None:
    """The template's process; None where there is none."""
    pid: int | None = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]  # said nowhere else
    return pid


def _kill_template() -> None:
    if pid := _template_pid():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # multiprocessing looks itself whether it is there


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Keep multiprocessing from running the program's main script once more in every child.

    It does so to unpickle what the script defines, which costs each child the script's imports and side effects. Our
    targets are named by module, so there is nothing to find there.
    """
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program
