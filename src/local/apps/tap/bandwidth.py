"""`local2 tap bw`: how many bytes are said in a second."""

from __future__ import annotations

import time
from collections import deque
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir, EndSeconds, sized
from local.apps.tap.arrival_rate import WINDOW
from local.apps.tap.connection import report_until_stopped


def bw(
    subject: Annotated[str, typer.Argument(help="A subject, a family or a pattern.")] = "*",
    window: Annotated[int, typer.Option(min=1, help="How many messages to look back.")] = WINDOW,
    seconds: EndSeconds = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show how many bytes of payload are said in a second, and how large messages are.

    Example: local2 tap bw generation. --seconds 10
    """
    bandwidth = Bandwidth(window)
    report_until_stopped(
        subject,
        lambda envelope: bandwidth.add(time.monotonic(), len(envelope.payload)),
        lambda: bandwidth.report(time.monotonic()),
        seconds=seconds,
        data_dir=data_dir,
        addresses=bus,
    )


class Bandwidth:
    """Keeps the times in seconds and the sizes in bytes of the last `window` messages."""

    def __init__(self, window: int = WINDOW) -> None:
        self._messages: deque[tuple[float, int]] = deque(maxlen=window)
        self._count = self._reported = 0

    def add(self, now: float, size: int) -> None:
        """Note one message."""
        self._messages.append((now, size))
        self._count += 1

    def report(self, now: float) -> str:
        """Bytes a second from the first message of the window until `now`, and the sizes; or that nothing new came."""
        new, self._reported = self._count - self._reported, self._count
        if new == 0:
            return "no new messages"
        sizes = [size for _, size in self._messages]
        elapsed = now - self._messages[0][0]
        rate = f"{sized(round(sum(sizes) / elapsed))}/s" if elapsed > 0 else "inf"
        mean = sized(round(sum(sizes) / len(sizes)))
        return f"average: {rate}  mean: {mean} min: {sized(min(sizes))} max: {sized(max(sizes))} window: {len(sizes)}"
