"""What a consumer's processes may have died of, and how it is found out who it was."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


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
    """Messages of one consumer that were in hand at several deaths. They run one at a time, and everybody else beside.

    When the process dies then, each message that was beside is a possible culprit until it is settled: one that ends is
    none, and one that is given up has been it. A suspect whose deaths would do to give it up waits until that is known.
    """

    def __init__(self, max_deaths: int) -> None:
        self.max_deaths = max_deaths
        self.known: dict[int, Suspect] = {}  # by number
        self.ready: set[int] = set()
        self._running: int | None = None

    def put(self, number: int, proven: int) -> None:
        """A suspect may be given; so many deaths are proven, as far as that is stored."""
        self.known.setdefault(number, Suspect(proven))
        self.ready.add(number)

    def take(self) -> int | None:
        """The suspect that runs next, that with the fewest deaths and of these the oldest; None if another one runs, or
        none may."""
        able = [number for number in self.ready if self.known[number].deaths < self.max_deaths]
        if self._running is not None or not able:
            return None
        self._running = min(able, key=lambda number: (self.known[number].deaths, number))
        self.ready.remove(self._running)
        return self._running

    def stopped(self, number: int) -> None:
        """A message is in nobody's hands any more."""
        if self._running == number:
            self._running = None

    def died(self, in_flight: Collection[int]) -> int | None:
        """The process has died with these messages in hand: the suspect of which that is proven to be a death."""
        number = self._running
        if number is None:
            return None
        if beside := set(in_flight) - {number}:
            self.known[number].unproven.append(beside)
            return None
        self.known[number].proven += 1
        return number

    def handed_back(self) -> None:
        """Nothing is in anybody's hands, and nothing is ready before it has been `put` again."""
        self._running = None
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
