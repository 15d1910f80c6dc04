"""The command line: `local2 run | ask | chat | sessions | memory | status | logs | tap | journal | model | …`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from local.core.errors import StartInterrupted


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Exit status 2, with one line, for errors that the user can correct."""
    _open_missing_streams()
    os.umask(0o077)  # files are for this user alone; the template and all children inherit it
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["run"]:
        _end_when_told()
        from local.runtime.warm_up import warm_up

        warm_up()
    from local.cli.command_table import run_command  # which takes a tenth of a second, and may be interrupted

    sys.exit(run_command(arguments))


def _open_missing_streams() -> None:
    """Open /dev/null for each closed standard stream; otherwise the next opened file would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - to the end of the process


def _end_when_told() -> None:
    """End immediately with one line on signals, until a command installs its own handlers. With nohup, the end of the
    terminal is ignored.
    """
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _end)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{StartInterrupted()}\n".encode())
    os._exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing yet is to be ended in order
    main()
