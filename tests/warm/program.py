"""The program that warm systems are forks of: `python program.py <socket>`.

It imports what a system shares, and forks for each order: a file with JSON in it, and the pipes that the fork gets.
Between this program and the system stands a process that waits for its end, to tell whoever has ordered it: only a
parent learns that.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import NoReturn

from setproctitle import setproctitle

ORDER, TELLS, SAYS, STARTER = range(4)  # the files that come with an order
FIRST = 3  # after the standard streams


@dataclass(frozen=True, slots=True)
class Order:
    """What a fork is to be."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    starter: int


def import_all() -> None:
    """In the order in which a system does, and without what the template of a system does for itself."""
    gc.disable()

    gc.freeze()
    gc.enable()


def next_order(orders: socket.socket) -> Order | None:
    """An order, in the process that is to carry it out; None at the end, in this one."""
    while True:
        message, files, _, _ = socket.recv_fds(orders, 1, 4)
        if not message:
            return None
        if os.fork() == 0:
            orders.close()
            return _forked_again(files)
        for file in files:
            os.close(file)


def _forked_again(files: list[int]) -> Order:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        _tell_of(pid, files)
    with os.fdopen(files[ORDER]) as file:
        file.seek(0)
        order = Order(**json.load(file))
    os.close(files[TELLS])
    _open_files(files[SAYS], files[STARTER], order.starter)
    return order


def _tell_of(pid: int, files: list[int]) -> NoReturn:
    for place in (ORDER, SAYS, STARTER):
        os.close(files[place])
    os.write(files[TELLS], f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(files[TELLS], f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _open_files(says: int, theirs: int, starter: int) -> None:
    """The standard streams, the starter's pipe under the number that it has there, and nothing else."""
    os.dup2(says, 2)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(theirs, starter)
    os.closerange(FIRST, starter)
    os.closerange(starter + 1, max(says, theirs, null) + 1)


def become(order: Order) -> None:
    """`python -m local.cli.entry` with these arguments."""
    os.setsid()
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    setproctitle(" ".join([sys.executable, "-m", "local.cli.entry", *order.arguments]))
    sys.path[0] = order.folder
    sys.argv[1:] = order.arguments
    runpy.run_module("local.cli.entry", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    setproctitle("warm system")  # before the environment is another one: it is in the same piece of memory
    import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so the forks' ends need no waiting for
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        taken = next_order(requests)
    if taken:
        become(taken)
