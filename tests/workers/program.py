"""The program that the suite's workers are forks of: `python program.py <socket>`, with JSON on its standard input: its
folders to import from, and what is to be collected.

It collects the tests once. Each worker then finds imported what it would import, which takes longer than all else of
its collection, and shares it with the others in memory. Ends when its standard input does.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from typing import NoReturn

STREAMS = (0, 1, 2)  # which come with an order: standard input, output and error


def collect(arguments: list[str]) -> None:
    """Import what the tests import. Ends the program where a test cannot be imported: a fork would find what there is
    of its module imported, and say nothing. Nothing is captured: modules keep the standard error that they find."""
    import pytest

    gc.disable()
    said, silence = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    status = pytest.main([*arguments, "--collect-only", "-qqs", "-n", "0", "-p", "no:cacheprovider"])
    sys.stdout.flush()
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        os._exit(1)
    os.dup2(said, 1)
    os.close(said)
    os.close(silence)
    gc.collect()
    gc.freeze()
    gc.enable()


def serve(orders: socket.socket) -> None:
    """Fork for each order, until the end of the standard input."""
    while orders in select.select([orders, sys.stdin], [], [])[0]:
        connection = orders.accept()[0]
        if os.fork() == 0:
            orders.close()
            become_worker(connection)
        connection.close()


def become_worker(connection: socket.socket) -> NoReturn:
    """What `python -u -c <code>` is, on the streams of whoever has ordered it, who sees its end by the connection's."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code, files, _, _ = socket.recv_fds(connection, 1 << 16, len(STREAMS))
    for stream, file in zip(STREAMS, files, strict=True):
        os.dup2(file, stream)
        os.close(file)
    sys.argv = ["-c"]
    sys.stdin = os.fdopen(0, closefd=False)
    exec(code.decode(), {"__name__": "__main__"})
    sys.exit()


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    sys.path[:] = given["path"]
    with socket.socket(socket.AF_UNIX) as orders:
        collect(given["collect"])
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so the forks' ends need no waiting for
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever has started it
        orders.bind(sys.argv[1])
        orders.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        serve(orders)
        os._exit(0)  # without a look at each of a million things
