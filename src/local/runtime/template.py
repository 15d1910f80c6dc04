"""The template process that children are forked from, as the supervisor sees it.

multiprocessing's forkserver imports what the children share once and forks each child from there; where there is no
fork, children are spawned. The template is shared by all supervisors of a process and ends with it. Killing it harms
no child, because a child's death is seen on its lifeline; the next start makes a new one. While it is stopped
(SIGSTOP), nothing can be started.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from types import ModuleType

from local.runtime.child import ChildSpec, main
from local.runtime.child_process import ChildProcess


def prepare_template(preload: Sequence[str]) -> ForkServerContext | SpawnContext:
    """Start the template with the modules `preload` imported, where there is fork; returns the start method's context.

    Does not wait for the imports: call it first thing in a program, and the template imports while the program does.
    A second call has no effect while the template lives. A module that cannot be imported is left to the children.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["local.runtime.preloading", *preload, "local.runtime.child", "local.runtime.preloaded"]
    )
    forkserver.ensure_running()
    return context


class Template:
    """Starts child processes; close it when all of them have ended."""

    def __init__(self, preload: Sequence[str], hang_seconds: float) -> None:
        self._preload = preload
        self._hang_seconds = hang_seconds
        # multiprocessing keeps books on its children without locks: one thread makes all calls into it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="template")

    async def start(self, spec: ChildSpec, *callbacks: Callable[[], None]) -> ChildProcess:
        """Fork the child and call back on this loop for what it says, as `ChildProcess` does. Raises whatever kept it
        from starting."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.get_running_loop().run_in_executor(self._thread, self._start, spec, theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return ChildProcess(process, ours, self._thread, *callbacks)

    def close(self) -> None:
        """Give back the thread; the template itself ends with this process."""
        self._thread.shutdown(wait=False)

    def _start(self, spec: ChildSpec, theirs: socket.socket) -> BaseProcess:
        context = prepare_template(self._preload)
        process = context.Process(target=main, args=(spec, theirs, self._hang_seconds), name=spec.name)
        with _main_module_hidden():
            process.start()
        return process


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
