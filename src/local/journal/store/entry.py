"""What the journal keeps and gives back, as plain values: it knows neither the bus nor the protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
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


class Deaths(NamedTuple):
    """How often a consumer's process died with a message in hand, and how often it held nothing else then."""

    total: int
    alone: int


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """What is known of a durable consumer: it needs every entry of its subjects above `floor` that is not settled.

    A subject that ends in a dot stands for its family, any other for itself, no subjects at all for everything.
    `parked` gives the reasons. `served_by` is the instance that serves it now, `fenced` are the last ones before that,
    the oldest first.
    """

    name: str
    subjects: tuple[str, ...]
    floor: int
    acknowledged: frozenset[int] = frozenset()
    deaths: dict[int, Deaths] = field(default_factory=dict)
    parked: dict[int, str] = field(default_factory=dict)
    served_by: str | None = None
    fenced: tuple[str, ...] = ()

    @property
    def settled(self) -> frozenset[int]:
        """What it does not need any more: acknowledged or parked."""
        return self.acknowledged | self.parked.keys()


@dataclass(slots=True)
class ConsumerChanges:
    """What happened to a durable consumer: `settled` numbers were dealt with, `parked` ones cannot be (and why).

    `deaths` are totals, not increments. `served_by` are the instances that took over, in that order; None is nobody.
    """

    settled: set[int] = field(default_factory=set)
    deaths: dict[int, Deaths] = field(default_factory=dict)
    parked: dict[int, str] = field(default_factory=dict)
    served_by: list[str | None] = field(default_factory=list)

    def followed_by(self, later: ConsumerChanges) -> ConsumerChanges:
        """These and then those."""
        return ConsumerChanges(
            self.settled | later.settled,
            {**self.deaths, **later.deaths},
            {**self.parked, **later.parked},
            [*self.served_by, *later.served_by],
        )


class Header(NamedTuple):
    """As much of an entry as it takes to deliver it again some day."""

    number: int
    subject: str
    envelope_id: str
    session_id: str | None
