"""The frontend that clients ask through, and what they know in the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from simulated.journal import RECORDED
from simulated.publisher import Publisher

from local.bus.envelope import Envelope


@dataclass
class Clients:
    """The people outside. They ask the questions of a session one after the other, again if the frontend was shut, and
    read the outcome of each as often as it comes."""

    to_ask: dict[str, list[str]]  # by session
    accepted: set[str] = field(default_factory=set)
    outcomes: defaultdict[str, set[tuple[str, bytes]]] = field(default_factory=lambda: defaultdict(set))  # by query
    transitions: dict[str, set[int]] = field(default_factory=dict)  # by instance: what was published as recorded
    too_early: list[str] = field(
        default_factory=list
    )  # queries of which something was heard before they were on record
    gaps: Counter[str] = field(default_factory=Counter)  # by instance: what was reported as dropped


class Api(Publisher):
    """Asks for the clients, cancels for some, and records a few transitions in a buffer that is too small."""

    role = "api"
    max_recorded = 3
    disk: Clients

    def start(self) -> None:
        self.seq = count(1)
        self.disk.transitions[self.instance] = set()
        for session_id in self.disk.to_ask:
            self.later(self.random.random(), self.ask, session_id)
        self.beat()

    def ask(self, session_id: str) -> None:
        """The next question of a session; some are cancelled, perhaps before anybody has got them."""
        if self.disk.to_ask[session_id]:
            query = self.disk.to_ask[session_id][0]
            self.publish("query.received", query, query, session_id)
            self.record()
            if self.random.random() < 0.2:
                self.later(self.random.random() ** 2 * 3, self.cancel, query, session_id)

    def cancel(self, query: str, session_id: str) -> None:
        """Somebody wants no answer any more."""
        self.publish("query.cancel", f"cancel {query}", query, session_id)

    def confirmed(self, envelope: Envelope) -> None:
        if envelope.subject == "query.received":
            session_id = envelope.session_id or ""
            self.disk.accepted.add(envelope.id)
            if self.disk.to_ask[session_id][:1] == [envelope.id]:
                self.disk.to_ask[session_id].pop(0)
            self.later(self.random.random() ** 2 * 0.5, self.ask, session_id)

    def on_heard(self, envelope: Envelope) -> None:
        """How a query ended, live or from the record; or what the model says of it, of which nothing is kept."""
        if envelope.subject == "generation.token":
            if envelope.correlation_id not in self.world.disks["journal"].numbers:
                self.disk.too_early.append(envelope.correlation_id)
            return
        self.disk.outcomes[envelope.correlation_id].add((envelope.subject, envelope.payload))

    def record(self) -> None:
        """A recorded message."""
        seq = next(self.seq)
        envelope = Envelope(RECORDED, f"{self.instance}.{seq}", self.role, self.instance, seq, "", b"")
        self.disk.transitions[self.instance].add(seq)
        self.journal.record(envelope, envelope.encode())
        self.emit(envelope)

    def dropped(self, gaps: Mapping[str, int]) -> None:
        self.disk.gaps[self.instance] += sum(gaps.values())

    def beat(self) -> None:
        for query in sorted(self.disk.accepted - self.disk.outcomes.keys()):
            self.send("journal", "read", query)
        super().beat()
