"""The journal's shell as the simulator has it: a disk that stays, a memory that does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simulated.world import Process

from local.journal.core.delivery_core import Confirm, Decision, DeliveryCore
from local.journal.core.durable_consumer import (
    ConsumerDecision,
    ConsumerState,
    Deaths,
    Deliver,
    Died,
    DurableConsumer,
    Fenced,
    Park,
    Serving,
    Settled,
)
from local.protocol.envelope import Envelope
from local.protocol.message import Delivery

CONSUMERS = {
    "generator": ["query.received", "bus.dead"],
    "generator_cancels": ["query.cancel"],
    "observer": ["response.generation"],
}
OUTCOMES = ("response.generation", "query.failed")


@dataclass
class JournalDisk:
    """What was committed; envelope number n is at n - 1."""

    envelopes: list[Envelope] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    settled: dict[str, set[int]] = field(default_factory=lambda: {name: set() for name in CONSUMERS})
    deaths: dict[str, dict[int, Deaths]] = field(default_factory=lambda: {name: {} for name in CONSUMERS})
    instances: dict[str, list[str | None]] = field(default_factory=lambda: {name: [None] for name in CONSUMERS})
    parked: dict[str, set[int]] = field(default_factory=lambda: {name: set() for name in CONSUMERS})

    def commit(self, envelopes: list[Envelope], records: list[ConsumerDecision]) -> list[tuple[int, Envelope]]:
        """One transaction. Returns the envelopes with the numbers that they have, repeats their old ones."""
        for envelope in envelopes:
            if envelope.id not in self.numbers:
                self.envelopes.append(envelope)
                self.numbers[envelope.id] = len(self.envelopes)
        for record in records:
            match record:
                case Settled(consumer, number):
                    self.settled[consumer].add(number)
                case Died(consumer, number, deaths):
                    self.deaths[consumer][number] = deaths
                case Serving(consumer, instance):
                    self.instances[consumer].append(instance)
                case Park(consumer, number):
                    self.settled[consumer].add(number)
                    self.parked[consumer].add(number)
        return [(self.numbers[envelope.id], envelope) for envelope in envelopes]

    def state(self, consumer: str) -> ConsumerState:
        """What a new process of the journal knows of a consumer."""
        settled, floor = self.settled[consumer], 0
        while floor + 1 in settled:
            floor += 1
        *before, instance = self.instances[consumer]
        fenced = [instance for instance in before if instance is not None]
        return ConsumerState(floor, frozenset(settled), self.deaths[consumer], instance, fenced)


class Journal(Process):
    """Commits in groups; between commit and telling, it may die."""

    role = "journal"
    disk: JournalDisk

    def start(self) -> None:
        self.desk = DeliveryCore(lambda s: Delivery.RECORDED if s == "agent.transition" else Delivery.CONFIRMED)
        for name in CONSUMERS:
            self.desk.register(self.consumer(name))
        self.envelopes: list[Envelope] = []
        self.records: list[ConsumerDecision] = []
        self.is_committing = False
        for number, envelope in enumerate(self.disk.envelopes, 1):
            self.carry_out(self.desk.recover(number, envelope, self.world.now))
        self.beat()

    def consumer(self, name: str) -> DurableConsumer:
        """One of the durable consumers; the generator orders its sessions by itself."""
        width = 3 if name == "generator" else 1
        state = self.disk.state(name)
        return DurableConsumer(name, CONSUMERS[name], ack_wait=1.0, max_in_hand=6, lane_width=width, state=state)

    def beat(self) -> None:
        self.carry_out(self.desk.tick(self.world.now))
        super().beat()

    def on_envelope(self, envelope: Envelope) -> None:
        """Somebody published a message."""
        self.envelopes.append(envelope)
        self.commit_soon()

    def on_floors(self, instance: str, floors: dict[str, int]) -> None:
        """Somebody resends recorded messages."""
        self.carry_out([self.desk.begins_after(instance, floors)])

    def on_attach(self, consumer: str, instance: str) -> None:
        """A consumer's process lives."""
        self.carry_out(self.desk.attach(consumer, instance, self.world.now))

    def on_detach(self, consumer: str, instance: str) -> None:
        """A consumer's process ends in order."""
        self.carry_out(self.desk.detach(consumer, instance))

    def on_ack(self, consumer: str, number: int) -> None:
        """A consumer is done with a message."""
        self.carry_out(self.desk.ack(consumer, number, self.world.now))

    def on_working(self, consumer: str, attempts: dict[int, int], instance: str) -> None:
        """A consumer is not done yet."""
        for number, attempt in attempts.items():
            self.desk.working(consumer, number, attempt, instance, self.world.now)

    def on_read(self, query_id: str) -> None:
        """A door wants to know how a query ended."""
        for envelope in self.disk.envelopes:
            if envelope.correlation_id == query_id and envelope.subject in OUTCOMES:
                self.send("api", "heard", envelope)

    def commit_soon(self) -> None:
        """Everything that comes until then goes into the same transaction."""
        if not self.is_committing:
            self.is_committing = True
            self.later(self.random.random() * 0.02, self.commit)

    def commit(self) -> None:
        """The transaction; nobody is told in the same step."""
        batch = self.disk.commit(self.envelopes, self.records)
        self.envelopes, self.records, self.is_committing = [], [], False
        self.later(0, self.tell, batch)

    def tell(self, batch: list[tuple[int, Envelope]]) -> None:
        """The publishers and the consumers."""
        self.carry_out(self.desk.committed(batch, self.world.now))

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        """Do what was decided."""
        for decision in decisions:
            match decision:
                case Confirm(self.instance):
                    pass  # its own dead letter
                case Confirm(instance, ids, recorded):
                    self.send(role_of(instance), "confirm", instance, ids, recorded)
                case Deliver(consumer, number, attempt, instance, after):
                    envelope = self.disk.envelopes[number - 1]
                    self.send(role_of(instance), "deliver", consumer, instance, number, attempt, after, envelope)
                case Fenced(_, instance):
                    self.send(role_of(instance), "fenced", instance)
                case _:
                    if isinstance(decision, Park):
                        self.envelopes.append(self.dead_letter(decision))
                    self.records.append(decision)
                    self.commit_soon()

    def dead_letter(self, park: Park) -> Envelope:
        """Tells that a consumer gets a message no more; the generator ends its query by it."""
        dead = self.disk.envelopes[park.number - 1]
        subject = "bus.dead" if park.consumer == "generator" else f"bus.dead.{park.consumer}"
        return Envelope(
            subject, f"{subject} {park.number}", self.role, self.instance, 1, dead.correlation_id, b"",
            session_id=dead.session_id,
        )  # fmt: skip


def role_of(instance: str) -> str:
    """Who it is."""
    return instance.partition("-")[0]
