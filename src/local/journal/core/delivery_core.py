"""What the journal does about each event: what it commits next, whom it confirms what, which consumer is given what.

Decisions only.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from local.errors import MalformedFrame, UnknownConsumer
from local.journal.core.consumer_decision import ConsumerDecision, DeadLetter, Died, Serving, Settled
from local.journal.core.consumer_state import ConsumerChanges, Deaths
from local.journal.core.durable_consumer import DurableConsumer
from local.protocol.envelope import Envelope
from local.protocol.message import Delivery

MAX_CONFIRMED = 4096  # ids in one message
MAX_BATCH = 512  # messages in one commit
MAX_WAITING = 100_000
MAX_WAITING_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Confirm:
    """Tell `instance` that its messages with these ids are safe."""

    instance: str
    ids: list[str]


Decision = Confirm | ConsumerDecision


class DeliveryCore:
    """Takes what happened, returns what to do about it, in that order. Times are seconds of any monotonic clock.

    After a restart of the journal: `register` every consumer with its stored state, then `recover` every stored
    message above the lowest floor, in order; what is not acknowledged is delivered again.
    """

    def __init__(self, delivery_of: Callable[[str], Delivery]) -> None:
        """`delivery_of` knows the delivery class of a subject."""
        self._delivery_of = delivery_of
        self._consumers: dict[str, DurableConsumer] = {}
        self._unconfirmed: defaultdict[str, list[str]] = defaultdict(list)  # recorded messages, by instance

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do."""
        due = (consumer.next_due for consumer in self._consumers.values())
        return min((when for when in due if when is not None), default=None)

    @property
    def has_unconfirmed(self) -> bool:
        """Whether `confirm_recorded` has something to tell."""
        return bool(self._unconfirmed)

    @property
    def pending(self) -> dict[str, int]:
        """By consumer, how many messages it has not acknowledged."""
        return {name: len(consumer) for name, consumer in self._consumers.items()}

    def register(self, consumer: DurableConsumer) -> None:
        """From now on this consumer gets what it wants of what is committed or recovered."""
        self._consumers[consumer.name] = consumer

    def consumer(self, name: str) -> DurableConsumer:
        """A registered consumer. Raises `UnknownConsumer`."""
        try:
            return self._consumers[name]
        except KeyError:
            raise UnknownConsumer(name, self._consumers) from None

    def recover(self, number: int, envelope: Envelope, now: float) -> list[Decision]:
        """A message that was committed before."""
        lane = envelope.session_id or envelope.id  # without a session it is ordered with nothing
        decisions: list[Decision] = []
        for consumer in self._consumers.values():
            if consumer.wants(envelope.subject):
                decisions += consumer.add(number, lane, now)
        return decisions

    def committed(self, batch: Iterable[tuple[int, Envelope]], now: float) -> list[Decision]:
        """The entries are on disk under their numbers, repeats (under the number they had) included: their consumers
        get them, and the publishers that wait are told, one `Confirm` for each instance. Nobody waits for what is
        recorded: it is confirmed with the next `Confirm`, or by `confirm_recorded`."""
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
        """Confirm what nobody waits for."""
        return [confirm for instance in list(self._unconfirmed) for confirm in self._confirm(instance)]

    def attach(self, consumer: str, instance: str, now: float) -> list[ConsumerDecision]:
        """A process serves this consumer. Raises `UnknownConsumer`, as all of the following do."""
        return self.consumer(consumer).attach(instance, now)

    def detach(self, consumer: str, instance: str) -> list[ConsumerDecision]:
        """A process said goodbye."""
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

    def redeliver(self, consumer: str, number: int, lane: str, deaths: Deaths, now: float) -> list[ConsumerDecision]:
        """A dead letter is to be given again, and that is on record."""
        return self.consumer(consumer).redeliver(number, lane, deaths, now)

    def hasten(self, due: float) -> None:
        """The connection was lost, and perhaps deliveries with it: give them again at `due`."""
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
    """One commit. The dead letters are among the changes; their `bus.dead` has to be stored together with them."""

    envelopes: list[Envelope]
    changes: dict[str, ConsumerChanges]
    dead_letters: list[DeadLetter]

    def __bool__(self) -> bool:
        return bool(self.envelopes or self.changes)


class CommitQueue:
    """In order of arrival, bounded by number and by payload bytes. `is_urgent` is whether somebody waits for it."""

    def __init__(self, is_hurried: Callable[[str], bool]) -> None:
        """`is_hurried` knows whether somebody's answer waits until a message on a subject is on record."""
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
        """How many messages wait for their commit."""
        return len(self._waiting)

    def add(self, envelope: Envelope) -> bool:
        """A message has arrived. False if there is no room: it will be sent again.

        Raises `MalformedFrame` for a payload that is no text: on record it could be given to nobody, for ever.
        """
        if len(self._waiting) >= MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            return False
        try:
            envelope.payload.decode()
        except UnicodeDecodeError:
            raise MalformedFrame(f"{envelope.subject}: the payload is no UTF-8, so it cannot be JSON") from None
        self._waiting.append(envelope)
        self._bytes += len(envelope.payload)
        self.is_urgent = self.is_urgent or self._is_hurried(envelope.subject)
        return True

    def note(self, decision: Settled | Died | Serving | DeadLetter) -> None:
        """Something was decided about a consumer."""
        match decision:
            case Settled(consumer, number):
                self._changes[consumer].settled.add(number)
            case Died(consumer, number, deaths):
                self._changes[consumer].deaths[number] = deaths
            case Serving(consumer, instance):
                self._changes[consumer].served_by.append(instance)
            case DeadLetter():
                self._dead_letters.append(decision)
                self.is_urgent = True

    def take(self) -> Batch:
        """The oldest messages, as many as one commit may hold, and all changes."""
        envelopes = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
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
