"""What a bus has missed, in words."""

from __future__ import annotations

from collections import Counter

from local.apps.tap.selection import Selection
from local.bus.bus import Bus


class Losses:
    """Reads the losses that concern a selection from a bus."""

    def __init__(self, bus: Bus, selection: Selection) -> None:
        self._bus, self._selection = bus, selection
        self._malformed = 0

    def take(self) -> Counter[str]:
        """The losses since the last call: "of <subject> from <sender>", and how many."""
        losses: Counter[str] = Counter()
        for gap in self._bus.take_gaps():
            if self._selection.wants_subject(gap.missed_subject):
                losses[f"of {gap.missed_subject} from {gap.sender}"] += gap.missed
        refused = self._bus.counters["malformed"] - self._malformed
        if refused:
            losses["that were no messages of this protocol"] = refused
            self._malformed += refused
        return losses
