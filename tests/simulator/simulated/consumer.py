"""A process that serves durable consumers of the journal, and an observer that serves one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from simulated.publisher import Publisher

from local.bus.bus import Consumer as Hold
from local.bus.bus import Delivered
from local.bus.envelope import Envelope


class Consumer(Publisher):
    """Serves a consumer of its name, and perhaps others; the first thing that it does is to say so."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.holds: dict[str, Hold] = {}
        self.serve(self.role, self.receive)

    def serve(self, name: str, receive: Callable[[int, Envelope], None]) -> None:
        """Serve a durable consumer."""

        def given(delivered: Delivered) -> None:
            receive(delivered.number, delivered.envelope)

        self.holds[name] = self.journal.consume(
            name,
            ["its.own"],
            given,
            self.replaced,
            max_in_flight=6,
            lane_width=3 if name == "generator" else 1,
            linger_ms=200 if name == "observer" else 0,
        )

    def start(self) -> None:
        self.disk.owner = self.instance
        for hold in self.holds.values():
            hold.start()
        self.beat()

    def replaced(self) -> None:
        """Another process has taken its place."""
        self.world.kill(self)

    def receive(self, number: int, envelope: Envelope) -> None:
        """The work; `ack` or `release` ends it."""
        raise NotImplementedError

    def ack(self, number: int, name: str = "") -> None:
        """Say that it is done."""
        self.holds[name or self.role].acknowledge(number)

    def release(self, number: int, name: str = "") -> None:
        """It cannot be done now; the journal gives it again."""
        self.holds[name or self.role].release(number)


@dataclass
class Memory:
    """An observer's database: the queries whose answers it has, in the order in which they came."""

    owner: str = ""
    answers: list[str] = field(default_factory=list)
    stumbles: int = 0

    def store(self, query_id: str) -> None:
        """Remember an answer, unless it is known."""
        if query_id not in self.answers:
            self.answers.append(query_id)


class Observer(Consumer):
    """Remembers each answer, but for a bug in the first few seconds."""

    role = "observer"
    disk: Memory

    def receive(self, number: int, envelope: Envelope) -> None:
        has_bug = not self.world.is_healthy and self.random.random() < 0.4
        work = self.stumble if has_bug else self.remember
        self.later(self.random.random() ** 4 * 2, work, number, envelope.correlation_id)

    def stumble(self, number: int, query_id: str) -> None:
        """A bug, which somebody mends in time."""
        self.disk.stumbles += 1
        self.holds[self.role].fail(number, "a bug")

    def remember(self, number: int, query_id: str) -> None:
        """In one transaction, then the acknowledgement."""
        self.write(self.disk.store, query_id, then=lambda: self.ack(number), failed=lambda: self.release(number))
