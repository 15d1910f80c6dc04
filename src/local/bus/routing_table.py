"""Who gets what of what arrives."""

from __future__ import annotations

from collections.abc import Callable

from local.protocol.bus_messages import BusProbe
from local.protocol.envelope import Envelope
from local.protocol.messages import ParticipantStatus
from local.protocol.subjects import covers

Receive = Callable[[Envelope], object]

MAX_SUBJECTS = 4096


class RoutingTable:
    """Who gets what: subscriptions by subject or family; the receivers of each subject seen are remembered."""

    def __init__(self) -> None:
        self._subscriptions: list[tuple[str, Receive, bool]] = []
        self._ended: set[str] = set()
        self._found: dict[str, tuple[Receive, ...]] = {}

    def add(self, subject: str, receive: Receive, *, repeats: bool = False) -> Callable[[], bool]:
        """Subscribe. Returns the function that undoes it, which is true the first time."""
        entry = (subject, receive, repeats)
        self._subscriptions.append(entry)
        self._found.clear()

        def end() -> bool:
            if entry not in self._subscriptions:
                return False
            self._subscriptions.remove(entry)
            self._ended.add(subject)
            self._found.clear()
            return True

        return end

    def wanted(self) -> list[str]:
        """Every subject and family that somebody has subscribed to, each once."""
        subjects = {subject for subject, receive, _ in self._subscriptions if not _is_own(subject, receive)}
        return sorted(subjects)

    def find(self, subject: str) -> tuple[Receive, ...]:
        """Everybody who wants a subject."""
        found = self._found.get(subject)
        if found is None:
            if len(self._found) >= MAX_SUBJECTS:
                self._found.clear()
            found = tuple(receive for known, receive, _ in self._subscriptions if covers(known, subject))
            self._found[subject] = found
        return found

    def find_repeats(self, subject: str) -> list[Receive]:
        """Everybody who wants to have a subject's messages even if they have arrived before."""
        return [receive for known, receive, repeats in self._subscriptions if repeats and covers(known, subject)]

    def was_wanted(self, subject: str) -> bool:
        """Whether a subscription that has ended covered it: what was on its way then still arrives."""
        return any(covers(known, subject) for known in self._ended)


def ignored(envelope: Envelope) -> None:
    """For what the bus itself wants to hear."""


def _is_own(subject: str, receive: Receive) -> bool:
    return receive is ignored and subject.startswith((BusProbe.subject, ParticipantStatus.subject))
