"""What one bus has missed, told as messages: whose it was, on which subject, how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from local.bus.gaps import GapTracker
from local.protocol.envelope import Envelope
from local.protocol.messages import BusGap

MAX_SENDERS = 4096


class Losses:
    """Gathers what `gaps` finds and what consumers had no room for. Counts `missed` and `overflow`."""

    def __init__(self, observer: str, counters: Counter[str]) -> None:
        self.gaps = GapTracker(self._note)
        self._observer, self._counters = observer, counters
        self._senders: dict[str, str] = {}  # by instance, to name them
        self._unreported: Counter[tuple[str, str]] = Counter()

    def observe(self, envelope: Envelope) -> bool:
        """Note an arrival; False for one that was seen already."""
        if envelope.instance not in self._senders:
            if len(self._senders) >= MAX_SENDERS:
                self._senders.clear()
            self._senders[envelope.instance] = envelope.sender
        return self.gaps.observe(envelope.instance, envelope.subject, envelope.seq)

    def overflowed(self, envelope: Envelope) -> None:
        """A consumer had no room for an envelope."""
        self._counters["overflow"] += 1
        self._note(envelope.instance, envelope.subject, 1)

    def dropped(self, instance: str, missed: Mapping[str, int]) -> None:
        """An instance has given up, by subject, so many recorded messages that the journal may not have."""
        for subject, count in missed.items():
            self._note(instance, subject, count)

    def take(self) -> list[BusGap]:
        """What was noticed since the last call."""
        gaps = [
            BusGap(
                observer=self._observer,
                sender=self._senders.get(instance, "unknown"),
                instance=instance,
                missed_subject=subject,
                missed=missed,
            )
            for (instance, subject), missed in self._unreported.items()
        ]
        self._unreported.clear()
        return gaps

    def _note(self, instance: str, subject: str, missed: int) -> None:
        self._counters["missed"] += missed
        self._unreported[instance, subject] += missed
