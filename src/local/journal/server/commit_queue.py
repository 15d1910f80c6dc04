"""What goes into the journal's next commits: messages that have arrived, and what was decided about consumers."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from local.errors import MalformedFrame
from local.journal.core.durable_consumer import Died, Park, Serving, Settled
from local.journal.store.entry import ConsumerChanges, Deaths, Entry
from local.protocol.envelope import Envelope

MAX_BATCH = 512  # messages in one commit
MAX_WAITING = 100_000
MAX_WAITING_BYTES = 64 * 1024 * 1024


class JournalArrivals:
    """In order of arrival, bounded by number and by payload bytes."""

    def __init__(self) -> None:
        self._waiting: deque[Envelope] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, envelope: Envelope) -> bool:
        """False if there is no room: it will be sent again.

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
        return True

    def take_batch(self) -> list[Envelope]:
        """The oldest, as many as one commit may hold."""
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
        self._bytes -= sum(len(envelope.payload) for envelope in batch)
        return batch


def entry_of(envelope: Envelope) -> Entry:
    """An envelope as it goes on record."""
    return Entry(
        subject=envelope.subject,
        envelope_id=envelope.id,
        sender=envelope.sender,
        instance=envelope.instance,
        seq=envelope.seq,
        correlation_id=envelope.correlation_id,
        session_id=envelope.session_id,
        sent_at=envelope.sent_at or time.time(),
        frame=envelope.encode(),
    )


class PendingChanges:
    """It goes into the next commit. A `Park` becomes a change together with the letter that tells of it."""

    def __init__(self) -> None:
        self._changes: defaultdict[str, ConsumerChanges] = defaultdict(ConsumerChanges)
        self._parked: list[Park] = []

    def __bool__(self) -> bool:
        return bool(self._changes or self._parked)

    def note(self, decision: Settled | Died | Serving | Park) -> None:
        """One more."""
        match decision:
            case Settled(consumer, number):
                self._changes[consumer].settled.add(number)
            case Died(consumer, number, deaths):
                self._changes[consumer].deaths[number] = Deaths(*deaths)
            case Serving(consumer, instance):
                self._changes[consumer].served_by.append(instance)
            case Park():
                self._parked.append(decision)

    def take(self) -> tuple[dict[str, ConsumerChanges], list[Park]]:
        """All there is, to be stored now; what was parked is among the changes, too."""
        changes, self._changes = self._changes, defaultdict(ConsumerChanges)
        parked, self._parked = self._parked, []
        for park in parked:
            changes[park.consumer].parked[park.number] = park.reason
        return changes, parked

    def put_back(self, changes: Mapping[str, ConsumerChanges], parked: Sequence[Park]) -> None:
        """It could not be stored."""
        self._parked = [*parked, *self._parked]
        for name, earlier in changes.items():
            self._changes[name] = earlier.followed_by(self._changes[name])
