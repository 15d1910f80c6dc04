"""What the journal does about each event: whom it confirms what, which consumer is given what. Decisions only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from local.errors import UnknownConsumer
from local.journal.core.cumulative_acks import CumulativeAcks
from local.journal.core.durable_consumer import ConsumerDecision, DurableConsumer
from local.protocol.envelope import Envelope
from local.protocol.message import Delivery


@dataclass(frozen=True, slots=True)
class Confirm:
    """Tell `instance` that these of its confirmed messages are safe, and up to which seq its recorded ones are."""

    instance: str
    ids: list[str] = field(default_factory=list)
    recorded: dict[str, int] = field(default_factory=dict)  # by subject


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
        self._acks = CumulativeAcks()

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do."""
        due = (consumer.next_due for consumer in self._consumers.values())
        return min((when for when in due if when is not None), default=None)

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
        """These are on disk under their numbers, repeats (under the number they had) included: their consumers
        get them, and their publishers are told, one `Confirm` for each instance."""
        confirms: dict[str, Confirm] = {}
        deliveries: list[Decision] = []
        for number, envelope in batch:
            instance, subject = envelope.instance, envelope.subject
            confirm = confirms.setdefault(instance, Confirm(instance))
            if self._delivery_of(subject) is Delivery.CONFIRMED:
                confirm.ids.append(envelope.id)
            else:
                confirm.recorded[subject] = self._acks.committed(instance, subject, envelope.seq)
            deliveries += self.recover(number, envelope, now)
        return [*deliveries, *confirms.values()]  # the work of the first takes longer than that of the second

    def begins_after(self, instance: str, floors: Mapping[str, int]) -> Confirm:
        """A publisher says, by subject, up to which seq nothing will come any more."""
        return Confirm(instance, recorded={s: self._acks.begins_after(instance, s, n) for s, n in floors.items()})

    def attach(self, consumer: str, instance: str, now: float) -> list[ConsumerDecision]:
        """A process serves this consumer. Raises `UnknownConsumer`, as all of the following do."""
        return self.consumer(consumer).attach(instance, now)

    def detach(self, consumer: str, instance: str) -> list[ConsumerDecision]:
        """A process said goodbye."""
        return self.consumer(consumer).detach(instance)

    def ack(self, consumer: str, number: int, now: float) -> list[ConsumerDecision]:
        """The consumer has dealt with a message."""
        return self.consumer(consumer).ack(number, now)

    def working(self, consumer: str, number: int, attempt: int, instance: str, now: float) -> None:
        """The consumer is still dealing with a message."""
        self.consumer(consumer).working(number, attempt, instance, now)

    def hasten(self, due: float) -> None:
        """The connection was lost, and perhaps deliveries with it: give them again at `due`."""
        for consumer in self._consumers.values():
            consumer.hasten(due)

    def tick(self, now: float) -> list[ConsumerDecision]:
        """Time passed."""
        return [decision for consumer in self._consumers.values() for decision in consumer.tick(now)]
