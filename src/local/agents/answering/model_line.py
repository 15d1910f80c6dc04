"""The line for one model server: who may call it, who has to stop, who waits. Decisions only; times are passed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SILENT_SECONDS = 2.5  # a claim is repeated twice a second


@dataclass(slots=True)
class _Claimant:
    heard_at: float
    turns: int
    leases: frozenset[str]


class ModelLine:
    """A server that serves `slots` calls at once. Users' turns come first; what they leave is for leases.

    A lease holds a place from the moment it is granted until its owner says that it does not run any more: being
    revoked frees nothing yet. The same claims give the same line, whoever was heard first after a restart.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._claimants: dict[str, _Claimant] = {}
        self._holding: list[str] = []  # in the order in which they were granted
        self._waiting: list[str] = []  # in the order in which they came; one that was revoked goes to the head

    def claimed(self, instance: str, turns: int, running: Sequence[str], waiting: Sequence[str], now: float) -> None:
        """A process says all that it wants: `turns` users' turns, leases that run, leases that wait."""
        before = self._claimants.get(instance)
        self._remove((before.leases if before else frozenset()) - {*running, *waiting})
        self._claimants[instance] = _Claimant(now, turns, frozenset((*running, *waiting)))
        for lease in running:  # perhaps unknown here: it began without an arbiter, or with one that has died
            if lease not in self._holding:
                self._remove({lease})
                self._holding.insert(0, lease)
        revoked = self.revoked
        for lease in waiting:
            if lease in revoked:  # it has stopped
                self._holding.remove(lease)
                self._waiting.insert(0, lease)
            elif lease not in self._holding and lease not in self._waiting:
                self._waiting.append(lease)
        self._forget_if_empty(instance)
        self._grant()

    def forget_silent(self, now: float) -> None:
        """Whoever was not heard for 2.5 s has gone, with all that it had."""
        silent = [name for name, claimant in self._claimants.items() if now - claimant.heard_at > SILENT_SECONDS]
        for instance in silent:
            self._remove(self._claimants.pop(instance).leases)
        self._grant()

    @property
    def is_wanted(self) -> bool:
        """Whether anybody uses the server, or waits for it."""
        return bool(self._claimants)

    @property
    def turns(self) -> int:
        """Users' turns under way."""
        return sum(claimant.turns for claimant in self._claimants.values())

    @property
    def granted(self) -> tuple[str, ...]:
        """Leases that may run."""
        return tuple(self._holding[: self._places])

    @property
    def revoked(self) -> tuple[str, ...]:
        """Leases that have to stop, the youngest: their places are needed."""
        return tuple(self._holding[self._places :])

    @property
    def waiting(self) -> tuple[str, ...]:
        """Leases that wait, the next one first."""
        return tuple(self._waiting)

    @property
    def _places(self) -> int:
        return max(0, self.slots - self.turns)

    def _grant(self) -> None:
        while self._waiting and len(self._holding) < self._places:
            self._holding.append(self._waiting.pop(0))

    def _remove(self, leases: frozenset[str] | set[str]) -> None:
        self._holding = [lease for lease in self._holding if lease not in leases]
        self._waiting = [lease for lease in self._waiting if lease not in leases]

    def _forget_if_empty(self, instance: str) -> None:
        claimant = self._claimants[instance]
        if not claimant.turns and not claimant.leases:
            del self._claimants[instance]
