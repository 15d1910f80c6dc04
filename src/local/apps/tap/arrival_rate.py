"""`local2 tap hz`: how often and how regularly something is said."""

from __future__ import annotations

import statistics
import time
from collections import deque
from itertools import pairwise
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir, EndSeconds
from local.apps.tap.connection import report_until_stopped

WINDOW = 1_000


def hz(
    subject: Annotated[str, typer.Argument(help="A subject, a family or a pattern.")],
    window: Annotated[int, typer.Option(min=1, help="How many intervals to look back.")] = WINDOW,
    seconds: EndSeconds = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show how often and how regularly something is said; arrivals are timed here, not by the senders' clocks.

    Example: local2 tap hz generation.token
    """
    rate = ArrivalRate(window)
    report_until_stopped(
        subject,
        lambda _: rate.add(time.monotonic()),
        rate.report,
        seconds=seconds,
        data_dir=data_dir,
        addresses=bus,
    )


class ArrivalRate:
    """Keeps the times of the last `window` + 1 arrivals, in seconds."""

    def __init__(self, window: int = WINDOW) -> None:
        self._times: deque[float] = deque(maxlen=window + 1)
        self._reported = 0
        self._count = 0

    def add(self, now: float) -> None:
        """Note one arrival."""
        self._times.append(now)
        self._count += 1

    def report(self) -> str:
        """Rate and spread, in the words of `ros2 topic hz`; or that nothing has come since the last report."""
        new, self._reported = self._count - self._reported, self._count
        if new == 0 or len(self._times) < 2:
            return "no new messages" if new == 0 else "one message, no interval yet"
        gaps = [later - earlier for earlier, later in pairwise(self._times)]
        mean = statistics.fmean(gaps)
        rate = f"{1 / mean:.3f}" if mean > 0 else "inf"
        spread = f"min: {min(gaps):.4f}s max: {max(gaps):.4f}s std dev: {statistics.pstdev(gaps, mean):.5f}s"
        return f"average rate: {rate}  {spread} window: {len(gaps)}"
