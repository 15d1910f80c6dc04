"""What has to outlive the journal's process of a durable consumer, and what happens to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SUSPECT_AFTER = 2
MAX_FENCED = 64
LONGEST_PAUSE = 30  # times `ack_wait` between two failures of a handler
MAX_FAILURES = 24  # which with the pauses between them take ten minutes, where `ack_wait` is a second


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """After how many seconds of silence a message is given again, and after how many deaths or failures it is not."""

    ack_wait: float = 30.0
    max_deliver: int = 3
    max_failures: int = MAX_FAILURES


class Deaths(NamedTuple):
    """How often a message was in flight when its process died, and how often of these, when it was a suspect, nobody
    else can have been the cause."""

    total: int = 0
    alone: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """A consumer needs every message of its subjects above `floor` that is not settled, and those in `again`.

    `dead_letters` gives the reasons; `again` were dead letters and are to be given again, wherever the floor is. With
    `served_by`, the instance that serves it now, a journal that was away gives that instance again what it had, and
    counts its death if it is gone; `fenced` are the last ones before it, the oldest first.
    """

    name: str = ""
    subjects: tuple[str, ...] = ()
    floor: int = 0
    acknowledged: Collection[int] = frozenset()
    deaths: Mapping[int, Deaths] = field(default_factory=dict)
    dead_letters: Mapping[int, str] = field(default_factory=dict)
    again: Collection[int] = frozenset()
    served_by: str | None = None
    fenced: Sequence[str] = ()

    @property
    def settled(self) -> frozenset[int]:
        """What the consumer does not need any more: acknowledged, or a dead letter."""
        return frozenset(self.acknowledged) | self.dead_letters.keys()


@dataclass(slots=True)
class ConsumerChanges:
    """What happened to a durable consumer: `settled` numbers are done, `dead_letters` cannot be (and why), and those
    in `again` were dead letters and are to be given again; what happens to these later takes them out of it.

    `deaths` are totals, not increments. `served_by` are the instances that took over, in that order; None is nobody.
    """

    settled: set[int] = field(default_factory=set)
    deaths: dict[int, Deaths] = field(default_factory=dict)
    dead_letters: dict[int, str] = field(default_factory=dict)
    again: set[int] = field(default_factory=set)
    served_by: list[str | None] = field(default_factory=list)

    @property
    def is_to_last(self) -> bool:
        """Whether losing it would do harm: what is settled is given once more then, and that is all."""
        return bool(self.deaths or self.dead_letters or self.again or self.served_by)

    def followed_by(self, later: ConsumerChanges) -> ConsumerChanges:
        """Both changes as one, the later ones last."""
        given_up = {number: reason for number, reason in self.dead_letters.items() if number not in later.again}
        return ConsumerChanges(
            self.settled | later.settled,
            {**self.deaths, **later.deaths},
            {**given_up, **later.dead_letters},
            (self.again | later.again) - later.settled - later.dead_letters.keys(),
            [*self.served_by, *later.served_by],
        )
