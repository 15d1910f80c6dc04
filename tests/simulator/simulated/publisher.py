"""Who publishes: a process with a journal client as it is, on a bus that is simulated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from simulated.clock import Clock
from simulated.world import Process

from local.bus.envelope import Envelope, decode
from local.bus.message import Message
from local.core.errors import NotConfirmed
from local.journal.client import JournalClient

LISTENERS = {  # who hears the live copy
    "query.received": ("generator",),
    "generation.token": ("api",),
    "query.cancel": ("tool",),
    "response.generation": ("api",),
    "query.failed": ("api",),
}


class Publisher(Process):
    """Carries what its journal client says, and publishes confirmed messages."""

    max_recorded = 10_000

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.subscriptions: dict[str, list[Callable[[Envelope], object]]] = {}
        clock: Any = Clock(self)
        self.journal = JournalClient(clock=lambda: clock, max_recorded=self.max_recorded)
        self.journal.open(self)

    def publish(self, subject: str, envelope_id: str, query_id: str, session_id: str, payload: bytes = b"") -> None:
        """Send until it is confirmed."""
        envelope = Envelope(subject, envelope_id, self.role, self.instance, 1, query_id, payload, session_id=session_id)
        waiting = self.journal.confirm(envelope, envelope.encode(), 5.0)
        waiting.add_done_callback(lambda done: self._ended(done, envelope))
        self.emit(envelope)

    def confirmed(self, envelope: Envelope) -> None:
        """One that was awaited."""

    def emit(self, envelope: Envelope) -> None:
        """To the journal and to everyone who listens."""
        self.send("journal", "envelope", envelope)
        for role in LISTENERS.get(envelope.subject, ()):
            self.send(role, "heard", envelope)

    # What a journal client needs of a bus

    def subscribe(self, subject: str, receive: Callable[[Envelope], object]) -> Callable[[], None]:
        self.subscriptions.setdefault(subject, []).append(receive)
        return lambda: self.subscriptions[subject].remove(receive)

    def unpack_now(self, payload: bytes) -> bytes:
        return payload

    def resend(self, frame: bytes) -> None:
        self.emit(decode(frame))

    def post(self, message: Message) -> None:
        self.send("journal", "post", message, self.instance)

    def dropped(self, gaps: Mapping[str, int]) -> None:
        """Nobody here sends more than fits."""

    def on_told(self, envelope: Envelope) -> None:
        """The journal says something."""
        for receive in self.subscriptions.get(envelope.subject, [])[:]:
            receive(envelope)

    def _ended(self, done: asyncio.Future[None], envelope: Envelope) -> None:
        if isinstance(done.exception(), NotConfirmed):
            self.publish(
                envelope.subject, envelope.id, envelope.correlation_id, envelope.session_id or "", envelope.payload
            )
        else:
            self.confirmed(envelope)
