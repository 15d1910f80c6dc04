"""What the journal keeps and gives back, as plain values: it knows neither the bus nor the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Entry:
    """One message: its header fields, by which it is found, and its `frame` as it was on the wire.

    Of the frame the store knows one thing: the payload is what follows the last NUL. `sent_at` is seconds since 1970.
    """

    subject: str
    envelope_id: str
    sender: str
    instance: str
    seq: int
    correlation_id: str
    session_id: str | None
    sent_at: float
    frame: bytes


class Appended(NamedTuple):
    """Where an entry lies. It is not new when its envelope id was there already: the publisher had sent it again."""

    number: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as it lies in the journal. The frame of a redacted one ends where its payload began.

    `committed_at` is in seconds since 1970.
    """

    number: int
    committed_at: float
    redacted: bool
    entry: Entry


class Header(NamedTuple):
    """As much of an entry as it takes to deliver it again some day."""

    number: int
    subject: str
    envelope_id: str
    session_id: str | None

    @property
    def lane(self) -> str:
        """The key of entries that are given in order: the session, or the entry's own id without one."""
        return self.session_id or self.envelope_id
