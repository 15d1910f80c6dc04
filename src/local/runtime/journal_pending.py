"""What the journal has decided about its consumers and has not stored yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from local.runtime.durable_consumer import Died, Park, Serving, Settled
from local.services.journal.entry import ConsumerChanges, Deaths


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
