"""What goes into the journal's next commits: messages that have arrived, and what was decided about consumers."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from local.errors import MalformedFrame
from local.journal.core.consumer_state import ConsumerChanges
from local.journal.core.durable_consumer import DeadLetter, Died, Serving, Settled
from local.protocol.envelope import Envelope

MAX_BATCH = 512  # messages in one commit
MAX_WAITING = 100_000
MAX_WAITING_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """One commit. The dead letters are among the changes; their `bus.dead` has to be stored together with them."""

    envelopes: list[Envelope]
    changes: dict[str, ConsumerChanges]
    dead_letters: list[DeadLetter]

    def __bool__(self) -> bool:
        return bool(self.envelopes or self.changes)


class CommitQueue:
    """In order of arrival, bounded by number and by payload bytes. `is_urgent` is whether somebody waits for it."""

    def __init__(self, is_hurried: Callable[[str], bool]) -> None:
        """`is_hurried` knows whether somebody's answer waits until a message on a subject is on record."""
        self._is_hurried = is_hurried
        self._waiting: deque[Envelope] = deque()
        self._bytes = 0
        self._changes: defaultdict[str, ConsumerChanges] = defaultdict(ConsumerChanges)
        self._dead_letters: list[DeadLetter] = []
        self.is_urgent = False

    def __bool__(self) -> bool:
        return bool(self._waiting or self._changes or self._dead_letters)

    @property
    def waiting(self) -> int:
        """How many messages wait for their commit."""
        return len(self._waiting)

    def add(self, envelope: Envelope) -> bool:
        """A message has arrived. False if there is no room: it will be sent again.

        Raises `MalformedFrame` for a payload that is no text: on record it could be given to nobody, for ever.
        """
        if len(self._waiting) >= MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            return False
        try:
            envelope.payload.decode()
        except UnicodeDecodeError:
            raise MalformedFrame(f"{envelope.subject}: the payload is no UTF-8, so it cannot be JSON") from None
        self._waiting.append(envelope)
        self._bytes += len(envelope.payload)
        self.is_urgent = self.is_urgent or self._is_hurried(envelope.subject)
        return True

    def note(self, decision: Settled | Died | Serving | DeadLetter) -> None:
        """Something was decided about a consumer."""
        match decision:
            case Settled(consumer, number):
                self._changes[consumer].settled.add(number)
            case Died(consumer, number, deaths):
                self._changes[consumer].deaths[number] = deaths
            case Serving(consumer, instance):
                self._changes[consumer].served_by.append(instance)
            case DeadLetter():
                self._dead_letters.append(decision)
                self.is_urgent = True

    def take(self) -> Batch:
        """The oldest messages, as many as one commit may hold, and all changes."""
        envelopes = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
        self._bytes -= sum(len(envelope.payload) for envelope in envelopes)
        changes, self._changes = self._changes, defaultdict(ConsumerChanges)
        dead_letters, self._dead_letters = self._dead_letters, []
        for dead in dead_letters:
            changes[dead.consumer].dead_letters[dead.number] = dead.reason
        self.is_urgent = bool(self._waiting)
        return Batch(envelopes, dict(changes), dead_letters)

    def put_back_changes(self, batch: Batch) -> None:
        """A batch could not be stored: its messages will be sent again, its changes would be lost."""
        self._dead_letters = [*batch.dead_letters, *self._dead_letters]
        for name, earlier in batch.changes.items():
            self._changes[name] = earlier.followed_by(self._changes[name])
