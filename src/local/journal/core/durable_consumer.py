"""What a durable consumer is given, and when: decisions only, no I/O and no clock of its own.

In order within a lane (a session), side by side across lanes; a consumer that orders a lane by itself may have several
of a lane at a time, each with the number of the one before it. What a process held when it died is given to its
successor at once. A message in flight at two deaths is a suspect and runs alone from then on, so that the next death
has a culprit; after `max_deliver` deaths alone it is a dead letter. So is one whose handler has raised `max_failures`
times, with pauses in between that grow; its lane waits, the others go on. A dead letter can be given again.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import takewhile

from local.journal.core.consumer_decision import ConsumerDecision, DeadLetter, Deliver, Died, Fenced, Serving, Settled
from local.journal.core.consumer_state import LONGEST_PAUSE, MAX_FAILURES, MAX_FENCED, ConsumerState, Deaths
from local.protocol.subjects import covers

GONE_AFTER = 3  # times `ack_wait` without a word from the process


@dataclass(slots=True)
class _Entry:
    number: int
    lane: str
    deaths: Deaths
    attempt: int
    due: float = 0.0  # when silence on it ends its delivery, or its pause ends
    failures: int = 0


@dataclass(slots=True)
class _Lane:
    """Those that may be in flight side by side, in order, and those behind them."""

    window: dict[int, None] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)


class DurableConsumer:
    """One named consumer. Times are seconds of any monotonic clock; every event costs O(log n) of what waits."""

    def __init__(
        self,
        name: str,
        subjects: Collection[str],
        *,
        ack_wait: float = 30.0,
        max_deliver: int = 3,
        max_failures: int = MAX_FAILURES,
        max_in_flight: int = 256,
        lane_width: int = 1,
        linger: float = 0.0,
        state: ConsumerState | None = None,
    ) -> None:
        """`subjects` are whole ones and families ("tool.result."); `lane_width` of a lane are in flight at most."""
        self.name, self.ack_wait, self.max_deliver, self.max_in_flight = name, ack_wait, max_deliver, max_in_flight
        self.subjects, self._max_failures = tuple(subjects), max_failures
        self._lane_width, self._linger = lane_width, linger
        self._past = state or ConsumerState()
        self._settled = self._past.settled
        self._last = self._past.floor
        self._instance = self._past.served_by
        self._heard_at = -math.inf
        self._fenced = deque(self._past.fenced, maxlen=MAX_FENCED)
        # What is settled leaves `_entries` at once and the queues only when it comes to their front.
        self._entries: dict[int, _Entry] = {}
        self._lanes: dict[str, _Lane] = {}
        self._ready: list[int] = []  # heap of the windows of all lanes, those in flight excepted
        self._in_flight: dict[int, _Entry] = {}
        self._paused: dict[int, _Entry] = {}  # failed, to be given again

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do."""
        return min((entry.due for entry in (*self._in_flight.values(), *self._paused.values())), default=None)

    def wants(self, subject: str) -> bool:
        """Whether messages of this subject are for this consumer."""
        return any(covers(known, subject) for known in self.subjects)

    def add(self, number: int, lane: str, now: float) -> list[ConsumerDecision]:
        """A message was committed. Numbers rise; one that is not above the last is known already."""
        if number <= self._last:
            return []
        self._last = number
        if number in self._settled:
            return []
        self._enter(number, lane, self._past.deaths.get(number, Deaths()), deque.append)
        return self._give(now)

    def redeliver(self, number: int, lane: str, deaths: Deaths, now: float) -> list[ConsumerDecision]:
        """A dead letter is given again: in its lane after what is in flight there, and before what waits.

        That it is to be given again is on record already; what is not settled yet is left as it is.
        """
        if number not in self._entries:
            self._enter(number, lane, deaths, insort)
        return self._give(now)

    def attach(self, instance: str, now: float) -> list[ConsumerDecision]:
        """A process serves this consumer; what its predecessor still held has seen a death.

        May be repeated, and has to be: to a process that has not said so for a while nothing is given again. An
        instance that was replaced or said goodbye never comes back, or two would take turns.
        """
        if instance in self._fenced:
            return [Fenced(self.name, instance)]
        self._heard_at = now
        if instance == self._instance:
            return []
        deaths = self._count_deaths()
        self._change_to(instance)
        return [Serving(self.name, instance), *deaths, *self._give(now)]

    def detach(self, instance: str) -> list[ConsumerDecision]:
        """A process says goodbye and hands back what it holds: no death."""
        if instance != self._instance:
            return []
        self._change_to(None)
        return [Serving(self.name, None)]

    def ack(self, number: int, now: float) -> list[ConsumerDecision]:
        """The work is done. That is a fact whichever attempt or instance did it, so it is never too old to count."""
        entry = self._entries.get(number)
        if entry is None:
            return []
        self._settle(entry)
        return [Settled(self.name, number), *self._give(now)]

    def working(self, number: int, attempt: int, instance: str, now: float) -> list[ConsumerDecision]:
        """A message is still being worked on; said of an older attempt it means nothing."""
        if instance in self._fenced:
            return [Fenced(self.name, instance)]
        entry = self._in_flight.get(number)
        if entry is not None and entry.attempt == attempt and instance == self._instance:
            entry.due = now + self.ack_wait
            self._heard_at = now
        return []

    def failed(self, number: int, attempt: int, instance: str, reason: str, now: float) -> list[ConsumerDecision]:
        """The handler raised, which may be due to the message, or to a bug that somebody mends soon."""
        entry = self._in_flight.get(number)
        if entry is None or entry.attempt != attempt or instance != self._instance:
            return []
        entry.failures += 1
        if entry.failures >= self._max_failures:
            self._settle(entry)
            return [DeadLetter(self.name, number, f"failed {entry.failures} times: {reason}"), *self._give(now)]
        entry.due = now + self.ack_wait * min(LONGEST_PAUSE, 2 ** (entry.failures - 1))
        self._paused[number] = self._in_flight.pop(number)
        return self._give(now)

    def hasten(self, due: float) -> None:
        """Deliveries may have been lost: end the silence on what is in flight at `due`, if not before."""
        for entry in self._in_flight.values():
            entry.due = min(entry.due, due)

    def tick(self, now: float) -> list[ConsumerDecision]:
        """Give again what has been silent for too long: the delivery or its acknowledgement was lost."""
        if now - self._heard_at > GONE_AFTER * self.ack_wait:
            return []
        silent = [self._deliver(entry, now) for entry in self._in_flight.values() if entry.due <= now]
        for number in [number for number, entry in self._paused.items() if entry.due <= now]:
            heapq.heappush(self._ready, self._paused.pop(number).number)
        return [*silent, *self._give(now)]

    def _enter(self, number: int, lane: str, deaths: Deaths, put: Callable[[deque[int], int], object]) -> None:
        self._entries[number] = _Entry(number, lane, deaths, attempt=deaths.total)
        put(self._lanes.setdefault(lane, _Lane()).waiting, number)
        self._promote(lane)

    def _give(self, now: float) -> list[ConsumerDecision]:
        """Hand out by number. A suspect waits until nothing is in flight, and everything behind it waits with it."""
        given: list[ConsumerDecision] = []
        while self._instance is not None and self._ready and len(self._in_flight) < self.max_in_flight:
            entry = self._entries.get(self._ready[0])
            if entry is not None:
                if self._in_flight and (entry.deaths.of_a_suspect or self._runs_alone):
                    break
                self._in_flight[entry.number] = entry
                given.append(self._deliver(entry, now))
            heapq.heappop(self._ready)
        return given

    @property
    def _runs_alone(self) -> bool:
        return next(iter(self._in_flight.values())).deaths.of_a_suspect

    def _deliver(self, entry: _Entry, now: float) -> Deliver:
        assert self._instance is not None
        entry.attempt += 1
        entry.due = now + 2 * self._linger + self.ack_wait
        before = takewhile(lambda number: number != entry.number, self._lanes[entry.lane].window)
        after = max((number for number in before if number < entry.number), default=0)  # a dead letter is behind others
        return Deliver(self.name, entry.number, entry.attempt, self._instance, after, self._linger)

    def _change_to(self, instance: str | None) -> None:
        if self._instance is not None:
            self._fenced.append(self._instance)
        self._instance = instance
        for number in (*self._in_flight, *self._paused):
            heapq.heappush(self._ready, number)
        self._in_flight.clear()
        self._paused.clear()

    def _count_deaths(self) -> list[ConsumerDecision]:
        decisions: list[ConsumerDecision] = []
        for entry in list(self._in_flight.values()):
            total, alone = entry.deaths
            entry.deaths = Deaths(total + 1, alone + entry.deaths.of_a_suspect)
            if entry.deaths.alone < self.max_deliver:
                decisions.append(Died(self.name, entry.number, entry.deaths))
                continue
            self._settle(entry)
            reason = f"{total + 1} processes died with it in hand, {entry.deaths.alone} of them with nothing else"
            decisions.append(DeadLetter(self.name, entry.number, reason))
        return decisions

    def _settle(self, entry: _Entry) -> None:
        del self._entries[entry.number]
        self._in_flight.pop(entry.number, None)
        self._paused.pop(entry.number, None)
        self._lanes[entry.lane].window.pop(entry.number, None)
        self._promote(entry.lane)

    def _promote(self, name: str) -> None:
        """Fill a lane's window."""
        lane = self._lanes[name]
        while lane.waiting and len(lane.window) < self._lane_width:
            number = lane.waiting.popleft()
            if number in self._entries:
                lane.window[number] = None
                heapq.heappush(self._ready, number)
        if not lane.window:
            del self._lanes[name]
