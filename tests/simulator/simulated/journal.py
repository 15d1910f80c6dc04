"""The journal's shell as the simulator has it: a disk that stays, a memory that does not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from simulated.world import Process

from local.bus.envelope import Envelope
from local.bus.message import Delivery, Message
from local.core.errors import UnknownConsumer
from local.journal.delivery import (
    SUSPECT_AFTER,
    CommitQueue,
    Confirm,
    ConsumerChanges,
    ConsumerState,
    DeadLetter,
    Decision,
    Deliver,
    DeliveryCore,
    DeliveryFailure,
    DeliveryFailures,
    DurableConsumer,
    Fenced,
    Serving,
    Settled,
)
from local.journal.messages import (
    JournalAck,
    JournalAttach,
    JournalConfirmed,
    JournalDeliver,
    JournalDetach,
    JournalFailed,
    JournalFenced,
    JournalWorking,
)

MAX_IN_FLIGHT = 6
CONSUMERS = {
    "generator": ["query.received", "bus.dead"],
    "generator_cancels": ["query.cancel"],
    "observer": ["response.generation"],
}
OUTCOMES = ("response.generation", "query.failed")
RECORDED = "agent.transition"


@dataclass
class JournalDisk:
    """What was committed; envelope number n is at n - 1."""

    envelopes: list[Envelope] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    changes: dict[str, ConsumerChanges] = field(default_factory=lambda: {name: ConsumerChanges() for name in CONSUMERS})
    held_up: list[int] = field(default_factory=list)  # what the generator was not given, though it might have been

    def commit(self, envelopes: list[Envelope], changes: Mapping[str, ConsumerChanges]) -> list[tuple[int, Envelope]]:
        """One transaction. Returns the envelopes with the numbers that they have, repeats their old ones."""
        for envelope in envelopes:
            if envelope.id not in self.numbers:
                self.envelopes.append(envelope)
                self.numbers[envelope.id] = len(self.envelopes)
        for name, change in changes.items():
            self.changes[name] = self.changes[name].followed_by(change)
        return [(self.numbers[envelope.id], envelope) for envelope in envelopes]

    def state(self, consumer: str) -> ConsumerState:
        """What a new process of the journal knows of a consumer."""
        known = self.changes[consumer]
        settled = (known.settled | known.dead_letters.keys()) - known.again
        wanted = (number for number, e in enumerate(self.envelopes, 1) if e.subject in CONSUMERS[consumer])
        needed = (number for number in wanted if number not in settled | known.again)
        floor = next(needed, len(self.envelopes) + 1) - 1
        *before, instance = [None, *known.served_by]
        fenced = [instance for instance in before if instance is not None]
        return ConsumerState(consumer, (), floor, settled, known.deaths, {}, known.again, instance, fenced)

    def given_up(self, consumer: str) -> list[Envelope]:
        """The dead letters of a consumer."""
        return [self.envelopes[number - 1] for number in self.changes[consumer].dead_letters]


class Flow:
    """What the generator has in hand, by the decisions alone: each session goes on that has no suspect."""

    def __init__(self, disk: JournalDisk) -> None:
        self.disk, state = disk, disk.state("generator")
        self.deaths, self.settled = dict(state.deaths), set(state.settled)
        self.held = set[int]()
        self.is_served = False
        self.known = 0  # of the disk's envelopes

    def follow(self, decisions: Sequence[Decision]) -> None:
        """Look once all of them hold."""
        for decision in decisions:
            match decision:
                case Serving("generator", instance):
                    self.is_served = instance is not None
                    self.held.clear()
                case DeliveryFailure("generator", number, deaths):
                    self.deaths[number] = deaths
                case Deliver("generator", number):
                    self.held.add(number)
                    self.settled.discard(number)  # of one that is given again
                    self.known = max(self.known, number)
                case Settled("generator", number) | DeadLetter("generator", number):
                    self.settled.add(number)
                    self.held.discard(number)
        if self.is_served and len(self.held) < MAX_IN_FLIGHT:
            self.disk.held_up += [numbers[0] for numbers in self.sessions() if not self.goes_on(numbers)]

    def sessions(self) -> Iterable[list[int]]:
        """What of each is not settled, as far as the generator has been given anything later."""
        sessions: defaultdict[str | None, list[int]] = defaultdict(list)
        for number, envelope in enumerate(self.disk.envelopes[: self.known], 1):
            if envelope.subject in CONSUMERS["generator"] and number not in self.settled:
                sessions[envelope.session_id].append(number)
        return sessions.values()

    def goes_on(self, numbers: list[int]) -> bool:
        """Whether something of a session is in hand, or it has a suspect."""
        return any(n in self.held or self.deaths.get(n, DeliveryFailures()).total >= SUSPECT_AFTER for n in numbers)


class Journal(Process):
    """Commits in groups; between commit and telling, it may die."""

    role = "journal"
    disk: JournalDisk

    def start(self) -> None:
        self.core = DeliveryCore(lambda s: Delivery.RECORDED if s == RECORDED else Delivery.CONFIRMED)
        self.queue = CommitQueue(lambda subject: subject != RECORDED)
        for name in CONSUMERS:
            self.core.register(self.consumer(name))
        self.is_committing = False
        self.flow = Flow(self.disk)
        self.resume()
        for number, envelope in enumerate(self.disk.envelopes, 1):
            self.carry_out(self.core.recover(number, envelope, self.world.now))
        self.beat()

    def resume(self) -> None:
        """What an earlier process was to give again."""
        for state in map(self.disk.state, CONSUMERS):
            for number in sorted(state.again):
                self.redeliver_requested(state.name, number, state.deaths.get(number, DeliveryFailures()))

    def consumer(self, name: str) -> DurableConsumer:
        """One of the durable consumers; the generator orders its sessions by itself."""
        width = 3 if name == "generator" else 1
        state = self.disk.state(name)
        return DurableConsumer(
            name,
            CONSUMERS[name],
            ack_wait=1.0,
            max_failures=1,
            max_in_flight=MAX_IN_FLIGHT,
            lane_width=width,
            state=state,
        )

    def beat(self) -> None:
        self.carry_out(self.core.tick(self.world.now))
        if self.world.is_healthy or self.random.random() < 0.2:
            self.redeliver("observer")
        super().beat()

    def redeliver(self, name: str) -> None:
        """Somebody asks for all dead letters of a consumer, mended or not; it happens after a commit."""
        dead = self.disk.changes[name].dead_letters
        if dead and not self.is_committing:
            deaths = {
                number: DeliveryFailures(self.disk.changes[name].deaths.get(number, DeliveryFailures()).total, 0)
                for number in dead
            }
            self.disk.commit([], {name: ConsumerChanges(again=set(dead), deaths=deaths)})
            for number, of_it in deaths.items():
                self.later(self.random.random() * 0.3, self.redeliver_requested, name, number, of_it)

    def redeliver_requested(self, name: str, number: int, deaths: DeliveryFailures) -> None:
        """What is on record as to be given again."""
        envelope = self.disk.envelopes[number - 1]
        lane = envelope.session_id or envelope.id
        self.carry_out(self.core.redeliver(name, number, lane, deaths, self.world.now))

    def on_envelope(self, envelope: Envelope) -> None:
        """Somebody published a message."""
        self.queue.add(envelope)
        self.commit_soon()

    def on_post(self, message: Message, instance: str) -> None:
        """Somebody says something to the journal itself."""
        with suppress(UnknownConsumer):
            self.carry_out(self.decide(message, instance, self.world.now))

    def decide(self, message: Message, instance: str, now: float) -> list[Decision]:
        """What follows from it."""
        match message:
            case JournalAttach(consumers=consumers):
                return [d for each in consumers for d in self.core.attach(each.name, instance, now)]
            case JournalDetach(consumer=consumer):
                return [*self.core.detach(consumer, instance)]
            case JournalAck(consumer=consumer, numbers=numbers):
                return [d for number in numbers for d in self.core.ack(consumer, number, now)]
            case JournalFailed(consumer=consumer, number=number, attempt=attempt, reason=reason):
                return self.core.failed(consumer, number, attempt, instance, reason, now)
            case JournalWorking(attempts=attempts):
                return [
                    d
                    for consumer, of_it in attempts.items()
                    for number, attempt in of_it.items()
                    for d in self.core.working(consumer, number, attempt, instance, now)
                ]
        raise NotImplementedError(message)

    def on_read(self, query_id: str) -> None:
        """A frontend wants to know how a query ended."""
        for envelope in self.disk.envelopes:
            if envelope.correlation_id == query_id and envelope.subject in OUTCOMES:
                self.send("api", "heard", envelope)

    def commit_soon(self) -> None:
        """Everything that comes until then goes into the same transaction."""
        if not self.is_committing:
            self.is_committing = True
            self.later(self.random.random() * (0.02 if self.queue.is_urgent else 0.05), self.commit)

    def commit(self) -> None:
        """The transaction; nobody is told in the same step."""
        batch = self.queue.take()
        letters = [self.letter_for(dead) for dead in batch.dead_letters]
        self.is_committing = False
        self.later(0, self.tell, self.disk.commit([*batch.envelopes, *letters], batch.changes))

    def tell(self, batch: Iterable[tuple[int, Envelope]]) -> None:
        """The publishers and the consumers."""
        self.carry_out(self.core.committed(batch, self.world.now))
        self.later(0.05, self.confirm_recorded)

    def confirm_recorded(self) -> None:
        """Those publishers that do not wait."""
        self.carry_out(self.core.confirm_recorded())

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        """Do what was decided."""
        self.flow.follow(decisions)
        for decision in decisions:
            match decision:
                case Confirm(self.instance):
                    pass  # its own dead letter
                case Confirm(instance, ids):
                    self.say(instance, JournalConfirmed(instance=instance, ids=tuple(ids)))
                case Deliver(consumer, number, attempt, instance, after):
                    frame = self.disk.envelopes[number - 1].encode().decode()
                    given = JournalDeliver(
                        consumer=consumer, instance=instance, number=number, attempt=attempt, after=after, frame=frame
                    )
                    self.say(instance, given)
                case Fenced(consumer, instance):
                    self.say(instance, JournalFenced(consumer=consumer, instance=instance))
                case _:
                    self.queue.note(decision)
                    self.commit_soon()

    def say(self, instance: str, message: Message) -> None:
        """To all who have the role of an instance."""
        subject = message.routing_key
        envelope = Envelope(subject, subject, self.role, self.instance, 1, subject, message.encode())
        self.send(instance.partition("-")[0], "told", envelope)

    def letter_for(self, dead: DeadLetter) -> Envelope:
        """Tells that a consumer gets a message no more; the generator ends its query by it."""
        given_up = self.disk.envelopes[dead.number - 1]
        subject = "bus.dead" if dead.consumer == "generator" else f"bus.dead.{dead.consumer}"
        return Envelope(
            subject, f"{subject} {dead.number}", self.role, self.instance, 1, given_up.correlation_id, b"",
            session_id=given_up.session_id,
        )  # fmt: skip
