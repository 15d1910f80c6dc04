"""Who publishes: a process whose messages are resent until the journal has confirmed them."""

from __future__ import annotations

from typing import Any

from simulated.world import Process

from local.journal.client.confirmations import Confirmations, GiveUp, Resend
from local.protocol.envelope import Envelope

LISTENERS = {  # who hears the live copy
    "query.cancel": ("tool",),
    "response.generation": ("api",),
    "query.failed": ("api",),
}


class Publisher(Process):
    """Publishes confirmed messages. The frame that it resends is the envelope's id."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.confirmations = Confirmations()
        self.sent: dict[bytes, Envelope] = {}

    def publish(self, subject: str, envelope_id: str, query_id: str, session_id: str, payload: bytes = b"") -> None:
        """Send until it is confirmed."""
        envelope = Envelope(subject, envelope_id, self.role, self.instance, 1, query_id, payload, session_id=session_id)
        self.sent[envelope_id.encode()] = envelope
        self.confirmations.sent(envelope_id, subject, envelope_id.encode(), self.world.now, 5.0)
        self.emit(envelope)

    def emit(self, envelope: Envelope) -> None:
        """To the journal and to everyone who listens."""
        self.send("journal", "envelope", envelope)
        for role in LISTENERS.get(envelope.subject, ()):
            self.send(role, "heard", envelope)

    def beat(self) -> None:
        for decision in self.confirmations.due(self.world.now):
            match decision:
                case Resend(frame):
                    self.emit(self.sent[frame])
                case GiveUp(envelope_id, _):
                    sent = self.sent[envelope_id.encode()]
                    self.publish(sent.subject, sent.id, sent.correlation_id, sent.session_id or "", sent.payload)
        super().beat()

    def on_confirm(self, instance: str, ids: list[str], recorded: dict[str, int]) -> None:
        """The journal has these on disk."""
        if instance == self.instance:
            for envelope_id in self.confirmations.confirmed(ids):
                self.confirmed(self.sent[envelope_id.encode()])

    def confirmed(self, envelope: Envelope) -> None:
        """One that was awaited."""
