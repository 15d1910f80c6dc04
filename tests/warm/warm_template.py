"""The program that every warm system is a fork of, as the tests see it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.warm.warm_process import WarmProcess

PROGRAM = Path(__file__).with_name("program.py")


class WarmTemplate:
    """Forks as often as it is asked to; close it at the end, which harms no fork."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, str(PROGRAM), str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), start_new_session=True)

    def start(self, arguments: Sequence[str], starter: int) -> WarmProcess:
        """`local2` with these arguments, as `TemporarySystem.begin` has it."""
        order = {"arguments": arguments, "environment": dict(os.environ), "folder": str(Path.cwd()), "starter": starter}
        told, tells = os.pipe()
        said, says = os.pipe()
        with tempfile.TemporaryFile("w+") as file:
            json.dump(order, file)
            file.flush()
            socket.send_fds(self._orders, [b"."], [file.fileno(), tells, says, starter])
        os.close(tells)
        os.close(says)
        return WarmProcess(told, said)

    def close(self) -> None:
        self._orders.close()
        self._process.wait()
