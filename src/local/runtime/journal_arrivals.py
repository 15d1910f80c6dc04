"""What has arrived at the journal and is not on the disk yet."""

from __future__ import annotations

import time
from collections import deque

from local.errors import MalformedFrame
from local.protocol.envelope import Envelope
from local.services.journal.entry import Entry

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
