"""A process's hold on durable consumers of the journal, and an observer that has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from simulated.publisher import Publisher

from local.protocol.envelope import Envelope

ATTACH_EVERY = 4  # beats


class Hold:
    """Decides what a delivery is to this process, as journal/client/journal_consumer.py does."""

    def __init__(self, receive: Callable[[int, Envelope], None]) -> None:
        self.receive = receive
        self.in_hand: dict[int, int] = {}  # attempts by number
        self.done: set[int] = set()

    def deliver(self, number: int, attempt: int, after: int, envelope: Envelope) -> None:
        """New, or known already; not before the one that has to begin before it."""
        if number in self.in_hand:
            self.in_hand[number] = attempt
        elif not after or after in self.in_hand or after in self.done:
            self.in_hand[number] = attempt
            self.receive(number, envelope)


class Consumer(Publisher):
    """Attaches, says what it is working on, acknowledges."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.holds = {self.role: Hold(self.receive)}
        self.beats = count()

    def start(self) -> None:
        self.disk.owner = self.instance
        self.beat()

    def beat(self) -> None:
        attaches = next(self.beats) % ATTACH_EVERY == 0
        for name, hold in self.holds.items():
            if attaches:
                self.send("journal", "attach", name, self.instance)
            if hold.in_hand:
                self.send("journal", "working", name, dict(hold.in_hand), self.instance)
        super().beat()

    def on_fenced(self, instance: str) -> None:
        """Another process has taken its place."""
        if instance == self.instance:
            self.world.kill(self)

    def on_deliver(self, name: str, instance: str, number: int, attempt: int, after: int, envelope: Envelope) -> None:
        """A message, perhaps not for the first time."""
        if instance != self.instance:
            return
        if number in self.holds[name].done:
            self.send("journal", "ack", name, number)
        else:
            self.holds[name].deliver(number, attempt, after, envelope)

    def receive(self, number: int, envelope: Envelope) -> None:
        """The work; `ack` or `release` ends it."""
        raise NotImplementedError

    def ack(self, number: int, name: str = "") -> None:
        """Say that it is done."""
        hold = self.holds[name or self.role]
        hold.in_hand.pop(number, None)
        hold.done.add(number)
        self.send("journal", "ack", name or self.role, number)

    def release(self, number: int, name: str = "") -> None:
        """It cannot be done now; the journal gives it again."""
        self.holds[name or self.role].in_hand.pop(number, None)


@dataclass
class Memory:
    """An observer's database: the queries whose answers it has, in the order in which they came."""

    owner: str = ""
    answers: list[str] = field(default_factory=list)

    def store(self, query_id: str) -> None:
        """Remember an answer, unless it is known."""
        if query_id not in self.answers:
            self.answers.append(query_id)


class Observer(Consumer):
    """Remembers each answer."""

    role = "observer"
    disk: Memory

    def receive(self, number: int, envelope: Envelope) -> None:
        self.later(self.random.random() ** 4 * 2, self.remember, number, envelope.correlation_id)

    def remember(self, number: int, query_id: str) -> None:
        """In one transaction, then the acknowledgement."""
        self.write(self.disk.store, query_id, then=lambda: self.ack(number), failed=lambda: self.release(number))
