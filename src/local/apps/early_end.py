"""How a program ends that is told to before it has anything to end in order: with one line, at once."""

from __future__ import annotations

import os
import signal
from types import FrameType

from local.errors import StartInterrupted


def end_when_told() -> None:
    """From now on; whoever has more to do at its end says so later. With nohup, the terminal's end is none."""
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _end)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{StartInterrupted()}\n".encode())
    os._exit(128 + number)
