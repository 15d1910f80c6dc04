"""Whether one more query is taken on: not while those asked before it keep LoCAL2 itself busy for too long."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from local.queries.errors import TooManyQueries

FEW = 10  # so many waiting queries are no line, and so few begun ones say nothing of its speed
LEAST_SECONDS, MOST_SECONDS = 1.0, 10.0  # over which the speed is measured; over more only while few have begun
SAMPLE_SECONDS = 0.1
PRUDENCE = 0.6  # of the limit: the speed falls while the line grows, and what was measured of both is late
BUSY_PERCENT = 80  # a process that works so much of the time is what its turns wait for


class LineSample(NamedTuple):
    """The line of queries at one moment: how many wait for their turn to begin, those behind a query of their own
    session left out; how many have left the line since the start; and since when the first one waits, in seconds of the
    asker's clock."""

    waiting: int
    begun: int
    since: float


class QueryLine(Protocol):
    """Whoever knows the queries that were asked."""

    def line(self) -> LineSample:
        """How the line is now."""
        ...


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """What one process of the generator last said of its turns: how many run, how many may at once, how many of
    those that run wait for the model, and how busy the process is, in per cent."""

    instance: str
    running: int
    at_most: int
    with_model: int
    load: int

    @classmethod
    def of(cls, instance: str, counters: Mapping[str, int]) -> Self | None:
        """The figures in the counters of a status beat; None if they are not there."""
        names = ("turns_running", "turns_at_most", "turns_with_model", "turns_load")
        told = [counters[name] for name in names if name in counters]
        return cls(instance, *told) if len(told) == len(names) else None

    @property
    def wait_for_model(self) -> bool:
        """Whether no more can begin because of the model: every place is taken, most of them by turns that wait for it
        and not for a process that has no time to hear it. The line is then the model's, whatever its length."""
        is_full = self.running >= self.at_most and 2 * self.with_model >= self.running
        return is_full and self.load < BUSY_PERCENT


class AdmissionControl:
    """Decides, and keeps only what it has measured, on queries before their turn begins: from there on it is the
    model's time. Whoever joins a line waits as long as it takes at its speed (J. Little, 1961: L = λW), on average
    or as it has been lately, and where it stands still no less than the first in it has waited already. Nothing is
    refused where few wait.
    """

    def __init__(self, max_wait_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """None refuses nothing; `clock` gives monotonic seconds."""
        self._max_wait_seconds, self._clock = max_wait_seconds, clock
        self._samples: deque[tuple[float, LineSample]] = deque()
        self._turns: TurnFigures | None = None
        self.is_measuring = False

    def told(self, turns: TurnFigures | None) -> None:
        """The generator says how its turns are. What was measured of another process of it does not count."""
        if turns is None:
            return
        if self._turns is None or self._turns.instance != turns.instance:
            self.forget()
        self._turns = turns

    def forget(self) -> None:
        """There is no line now: the next one is measured from its beginning."""
        self._samples.clear()
        self.is_measuring = False

    def require_room(self, queries: QueryLine) -> None:
        """Raises `TooManyQueries` if one more query would wait too long."""
        if self._max_wait_seconds is None:
            return
        now = self._clock()
        if not self._samples or now - self._samples[-1][0] >= SAMPLE_SECONDS:
            self._take(now, queries.line())
        wait = self._wait_seconds(now)
        if wait > PRUDENCE * self._max_wait_seconds:
            raise TooManyQueries(self._samples[-1][1].waiting, wait, self._max_wait_seconds)

    def _take(self, now: float, line: LineSample) -> None:
        samples = self._samples
        if line.waiting < FEW:
            samples.clear()
        samples.append((now, line))
        self.is_measuring = True
        while len(samples) > 1 and self._is_dispensable(now, line):
            samples.popleft()

    def _is_dispensable(self, now: float, line: LineSample) -> bool:
        """Whether the first sample is before the first query of this line that has begun, or is too old."""
        (_, first), (second_at, second) = self._samples[0], self._samples[1]
        if first.begun == second.begun:
            return True
        return now - second_at >= MOST_SECONDS and line.begun - second.begun >= FEW

    def _wait_seconds(self, now: float) -> float:
        """How long a query that joins the line now waits for LoCAL2 itself; 0 if it is short or the model's, and as far
        as that is not known."""
        _, last = self._samples[-1]
        if last.waiting < FEW or self._turns is None or self._turns.wait_for_model:
            return 0.0
        seconds, begun = self._since(0)
        if seconds < LEAST_SECONDS or begun < FEW:
            return now - last.since
        return max(now - last.since, last.waiting * seconds / begun, last.waiting / self._speed_lately())

    def _since(self, number: int) -> tuple[float, int]:
        """The seconds from a sample to the last one, and how many have begun meanwhile."""
        (at, sample), (last_at, last) = self._samples[number], self._samples[-1]
        return last_at - at, last.begun - sample.begun

    def _speed_lately(self) -> float:
        """How many begin in a second, over no longer than it takes to tell, and no less than chance may have hidden:
        two standard deviations of so many events."""
        measured = map(self._since, reversed(range(len(self._samples))))
        seconds, begun = next((s, n) for s, n in measured if s >= LEAST_SECONDS and n >= FEW)
        return (begun + 2 * math.sqrt(begun)) / seconds
