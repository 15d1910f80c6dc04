"""What the journal does about each event: whom it confirms what, which consumer is given what. Decisions only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from local.errors import UnknownConsumer
from local.journal.core.durable_consumer import ConsumerDecision, DurableConsumer
from local.protocol.envelope import Envelope
from local.protocol.message import Delivery

MAX_CONFIRMED = 4096  # ids in one message


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
        """These are on disk under their numbers, repeats (under the number they had) included: their consumers get
        them, and the publishers that wait are told, one `Confirm` for each instance. Nobody waits for what is
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
