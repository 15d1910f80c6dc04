"""Durable delivery: decides which message is delivered to which consumer and when. Decisions only, without I/O or a
clock.

The problem. A consumer is a name (`critic`) that processes serve one after the other. Messages, acknowledgements and
processes may be lost at any instant. Each message is to be handled at least once and in the order of its session, and
one message that kills every process that handles it must not stop the others.

The idea. The journal numbers every message; a consumer is a floor (all below is settled) and the settled numbers above
it. Every message that is not settled is delivered to the instance that serves the consumer now, and again after
`ack_wait` seconds of silence. Messages with one ordering key, that of their session, form a lane: one at a time, or up
to `lane_width` at a time, each naming the message before it, so that the process notices when one was lost on its way.
Lanes are independent of each other.

- *Fencing*: an instance that attaches replaces the one before it, which receives nothing from then on and never comes
  back. What it had in flight counts as a death of its process and goes to the successor at once. A goodbye (`detach`)
  is no death.
- *Poison*: a message in flight at two deaths is a suspect. Suspects run alone in their lanes and one after another, so
  that the next death has one likely cause (`Suspects`). After `max_deliver` deaths that only it can have caused it is a
  dead letter, and its lane continues.
- *Failures*: a handler that raises may meet a bug that is fixed soon, so its message is delivered again after pauses
  that double, `max_failures` times; its lane waits. A dead letter can be delivered again on request.

Invariants. A number is settled or given up once, and never delivered afterwards unless it is in `again`. Within a lane
message n + 1 begins after message n has begun (width above 1) or ended (width 1). At most one instance is served.
`Settled` may be lost in a crash (one delivery more); deaths, dead letters and fencing may not, so they are committed
before anything follows from them.

Not done. Counting a death against everything that was in flight: innocent messages would become dead letters. Holding
up every lane while a suspect runs: a turn that waits for the turns of its agents would never end.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from local.bus.envelope import Envelope
from local.bus.message import Delivery, covers
from local.core.errors import MalformedFrame, UnknownConsumer

# The stored state of a durable consumer, and its changes.

SUSPECT_AFTER = 2
MAX_FENCED = 64
LONGEST_PAUSE = 30  # times `ack_wait` between two failures of a handler
MAX_FAILURES = 24  # which with the pauses between them take ten minutes, where `ack_wait` is a second


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """The limits of redelivery: the seconds of silence before a message is delivered again, and the deaths and
    failures before it becomes a dead letter.
    """

    ack_wait: float = 30.0
    max_deliver: int = 3
    max_failures: int = MAX_FAILURES


class DeliveryFailures(NamedTuple):
    """The deaths of a message: how often its process died while it was in flight (`total`), and how many of these
    deaths nothing else can have caused (`alone`).
    """

    total: int = 0
    alone: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """The stored state of a consumer. It needs every message of its subjects above `floor` that is not settled, and
    those in `again`.

    `dead_letters` gives the reasons; `again` are former dead letters to be delivered again, wherever the floor is.
    `served_by` is the instance that serves the consumer now: a restarted journal delivers to it again what it had in
    flight, and counts a death if it is gone. `fenced` are the last instances before it, the oldest first.
    """

    name: str = ""
    subjects: tuple[str, ...] = ()
    floor: int = 0
    acknowledged: Collection[int] = frozenset()
    deaths: Mapping[int, DeliveryFailures] = field(default_factory=dict)
    dead_letters: Mapping[int, str] = field(default_factory=dict)
    again: Collection[int] = frozenset()
    served_by: str | None = None
    fenced: Sequence[str] = ()

    @property
    def settled(self) -> frozenset[int]:
        """The settled messages: acknowledged ones and dead letters."""
        return frozenset(self.acknowledged) | self.dead_letters.keys()


@dataclass(slots=True)
class ConsumerChanges:
    """The changes of one consumer in one commit: `settled` numbers are done, `dead_letters` are given up (with the
    reason), and those in `again` are former dead letters to be delivered again; a later change of these removes them
    from it.

    `deaths` are totals, not increments. `served_by` are the instances that took over, in that order; None is no
    instance.
    """

    settled: set[int] = field(default_factory=set)
    deaths: dict[int, DeliveryFailures] = field(default_factory=dict)
    dead_letters: dict[int, str] = field(default_factory=dict)
    again: set[int] = field(default_factory=set)
    served_by: list[str | None] = field(default_factory=list)

    @property
    def is_to_last(self) -> bool:
        """Whether losing the change would do harm. A lost settlement only causes one more delivery."""
        return bool(self.deaths or self.dead_letters or self.again or self.served_by)

    def followed_by(self, later: ConsumerChanges) -> ConsumerChanges:
        """Both changes as one, the later ones last."""
        given_up = {number: reason for number, reason in self.dead_letters.items() if number not in later.again}
        return ConsumerChanges(
            self.settled | later.settled,
            {**self.deaths, **later.deaths},
            {**given_up, **later.dead_letters},
            (self.again | later.again) - later.settled - later.dead_letters.keys(),
            [*self.served_by, *later.served_by],
        )


# The decisions about a durable consumer, to be executed in that order.


@dataclass(frozen=True, slots=True)
class Deliver:
    """A decision: deliver message `number` to `instance`. `working` must name the attempt.

    `after` is the message with the same ordering key that must begin first, 0 if there is none: that message may be
    lost on its way although this one is not.
    """

    consumer: str
    number: int
    attempt: int
    instance: str
    after: int = 0
    linger: float = 0.0  # seconds that it may wait for others to travel with it


@dataclass(frozen=True, slots=True)
class Settled:
    """A decision to be stored: the consumer is done with message `number`."""

    consumer: str
    number: int


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """A decision to be stored: the deaths of message `number` so far."""

    consumer: str
    number: int
    deaths: DeliveryFailures


@dataclass(frozen=True, slots=True)
class Serving:
    """A decision to be stored: `instance` serves the consumer from now on, None if none does; all before it are
    fenced."""

    consumer: str
    instance: str | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A decision: give message `number` up. Stored together with the `bus.dead` that reports it."""

    consumer: str
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """A decision: inform `instance` that another one has replaced it; it receives nothing more and should end."""

    consumer: str
    instance: str


ConsumerDecision = Deliver | Settled | DeliveryFailure | Serving | DeadLetter | Fenced


# Which messages a consumer's processes may have died of, and how the cause is found.

ALONE_SECONDS = 2.0


@dataclass(slots=True)
class PoisonCandidate:
    """The deaths of one suspect: `proven` ones, which nothing else can have caused, and for each `unproven` one the
    messages beside it that may have caused it and have not ended since."""

    proven: int
    unproven: list[set[int]] = field(default_factory=list)

    @property
    def deaths(self) -> int:
        """The number of proven and unproven deaths."""
        return self.proven + len(self.unproven)


class Suspects:
    """The suspects of one consumer: messages that were in flight at several deaths. They run one after the other,
    beside all other messages. The next one starts when the previous one has ended, or has run for `ALONE_SECONDS`
    without harm, as it may wait for something that the next one does.

    When the process dies, the death is attributed to the suspect that began last; each message beside it is a possible
    culprit until it is settled: a message that ends is innocent, one that is given up was the cause. A suspect whose
    deaths would suffice to give it up waits until that is known. Times are seconds of one monotonic clock.
    """

    def __init__(self, max_deaths: int) -> None:
        self.max_deaths = max_deaths
        self.known: dict[int, PoisonCandidate] = {}  # by number
        self.ready: set[int] = set()
        self._running: dict[int, float] = {}  # since when, the latest last

    def put(self, number: int, proven: int) -> None:
        """A suspect may be given; so many deaths are proven, as far as that is stored."""
        self.known.setdefault(number, PoisonCandidate(proven))
        self.ready.add(number)

    @property
    def next_due(self) -> float | None:
        """Return when the next suspect may run; None if none waits."""
        return self._since + ALONE_SECONDS if self._running and self._able() else None

    def take(self, now: float) -> int | None:
        """The suspect that runs next, that with the fewest deaths and of these the oldest; None if another one has
        begun lately, or none may."""
        able = self._able()
        if not able or (self._running and now < self._since + ALONE_SECONDS):
            return None
        number = min(able, key=lambda number: (self.known[number].deaths, number))
        self.ready.remove(number)
        self._running[number] = now
        return number

    @property
    def _since(self) -> float:
        return next(reversed(self._running.values()))

    def _able(self) -> list[int]:
        return [number for number in self.ready if self.known[number].deaths < self.max_deaths]

    def stopped(self, number: int) -> None:
        """Record that a message is no longer in flight."""
        self._running.pop(number, None)

    def died(self, in_flight: Collection[int]) -> int | None:
        """Return the suspects for which the death of the process, with these messages in flight, is proven to be their
        fault.
        """
        if not self._running:
            return None
        number = next(reversed(self._running))
        if beside := set(in_flight) - {number}:
            self.known[number].unproven.append(beside)
            return None
        self.known[number].proven += 1
        return number

    def handed_back(self) -> None:
        """Reset: no message is in flight, and none is ready before it has been `put` again."""
        self._running.clear()
        self.ready.clear()

    def settled(self, ended: int, *, is_culprit: bool) -> list[int]:
        """Return the suspects for which a death is proven by a message that has ended or was given up as a culprit,
        once for each such death.
        """
        self.known.pop(ended, None)
        self.ready.discard(ended)
        self.stopped(ended)
        proven = []
        for number, suspect in self.known.items():
            concerned = [beside for beside in suspect.unproven if ended in beside]
            for beside in concerned:
                beside.remove(ended)
                if is_culprit or not beside:
                    suspect.unproven.remove(beside)
                    proven += [] if is_culprit else [number]
            suspect.proven += proven.count(number)
        return proven


GONE_AFTER = 3  # times `ack_wait` without a message from the process


@dataclass(slots=True)
class _Entry:
    number: int
    lane: str
    deaths: DeliveryFailures
    attempt: int
    due: float = 0.0  # when silence on it ends its delivery, or its pause ends
    failures: int = 0

    @property
    def is_suspect(self) -> bool:
        """Whether it runs alone in its lane, and at first beside no other suspect."""
        return self.deaths.total >= SUSPECT_AFTER


@dataclass(slots=True)
class _Lane:
    """The messages of one ordering key: those that may be in flight at once, in order, and those behind them. A
    suspect is alone.
    """

    window: dict[int, None] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)


class DurableConsumer:
    """The state machine of one named consumer. Times are seconds of any monotonic clock; an event costs O(log n) of the
    waiting messages.
    """

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
        # A settled message leaves `_entries` at once and the queues only when it comes to their front.
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
        """Return when `tick` must be called next."""
        silent = (entry.due for entry in (*self._in_flight.values(), *self._paused.values()))
        return min((due for due in (*silent, self._suspects.next_due) if due is not None), default=None)

    def wants(self, subject: str) -> bool:
        """Whether this consumer receives messages of this subject."""
        return any(covers(known, subject) for known in self.subjects)

    def add(self, number: int, lane: str, now: float) -> list[ConsumerDecision]:
        """A message was committed. Numbers rise; one that is not above the last is known already."""
        if number <= self._last:
            return []
        self._last = number
        if number in self._settled:
            return []
        self._enter(number, lane, self._past.deaths.get(number, DeliveryFailures()), deque.append)
        return self._deliver_waiting(now)

    def redeliver(self, number: int, lane: str, deaths: DeliveryFailures, now: float) -> list[ConsumerDecision]:
        """Deliver a dead letter again: after the messages in flight with its ordering key, and before the waiting
        ones.

        The request is already stored; a message that is not settled yet is left as it is.
        """
        if number not in self._entries:
            self._enter(number, lane, deaths, insort)
        return self._deliver_waiting(now)

    def attach(self, instance: str, now: float) -> list[ConsumerDecision]:
        """Attach a process to this consumer; a death is counted for each message that its predecessor still held.

        The call must be repeated: a process that has not attached for a while gets no redeliveries. An instance that
        was replaced or has detached is never attached again, because two processes would then take turns.
        """
        if instance in self._fenced:
            return [Fenced(self.name, instance)]
        self._heard_at = now
        if instance == self._instance:
            return []
        deaths = self._count_deaths()
        self._change_to(instance)
        return [Serving(self.name, instance), *deaths, *self._deliver_waiting(now)]

    def detach(self, instance: str) -> list[ConsumerDecision]:
        """Detach a process, which returns its messages; no death is counted."""
        if instance != self._instance:
            return []
        self._change_to(None)
        return [Serving(self.name, None)]

    def ack(self, number: int, now: float) -> list[ConsumerDecision]:
        """The work is done. That is a fact whichever attempt or instance did it, so it is never too old to count."""
        entry = self._entries.get(number)
        if entry is None:
            return []
        return [Settled(self.name, number), *self._settle(entry), *self._deliver_waiting(now)]

    def working(self, number: int, attempt: int, instance: str, now: float) -> list[ConsumerDecision]:
        """Note that a message is still being worked on; for an older attempt this has no effect."""
        if instance in self._fenced:
            return [Fenced(self.name, instance)]
        entry = self._in_flight.get(number)
        if entry is not None and entry.attempt == attempt and instance == self._instance:
            entry.due = now + self.ack_wait
            self._heard_at = now
        return []

    def failed(self, number: int, attempt: int, instance: str, reason: str, now: float) -> list[ConsumerDecision]:
        """Record that the handler raised, because of the message or of a bug that may be fixed soon."""
        entry = self._in_flight.get(number)
        if entry is None or entry.attempt != attempt or instance != self._instance:
            return []
        entry.failures += 1
        if entry.failures >= self._max_failures:
            dead = DeadLetter(self.name, number, f"failed {entry.failures} times: {reason}")
            return [dead, *self._settle(entry), *self._deliver_waiting(now)]
        entry.due = now + self.ack_wait * min(LONGEST_PAUSE, 2 ** (entry.failures - 1))
        self._paused[number] = self._in_flight.pop(number)
        self._suspects.stopped(number)
        return self._deliver_waiting(now)

    def hasten(self, due: float) -> None:
        """Deliver again at `due`, if not before, what is in flight, because deliveries may have been lost."""
        for entry in self._in_flight.values():
            entry.due = min(entry.due, due)

    def tick(self, now: float) -> list[ConsumerDecision]:
        """Deliver again the messages that were silent for too long: the delivery or its acknowledgement was lost."""
        if now - self._heard_at > GONE_AFTER * self.ack_wait:
            return []
        silent = [self._deliver(entry, now) for entry in self._in_flight.values() if entry.due <= now]
        for number in [number for number, entry in self._paused.items() if entry.due <= now]:
            self._make_ready(self._paused.pop(number))
        return [*silent, *self._deliver_waiting(now)]

    def _enter(
        self, number: int, lane: str, deaths: DeliveryFailures, put: Callable[[deque[int], int], object]
    ) -> None:
        self._entries[number] = _Entry(number, lane, deaths, attempt=deaths.total)
        put(self._lanes.setdefault(lane, _Lane()).waiting, number)
        self._promote(lane)

    def _deliver_waiting(self, now: float) -> list[ConsumerDecision]:
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
            entry.deaths = DeliveryFailures(entry.deaths.total + 1, entry.deaths.alone + (entry.number == proven))
        return [decision for entry in held for decision in self._judge(entry)]

    def _judge(self, entry: _Entry) -> list[ConsumerDecision]:
        """Return the decisions that follow from the deaths of a message."""
        total, alone = entry.deaths
        if alone < self._suspects.max_deaths:
            return [DeliveryFailure(self.name, entry.number, entry.deaths)]
        reason = f"{total} processes died while handling it, {alone} of them because of this message alone"
        return [DeadLetter(self.name, entry.number, reason), *self._settle(entry, is_culprit=True)]

    def _settle(self, entry: _Entry, *, is_culprit: bool = False) -> list[ConsumerDecision]:
        """Settle a message; returns the resulting decisions about suspects."""
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
                entry.deaths = DeliveryFailures(entry.deaths.total, entry.deaths.alone + 1)
                decisions += self._judge(entry)
        return decisions

    def _promote(self, name: str) -> None:
        """Fill a lane's window."""
        lane = self._lanes[name]
        while lane.waiting and len(lane.window) < self._lane_width:
            entry = self._entries.get(lane.waiting[0])
            if entry is not None and lane.window and (entry.is_suspect or self._has_suspect(lane)):
                break
            lane.waiting.popleft()
            if entry is not None:
                lane.window[entry.number] = None
                self._make_ready(entry)
        if not lane.window:
            del self._lanes[name]

    def _has_suspect(self, lane: _Lane) -> bool:
        return any(self._entries[number].is_suspect for number in lane.window)


# The journal's reaction to each event: what it commits next, what it confirms to whom, and what it delivers to which
# consumer.

MAX_CONFIRMED = 4096  # ids in one message
MAX_BATCH = 512  # messages in one commit
MAX_BATCH_BYTES = 1024 * 1024  # of their payloads, unless a single one is larger
MAX_WAITING = 100_000
MAX_WAITING_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Confirm:
    """A decision: inform `instance` that its messages with these ids are on disk."""

    instance: str
    ids: list[str]


Decision = Confirm | ConsumerDecision


class DeliveryCore:
    """The state machine of all consumers and publishers: it takes events and returns decisions in the order in which
    they are to be executed. Times are seconds of any monotonic clock.

    After a restart of the journal: `register` every consumer with its stored state, then `recover` every stored
    message above the lowest floor, in order; unacknowledged messages are delivered again.
    """

    def __init__(self, delivery_of: Callable[[str], Delivery]) -> None:
        """`delivery_of` knows the delivery class of a subject."""
        self._delivery_of = delivery_of
        self._consumers: dict[str, DurableConsumer] = {}
        self._wanting = lru_cache(1024)(
            lambda subject: [each for each in self._consumers.values() if each.wants(subject)]
        )
        self._unconfirmed: defaultdict[str, list[str]] = defaultdict(list)  # recorded messages, by instance

    @property
    def next_due(self) -> float | None:
        """Return when `tick` must be called next."""
        due = (consumer.next_due for consumer in self._consumers.values())
        return min((when for when in due if when is not None), default=None)

    @property
    def has_unconfirmed(self) -> bool:
        """Whether `confirm_recorded` has anything to confirm."""
        return bool(self._unconfirmed)

    @property
    def pending(self) -> dict[str, int]:
        """The number of unacknowledged messages by consumer."""
        return {name: len(consumer) for name, consumer in self._consumers.items()}

    def register(self, consumer: DurableConsumer) -> None:
        """Register a consumer: from now on it receives the committed and recovered messages of its subjects."""
        self._consumers[consumer.name] = consumer
        self._wanting.cache_clear()

    def consumer(self, name: str) -> DurableConsumer:
        """A registered consumer. Raises `UnknownConsumer`."""
        try:
            return self._consumers[name]
        except KeyError:
            raise UnknownConsumer(name, self._consumers) from None

    def recover(self, number: int, envelope: Envelope, now: float) -> list[Decision]:
        """A message that was committed before."""
        lane = envelope.session_id or envelope.id  # without a session it is ordered with nothing
        return [each for consumer in self._wanting(envelope.subject) for each in consumer.add(number, lane, now)]

    def committed(self, batch: Iterable[tuple[int, Envelope]], now: float) -> list[Decision]:
        """Deliver entries that are on disk under their numbers, repeats under their old number included, and confirm
        them to their publishers with one `Confirm` per instance. Recorded messages, for which no publisher waits, are
        confirmed with the next `Confirm`, or by `confirm_recorded`.
        """
        waiting: set[str] = set()
        deliveries: list[Decision] = []
        for number, envelope in batch:
            self._unconfirmed[envelope.instance].append(envelope.id)
            if self._delivery_of(envelope.subject) is Delivery.CONFIRMED:
                waiting.add(envelope.instance)
            deliveries += self.recover(number, envelope, now)
        confirms = [confirm for instance in sorted(waiting) for confirm in self._confirm(instance)]
        return [*deliveries, *confirms]  # the work of the first takes longer than that of the second

    def confirm_recorded(self) -> list[Confirm]:
        """Confirm the recorded messages, for which no publisher waits."""
        return [confirm for instance in list(self._unconfirmed) for confirm in self._confirm(instance)]

    def attach(self, consumer: str, instance: str, now: float) -> list[ConsumerDecision]:
        """A process serves this consumer. Raises `UnknownConsumer`, as all of the following do."""
        return self.consumer(consumer).attach(instance, now)

    def detach(self, consumer: str, instance: str) -> list[ConsumerDecision]:
        """Note that a process has ended in order."""
        return self.consumer(consumer).detach(instance)

    def ack(self, consumer: str, number: int, now: float) -> list[ConsumerDecision]:
        """The consumer is done with a message."""
        return self.consumer(consumer).ack(number, now)

    def working(self, consumer: str, number: int, attempt: int, instance: str, now: float) -> list[ConsumerDecision]:
        """The consumer still works on a message."""
        return self.consumer(consumer).working(number, attempt, instance, now)

    def failed(
        self, consumer: str, number: int, attempt: int, instance: str, reason: str, now: float
    ) -> list[Decision]:
        """The consumer's handler raised."""
        return [*self.consumer(consumer).failed(number, attempt, instance, reason, now)]

    def redeliver(
        self, consumer: str, number: int, lane: str, deaths: DeliveryFailures, now: float
    ) -> list[ConsumerDecision]:
        """A dead letter is to be given again, and that is on record."""
        return self.consumer(consumer).redeliver(number, lane, deaths, now)

    def hasten(self, due: float) -> None:
        """Deliver again at `due`: the connection was lost, and possibly deliveries with it."""
        for consumer in self._consumers.values():
            consumer.hasten(due)

    def tick(self, now: float) -> list[ConsumerDecision]:
        """Time passed."""
        return [decision for consumer in self._consumers.values() for decision in consumer.tick(now)]

    def _confirm(self, instance: str) -> list[Confirm]:
        ids = self._unconfirmed.pop(instance)
        return [Confirm(instance, ids[start : start + MAX_CONFIRMED]) for start in range(0, len(ids), MAX_CONFIRMED)]


@dataclass(frozen=True, slots=True)
class Batch:
    """The content of one commit. The dead letters are among the changes; their `bus.dead` must be stored together with
    them.
    """

    envelopes: list[Envelope]
    changes: dict[str, ConsumerChanges]
    dead_letters: list[DeadLetter]

    def __bool__(self) -> bool:
        return bool(self.envelopes or self.changes)


class CommitQueue:
    """The messages and changes that wait for their commit, in order of arrival, bounded by number and by payload
    bytes. `is_urgent`: a publisher waits for the commit.
    """

    def __init__(self, is_hurried: Callable[[str], bool]) -> None:
        """`is_hurried` says whether a user waits for the commit of messages on a subject."""
        self._is_hurried = is_hurried
        self._waiting: deque[Envelope] = deque()
        self._bytes = 0
        self._changes: defaultdict[str, ConsumerChanges] = defaultdict(ConsumerChanges)
        self._dead_letters: list[DeadLetter] = []
        self.is_urgent = False

    def __bool__(self) -> bool:
        return bool(self._waiting or self._changes or self._dead_letters)

    @property
    def waiting(self) -> int:
        """The number of messages that wait for their commit."""
        return len(self._waiting)

    def add(self, envelope: Envelope) -> bool:
        """Add a message that has arrived. Returns False if there is no room; the publisher sends it again.

        Raises `MalformedFrame` for a payload that is not text, because it could never be delivered.
        """
        if len(self._waiting) >= MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            return False
        try:
            envelope.payload.decode()
        except UnicodeDecodeError:
            raise MalformedFrame(f"{envelope.subject}: the payload is not UTF-8, so it cannot be JSON") from None
        self._waiting.append(envelope)
        self._bytes += len(envelope.payload)
        self.is_urgent = self.is_urgent or self._is_hurried(envelope.subject)
        return True

    def note(self, decision: Settled | DeliveryFailure | Serving | DeadLetter) -> None:
        """Add a change of a consumer."""
        match decision:
            case Settled(consumer, number):
                self._changes[consumer].settled.add(number)
            case DeliveryFailure(consumer, number, deaths):
                self._changes[consumer].deaths[number] = deaths
            case Serving(consumer, instance):
                self._changes[consumer].served_by.append(instance)
            case DeadLetter():
                self._dead_letters.append(decision)
                self.is_urgent = True

    def take(self) -> Batch:
        """The oldest messages, as many as one commit may hold, and all changes."""
        envelopes: list[Envelope] = []
        room = MAX_BATCH_BYTES
        while self._waiting and len(envelopes) < MAX_BATCH:
            room -= len(self._waiting[0].payload)
            if room < 0 and envelopes:
                break
            envelopes.append(self._waiting.popleft())
        self._bytes -= sum(len(envelope.payload) for envelope in envelopes)
        changes, self._changes = self._changes, defaultdict(ConsumerChanges)
        dead_letters, self._dead_letters = self._dead_letters, []
        for dead in dead_letters:
            changes[dead.consumer].dead_letters[dead.number] = dead.reason
        self.is_urgent = bool(self._waiting)
        return Batch(envelopes, dict(changes), dead_letters)

    def put_back_changes(self, batch: Batch) -> None:
        """A batch could not be stored: its messages will be sent again, its changes would be lost."""
        self._dead_letters = [*batch.dead_letters, *self._dead_letters]
        for name, earlier in batch.changes.items():
            self._changes[name] = earlier.followed_by(self._changes[name])
