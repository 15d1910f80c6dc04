"""What a durable consumer is given, and when: decisions only, no I/O and no clock of its own.

In order within a lane (a session), side by side across lanes. What a process held when it died is given to its
successor at once. A message that was in hand at two deaths is a suspect and runs alone from then on, so that the next
death has a culprit; after `max_deliver` deaths alone it is parked.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SUSPECT_AFTER = 2
MAX_FENCED = 64


class Deaths(NamedTuple):
    """How often a message was in hand when its process died, and how often of these it ran alone as a suspect."""

    total: int = 0
    alone: int = 0

    @property
    def of_a_suspect(self) -> bool:
        """Whether the message has to run alone."""
        return self.total >= SUSPECT_AFTER


@dataclass(frozen=True, slots=True)
class Deliver:
    """Give message `number` to `instance`. `working` has to name the attempt."""

    consumer: str
    number: int
    attempt: int
    instance: str


@dataclass(frozen=True, slots=True)
class Settled:
    """To be stored: the consumer is done with message `number`."""

    consumer: str
    number: int


@dataclass(frozen=True, slots=True)
class Died:
    """To be stored: what message `number` has lived through."""

    consumer: str
    number: int
    deaths: Deaths


@dataclass(frozen=True, slots=True)
class Serving:
    """To be stored: `instance` serves the consumer from now on, None if nobody does; all before it are fenced."""

    consumer: str
    instance: str | None


@dataclass(frozen=True, slots=True)
class Park:
    """Give message `number` to nobody any more. To be stored together with the dead letter that says so."""

    consumer: str
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """Tell `instance` that another one has taken its place: it is given nothing and should end."""

    consumer: str
    instance: str


ConsumerDecision = Deliver | Settled | Died | Serving | Park | Fenced


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """What has to outlive the journal's process: the past `Settled` (all up to `floor`, and some), `Died`, `Serving`.

    With the instance known, a journal that was away gives it again what it had, and counts its death if it is gone.
    """

    floor: int = 0
    settled: Collection[int] = frozenset()
    deaths: Mapping[int, Deaths] = field(default_factory=dict)
    instance: str | None = None
    fenced: Sequence[str] = ()  # the instances before it; the last 64 are enough


@dataclass(slots=True)
class _Entry:
    number: int
    lane: str
    deaths: Deaths
    attempt: int
    due: float = 0.0  # when silence on it ends its delivery


class DurableConsumer:
    """One named consumer. Times are seconds of any monotonic clock; every event costs O(log n) of what waits."""

    def __init__(
        self,
        name: str,
        subjects: Collection[str],
        *,
        ack_wait: float = 30.0,
        max_deliver: int = 3,
        max_in_hand: int = 256,
        state: ConsumerState | None = None,
    ) -> None:
        """`subjects` are whole ones and families ("tool.result.")."""
        self.name, self.ack_wait, self.max_deliver, self.max_in_hand = name, ack_wait, max_deliver, max_in_hand
        self._subjects = frozenset(subjects)
        self._families = tuple(subject for subject in subjects if subject.endswith("."))
        self._past = state or ConsumerState()
        self._last = self._past.floor
        self._instance = self._past.instance
        self._fenced = deque(self._past.fenced, maxlen=MAX_FENCED)
        # What is settled leaves `_entries` at once and the three queues only when it comes to their front.
        self._entries: dict[int, _Entry] = {}
        self._order: deque[int] = deque()
        self._lanes: dict[str, deque[int]] = {}
        self._ready: list[int] = []  # heap of the first of each lane, those in hand excepted
        self._in_hand: dict[int, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def floor(self) -> int:
        """Nothing up to this number is needed any more."""
        return self._order[0] - 1 if self._order else self._last

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do."""
        return min((entry.due for entry in self._in_hand.values()), default=None)

    def wants(self, subject: str) -> bool:
        """Whether messages of this subject are for this consumer."""
        return subject in self._subjects or subject.startswith(self._families)

    def add(self, number: int, lane: str, now: float) -> list[ConsumerDecision]:
        """A message was committed. Numbers rise; one that is not above the last is known already."""
        if number <= self._last:
            return []
        self._last = number
        if number in self._past.settled:
            return []
        deaths = self._past.deaths.get(number, Deaths())
        self._entries[number] = _Entry(number, lane, deaths, attempt=deaths.total)
        self._order.append(number)
        line = self._lanes.setdefault(lane, deque())
        line.append(number)
        if len(line) == 1:
            heapq.heappush(self._ready, number)
        return self._give(now)

    def attach(self, instance: str, now: float) -> list[ConsumerDecision]:
        """A process serves this consumer; what its predecessor still held has seen a death.

        May be repeated. An instance that was replaced or said goodbye never comes back, or two would take turns.
        """
        if instance == self._instance:
            return []
        if instance in self._fenced:
            return [Fenced(self.name, instance)]
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

    def working(self, number: int, attempt: int, instance: str, now: float) -> None:
        """It is still being worked on; said of an older attempt or by an older instance, it means nothing."""
        entry = self._in_hand.get(number)
        if entry is not None and entry.attempt == attempt and instance == self._instance:
            entry.due = now + self.ack_wait

    def tick(self, now: float) -> list[ConsumerDecision]:
        """Give again what has been silent for too long: the delivery or its acknowledgement was lost."""
        return [self._deliver(entry, now) for entry in self._in_hand.values() if entry.due <= now]

    def _give(self, now: float) -> list[ConsumerDecision]:
        """Hand out by number. A suspect waits until nothing is in hand, and everything behind it waits with it."""
        given: list[ConsumerDecision] = []
        while self._instance is not None and self._ready and len(self._in_hand) < self.max_in_hand:
            entry = self._entries.get(self._ready[0])
            if entry is not None:
                if self._in_hand and (entry.deaths.of_a_suspect or self._runs_alone):
                    break
                self._in_hand[entry.number] = entry
                given.append(self._deliver(entry, now))
            heapq.heappop(self._ready)
        return given

    @property
    def _runs_alone(self) -> bool:
        return next(iter(self._in_hand.values())).deaths.of_a_suspect

    def _deliver(self, entry: _Entry, now: float) -> Deliver:
        assert self._instance is not None
        entry.attempt += 1
        entry.due = now + self.ack_wait
        return Deliver(self.name, entry.number, entry.attempt, self._instance)

    def _change_to(self, instance: str | None) -> None:
        if self._instance is not None:
            self._fenced.append(self._instance)
        self._instance = instance
        for number in self._in_hand:
            heapq.heappush(self._ready, number)
        self._in_hand.clear()

    def _count_deaths(self) -> list[ConsumerDecision]:
        decisions: list[ConsumerDecision] = []
        for entry in list(self._in_hand.values()):
            total, alone = entry.deaths
            entry.deaths = Deaths(total + 1, alone + entry.deaths.of_a_suspect)
            if entry.deaths.alone < self.max_deliver:
                decisions.append(Died(self.name, entry.number, entry.deaths))
                continue
            self._settle(entry)
            reason = f"{total + 1} processes died with it in hand, {entry.deaths.alone} of them with nothing else"
            decisions.append(Park(self.name, entry.number, reason))
        return decisions

    def _settle(self, entry: _Entry) -> None:
        del self._entries[entry.number]
        self._in_hand.pop(entry.number, None)
        while self._order and self._order[0] not in self._entries:
            self._order.popleft()
        line = self._lanes[entry.lane]
        if line[0] != entry.number:
            return
        while line and line[0] not in self._entries:
            line.popleft()
        if line:
            heapq.heappush(self._ready, line[0])
        else:
            del self._lanes[entry.lane]
