"""Latencies and service gaps of a run, from its history alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from statistics import quantiles

from chaos_harness.driver import Blow, How
from chaos_harness.history import Asked
from chaos_harness.system import HANG_SECONDS


def percentiles(everything: Iterable[Asked]) -> tuple[float, float]:
    """p50 and p99 of the seconds from asking to the first outcome; zeros without any."""
    seconds = [asked.seconds for asked in everything if asked.seconds is not None]
    if len(seconds) < 2:
        return (0.0, 0.0) if not seconds else (seconds[0], seconds[0])
    cuts = quantiles(seconds, n=100, method="inclusive")
    return cuts[49], cuts[98]


def longest_gaps(everything: Iterable[Asked], struck: Sequence[Blow]) -> dict[tuple[How, str], float]:
    """For each kind of blow and victim the longest gap in seconds: somebody waited, and nobody got an outcome.

    A gap is due to a freeze in it or just before it, since that lasts until it is noticed, else to the last blow.
    """
    longest = {(blow.how, blow.victim): 0.0 for blow in struck}
    for begin, end in _gaps(everything):
        suspects = [blow for blow in struck if begin - HANG_SECONDS <= blow.at <= end]
        freezes = [blow for blow in suspects if blow.how is How.FREEZE]
        for blow in (freezes or suspects)[-1:]:
            kind = blow.how, blow.victim
            longest[kind] = max(longest[kind], end - begin)
    return longest


def _gaps(everything: Iterable[Asked]) -> Iterator[tuple[float, float]]:
    """From one outcome to the next, or from when somebody began to wait if nobody did before."""
    ended = sorted((asked.reads[0].at, asked.asked_at) for asked in everything if asked.reads)
    earliest = list(accumulate((began for _, began in reversed(ended)), min))[::-1]
    for (before, _), (at, _), waiting_since in zip(ended, ended[1:], earliest[1:], strict=False):
        yield max(before, waiting_since), at
