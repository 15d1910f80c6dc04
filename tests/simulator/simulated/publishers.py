"""Who publishes: a process with confirmations, and the door that clients ask through."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from simulated.world import Process

from local.bus.confirmations import Confirmations, GiveUp, Resend
from local.bus.recorded_buffer import RecordedBuffer
from local.protocol.envelope import Envelope


class Publisher(Process):
    """Publishes confirmed messages. The frame that it resends is the envelope's id."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.confirmations = Confirmations()
        self.sent: dict[bytes, Envelope] = {}

    def publish(self, subject: str, envelope_id: str, session_id: str) -> None:
        """Send until it is confirmed."""
        envelope = Envelope(subject, envelope_id, self.role, self.instance, 1, "", b"", session_id=session_id)
        self.sent[envelope_id.encode()] = envelope
        self.confirmations.sent(envelope_id, subject, envelope_id.encode(), self.world.now, 5.0)
        self.send("journal", "envelope", envelope)

    def beat(self) -> None:
        for decision in self.confirmations.due(self.world.now):
            match decision:
                case Resend(frame):
                    self.send("journal", "envelope", self.sent[frame])
                case GiveUp(envelope_id, error):
                    envelope = self.sent[envelope_id.encode()]
                    self.publish(error.subject, envelope_id, envelope.session_id or "")
        super().beat()

    def on_confirm(self, instance: str, ids: list[str], recorded: dict[str, int]) -> None:
        """The journal has these on disk."""
        if instance == self.instance:
            for envelope_id in self.confirmations.confirmed(ids):
                self.confirmed(envelope_id)

    def confirmed(self, envelope_id: str) -> None:
        """One that was awaited."""


@dataclass
class Clients:
    """The people outside. They ask the questions of a session one after the other, again if the door was shut."""

    to_ask: dict[str, list[str]]
    transitions: dict[str, set[int]] = field(default_factory=dict)  # by instance: what was published as recorded
    gaps: Counter[str] = field(default_factory=Counter)  # by instance: what was reported as dropped


class Api(Publisher):
    """Asks for the clients, and records a few transitions in a buffer that is too small."""

    role = "api"
    disk: Clients

    def start(self) -> None:
        self.recorded = RecordedBuffer(max_count=3)
        self.seq = count(1)
        self.disk.transitions[self.instance] = set()
        for session_id in self.disk.to_ask:
            self.later(self.world.random.random(), self.ask, session_id)
        self.beat()

    def ask(self, session_id: str) -> None:
        """The next question of a session."""
        if self.disk.to_ask[session_id]:
            self.publish("query.received", self.disk.to_ask[session_id][0], session_id)
            self.record()

    def confirmed(self, envelope_id: str) -> None:
        session_id = self.sent[envelope_id.encode()].session_id or ""
        to_ask = self.disk.to_ask[session_id]
        if to_ask[:1] == [envelope_id]:
            to_ask.pop(0)
        self.later(self.world.random.random() * 0.5, self.ask, session_id)

    def record(self) -> None:
        """A recorded message."""
        seq = next(self.seq)
        envelope_id = f"{self.instance}.{seq}"
        envelope = Envelope("agent.transition", envelope_id, self.role, self.instance, seq, "", b"")
        self.sent[envelope_id.encode()] = envelope
        self.disk.transitions[self.instance].add(seq)
        self.recorded.sent(envelope.subject, seq, envelope_id.encode(), self.world.now)
        self.send("journal", "envelope", envelope)

    def on_confirm(self, instance: str, ids: list[str], recorded: dict[str, int]) -> None:
        super().on_confirm(instance, ids, recorded)
        if instance == self.instance:
            self.recorded.acknowledged(recorded)

    def beat(self) -> None:
        overdue = self.recorded.due(self.world.now)
        for frame in overdue.frames:
            self.send("journal", "envelope", self.sent[frame])
        if overdue.floors:
            self.send("journal", "begins_after", self.instance, overdue.floors)
        self.disk.gaps[self.instance] += sum(overdue.gaps.values())
        super().beat()
