"""Runs a server for as long as its own standard input stays open: `python guard.py SECONDS COMMAND…`.

A separate program, without our package, so that the server ends with the process that started it, even if that is
killed: the kernel closes the pipe. The server then gets SIGTERM, and SIGKILL after that many seconds, with all of its
process group. The exit status is the server's, 128 + n if signal n ended it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

CANNOT_RUN = 127


def run(grace_seconds: float, command: Sequence[str]) -> int:
    """Serve until standard input ends or the server does; returns the exit status."""
    # A signal to the whole process group must end the server in the usual order. Handlers, because the server would
    # inherit ignored signals.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return CANNOT_RUN
    threading.Thread(target=_end_with_stdin, args=(server, grace_seconds), daemon=True).start()
    status = server.wait()
    _signal(server, signal.SIGKILL)  # its own child processes
    return status if status >= 0 else 128 - status


def _end_with_stdin(server: subprocess.Popen[bytes], grace_seconds: float) -> None:
    while os.read(0, 4096):
        pass
    _signal(server, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(grace_seconds)
    _signal(server, signal.SIGKILL)


def _signal(server: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone; on macOS a group of zombies may not be signalled
        os.killpg(server.pid, number)


if __name__ == "__main__":
    sys.exit(run(float(sys.argv[1]), sys.argv[2:]))
