"""Moments that all processes of a machine share. What is done every so often is done at them, so that a process wakes
once for all of it, and what others say then has come together."""

from __future__ import annotations

import math

_EARLY = 1e-3  # of a period, by which a timer that was set for a tick may go off before it


def tick_number(now: float, seconds: float) -> int:
    """How many whole periods of so many seconds the clock has behind it. `now` is of `time.monotonic`, the clock of
    event loops, too, which all processes share."""
    return math.floor(now / seconds + _EARLY)


def until_next_tick(now: float, seconds: float) -> float:
    """How many seconds it is to the end of this period."""
    return (tick_number(now, seconds) + 1) * seconds - now
