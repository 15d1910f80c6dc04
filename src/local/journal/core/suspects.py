"""What a consumer's processes may have died of, and how it is found out who it was."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

ALONE_SECONDS = 2.0


@dataclass(slots=True)
class Suspect:
    """Deaths with this message in hand, and no other suspect: those that nobody else can have caused, and for each of
    the others the messages beside it that may have, as none of them has been seen to end."""

    proven: int
    unproven: list[set[int]] = field(default_factory=list)

    @property
    def deaths(self) -> int:
        """How many there are of both."""
        return self.proven + len(self.unproven)


class Suspects:
    """Messages of one consumer that were in hand at several deaths. They run one after the other, and everybody else
    beside: the next one when the one before has ended, or has done no harm for `ALONE_SECONDS`, as it may be waiting
    for what the next one does.

    When the process dies, that is laid on the suspect that was begun last; each message that was beside is a possible
    culprit until it is settled: one that ends is none, and one that is given up has been it. A suspect whose deaths
    would do to give it up waits until that is known. Times are seconds of one monotonic clock.
    """

    def __init__(self, max_deaths: int) -> None:
        self.max_deaths = max_deaths
        self.known: dict[int, Suspect] = {}  # by number
        self.ready: set[int] = set()
        self._running: dict[int, float] = {}  # since when, the latest last

    def put(self, number: int, proven: int) -> None:
        """A suspect may be given; so many deaths are proven, as far as that is stored."""
        self.known.setdefault(number, Suspect(proven))
        self.ready.add(number)

    @property
    def next_due(self) -> float | None:
        """When the next suspect may run; None if none waits."""
        return self._since + ALONE_SECONDS if self._running and self._able() else None

    def take(self, now: float) -> int | None:
        """The suspect that runs next, that with the fewest deaths and of these the oldest; None if another one has
        begun lately, or none may."""
        able = self._able()
        if not able or (self._running and now < self._since + ALONE_SECONDS):
            return None
        number = min(able, key=lambda number: (self.known[number].deaths, number))
        self.ready.remove(number)
        self._running[number] = now
        return number

    @property
    def _since(self) -> float:
        return next(reversed(self._running.values()))

    def _able(self) -> list[int]:
        return [number for number in self.ready if self.known[number].deaths < self.max_deaths]

    def stopped(self, number: int) -> None:
        """A message is in nobody's hands any more."""
        self._running.pop(number, None)

    def died(self, in_flight: Collection[int]) -> int | None:
        """The process has died with these messages in hand: the suspect of which that is proven to be a death."""
        if not self._running:
            return None
        number = next(reversed(self._running))
        if beside := set(in_flight) - {number}:
            self.known[number].unproven.append(beside)
            return None
        self.known[number].proven += 1
        return number

    def handed_back(self) -> None:
        """Nothing is in anybody's hands, and nothing is ready before it has been `put` again."""
        self._running.clear()
        self.ready.clear()

    def settled(self, ended: int, *, is_culprit: bool) -> list[int]:
        """A message has ended, or was given up as a culprit: the suspects of which that proves a death, once for each
        such death."""
        self.known.pop(ended, None)
        self.ready.discard(ended)
        self.stopped(ended)
        proven = []
        for number, suspect in self.known.items():
            concerned = [beside for beside in suspect.unproven if ended in beside]
            for beside in concerned:
                beside.remove(ended)
                if is_culprit or not beside:
                    suspect.unproven.remove(beside)
                    proven += [] if is_culprit else [number]
            suspect.proven += proven.count(number)
        return proven
