"""Durable consumers: one that only has an effect of its own, and one that also publishes what it made."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulated.publishers import Publisher

from local.protocol.envelope import Envelope


@dataclass
class Effects:
    """A consumer's own database: the numbers of what it has done, in order, each once."""

    owner: str = ""
    done: list[int] = field(default_factory=list)


class Consumer(Publisher):
    """Does its work in a transaction that fails if a newer process has taken the database over."""

    disk: Effects

    def start(self) -> None:
        self.in_hand: dict[int, int] = {}
        self.acknowledged: set[int] = set()
        self.disk.owner = self.instance
        self.beat()

    def beat(self) -> None:
        self.send("journal", "attach", self.role, self.instance)
        for number, attempt in self.in_hand.items():
            self.send("journal", "working", self.role, number, attempt, self.instance)
        super().beat()

    def on_fenced(self, instance: str) -> None:
        """Another process has taken its place."""
        if instance == self.instance:
            self.world.kill(self)

    def on_deliver(self, instance: str, number: int, attempt: int, envelope: Envelope) -> None:
        """A message, perhaps not for the first time."""
        if instance != self.instance:
            return
        if number in self.acknowledged:
            self.ack(number)
            return
        is_new = number not in self.in_hand
        self.in_hand[number] = attempt
        if is_new:
            self.later(self.world.random.random() ** 4 * 2, self.finish, number, envelope)

    def finish(self, number: int, envelope: Envelope) -> None:
        """The work, unless it was done in an earlier life; then, in another step, what follows from it."""
        if self.disk.owner == self.instance:
            if number not in self.disk.done:
                self.disk.done.append(number)
            self.later(0, self.follow_up, number, envelope)

    def follow_up(self, number: int, envelope: Envelope) -> None:
        """What comes after the work."""
        self.ack(number)

    def ack(self, number: int) -> None:
        """Say that it is done."""
        self.in_hand.pop(number, None)
        self.acknowledged.add(number)
        self.send("journal", "ack", self.role, number)


class Observer(Consumer):
    """Remembers each answer."""

    role = "observer"


class Generator(Consumer):
    """Answers each query; dies of those that are poison. Leaves in order now and then."""

    role = "generator"

    def start(self) -> None:
        self.queries: dict[str, int] = {}
        super().start()
        if not self.world.is_healthy and self.world.random.random() < 0.3:
            self.later(self.world.random.random() * 3, self.leave)

    def leave(self) -> None:
        """An orderly goodbye."""
        self.send("journal", "detach", self.role, self.instance)
        self.world.kill(self)

    def finish(self, number: int, envelope: Envelope) -> None:
        if envelope.id.endswith("poison"):
            self.world.kill(self)
        else:
            super().finish(number, envelope)

    def follow_up(self, number: int, envelope: Envelope) -> None:
        answer = "answer to " + envelope.id
        self.queries[answer] = number
        self.publish("response.generation", answer, envelope.session_id or "")

    def confirmed(self, envelope_id: str) -> None:
        self.ack(self.queries[envelope_id])
