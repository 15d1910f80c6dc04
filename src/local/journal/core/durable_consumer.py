"""What a durable consumer is given, and when: decisions only, no I/O and no clock of its own.

In order within a lane (a session), side by side across lanes; a consumer that orders a lane by itself may have several
of a lane at a time, each with the number of the one before it. What a process held when it died is given to its
successor at once. A message in flight at two deaths is a suspect (`Suspects`) and runs alone in its lane from then on;
after `max_deliver` deaths that it has caused it is a dead letter. So is one whose handler has raised `max_failures`
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
from local.journal.core.consumer_state import (
    LONGEST_PAUSE,
    MAX_FAILURES,
    MAX_FENCED,
    SUSPECT_AFTER,
    ConsumerState,
    Deaths,
)
from local.journal.core.suspects import Suspects
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

    @property
    def is_suspect(self) -> bool:
        """Whether it runs alone in its lane, and at first beside no other suspect."""
        return self.deaths.total >= SUSPECT_AFTER


@dataclass(slots=True)
class _Lane:
    """Those that may be in flight side by side, in order, and those behind them. A suspect is by itself."""

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
        self.name, self.ack_wait, self.max_in_flight = name, ack_wait, max_in_flight
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
        self._ready: list[int] = []  # heap of the windows of all lanes, those in flight and suspects excepted
        self._suspects = Suspects(max_deliver)
        self._in_flight: dict[int, _Entry] = {}
        self._paused: dict[int, _Entry] = {}  # failed, to be given again

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do."""
        silent = (entry.due for entry in (*self._in_flight.values(), *self._paused.values()))
        return min((due for due in (*silent, self._suspects.next_due) if due is not None), default=None)

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
        return [Settled(self.name, number), *self._settle(entry), *self._give(now)]

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
            dead = DeadLetter(self.name, number, f"failed {entry.failures} times: {reason}")
            return [dead, *self._settle(entry), *self._give(now)]
        entry.due = now + self.ack_wait * min(LONGEST_PAUSE, 2 ** (entry.failures - 1))
        self._paused[number] = self._in_flight.pop(number)
        self._suspects.stopped(number)
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
            self._make_ready(self._paused.pop(number))
        return [*silent, *self._give(now)]

    def _enter(self, number: int, lane: str, deaths: Deaths, put: Callable[[deque[int], int], object]) -> None:
        self._entries[number] = _Entry(number, lane, deaths, attempt=deaths.total)
        put(self._lanes.setdefault(lane, _Lane()).waiting, number)
        self._promote(lane)

    def _give(self, now: float) -> list[ConsumerDecision]:
        """Hand out by number, and of the suspects one after the other."""
        given: list[ConsumerDecision] = []
        while self._instance is not None and len(self._in_flight) < self.max_in_flight:
            entry = self._next(now)
            if entry is None:
                break
            self._in_flight[entry.number] = entry
            given.append(self._deliver(entry, now))
        return given

    def _next(self, now: float) -> _Entry | None:
        suspect = self._suspects.take(now) if self._suspects.ready else None
        if suspect is not None:
            return self._entries[suspect]
        while self._ready:
            entry = self._entries.get(heapq.heappop(self._ready))
            if entry is not None:
                return entry
        return None

    def _make_ready(self, entry: _Entry) -> None:
        if entry.is_suspect:
            self._suspects.put(entry.number, entry.deaths.alone)
        else:
            heapq.heappush(self._ready, entry.number)

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
        self._in_flight.clear()
        self._paused.clear()
        self._ready.clear()
        self._suspects.handed_back()
        for name, lane in list(self._lanes.items()):
            for number in lane.window:
                insort(lane.waiting, number)
            lane.window.clear()
            self._promote(name)

    def _count_deaths(self) -> list[ConsumerDecision]:
        held = list(self._in_flight.values())
        if not held:
            return []
        proven = self._suspects.died([entry.number for entry in held])
        for entry in held:
            entry.deaths = Deaths(entry.deaths.total + 1, entry.deaths.alone + (entry.number == proven))
        return [decision for entry in held for decision in self._judge(entry)]

    def _judge(self, entry: _Entry) -> list[ConsumerDecision]:
        """What follows from the deaths of a message."""
        total, alone = entry.deaths
        if alone < self._suspects.max_deaths:
            return [Died(self.name, entry.number, entry.deaths)]
        reason = f"{total} processes died with it in hand, {alone} of them of nothing else"
        return [DeadLetter(self.name, entry.number, reason), *self._settle(entry, is_culprit=True)]

    def _settle(self, entry: _Entry, *, is_culprit: bool = False) -> list[ConsumerDecision]:
        """Be done with a message; returns what that tells of the suspects."""
        del self._entries[entry.number]
        self._in_flight.pop(entry.number, None)
        self._paused.pop(entry.number, None)
        self._lanes[entry.lane].window.pop(entry.number, None)
        self._promote(entry.lane)
        return self._cleared(entry.number, is_culprit=is_culprit) if self._suspects.known else []

    def _cleared(self, number: int, *, is_culprit: bool) -> list[ConsumerDecision]:
        decisions: list[ConsumerDecision] = []
        for suspect in self._suspects.settled(number, is_culprit=is_culprit):
            if entry := self._entries.get(suspect):
                entry.deaths = Deaths(entry.deaths.total, entry.deaths.alone + 1)
                decisions += self._judge(entry)
        return decisions

    def _promote(self, name: str) -> None:
        """Fill a lane's window."""
        lane = self._lanes[name]
        while lane.waiting and len(lane.window) < self._lane_width:
            entry = self._entries.get(lane.waiting[0])
            if entry is not None and lane.window and (entry.is_suspect or self._holds_suspect(lane)):
                break
            lane.waiting.popleft()
            if entry is not None:
                lane.window[entry.number] = None
                self._make_ready(entry)
        if not lane.window:
            del self._lanes[name]

    def _holds_suspect(self, lane: _Lane) -> bool:
        return any(self._entries[number].is_suspect for number in lane.window)
