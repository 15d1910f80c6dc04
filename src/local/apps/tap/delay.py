"""`local2 tap delay`: how long messages are on their way."""

from __future__ import annotations

import statistics
import time
from collections import deque
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir, EndSeconds
from local.apps.tap.arrival_rate import WINDOW
from local.apps.tap.connection import report_until_stopped


def delay(
    subject: Annotated[str, typer.Argument(help="A subject, a family or a pattern.")] = "*",
    window: Annotated[int, typer.Option(min=1, help="How many messages to look back.")] = WINDOW,
    seconds: EndSeconds = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show how long messages are on their way to this tap, by the clock of their sender and that of this machine.

    Example: local2 tap delay participant.status
    """
    delays = Delays(window)
    report_until_stopped(
        subject,
        lambda envelope: delays.add(time.time() - envelope.sent_at),
        delays.report,
        seconds=seconds,
        data_dir=data_dir,
        addresses=bus,
    )


class Delays:
    """Keeps the last `window` of them, in seconds."""

    def __init__(self, window: int = WINDOW) -> None:
        self._delays: deque[float] = deque(maxlen=window)
        self._count = self._reported = 0

    def add(self, seconds: float) -> None:
        """Note one; below zero where the sender's clock is ahead."""
        self._delays.append(seconds)
        self._count += 1

    def report(self) -> str:
        """The mean and spread in milliseconds, or that nothing has come since the last report."""
        new, self._reported = self._count - self._reported, self._count
        if new == 0:
            return "no new messages"
        delays = [1000 * seconds for seconds in self._delays]
        spread = f"min: {min(delays):.2f} ms max: {max(delays):.2f} ms std dev: {statistics.pstdev(delays):.2f} ms"
        return f"average delay: {statistics.fmean(delays):.2f} ms  {spread} window: {len(delays)}"
