"""The publisher's side of confirmed messages: which await their commit, what to resend when, when to give up."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from local.errors import NotConfirmed

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Resend:
    """Send the same frame once more."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Raise `error` to whoever waits for this message."""

    envelope_id: str
    error: NotConfirmed


@dataclass(slots=True)
class _Pending:
    subject: str
    frame: bytes
    seconds: float
    deadline: float
    pause: float
    due: float


class Confirmations:
    """Resends the same frame after 0.1 s, doubling up to 1 s, until the journal names its id or time is up.

    Times are seconds of any monotonic clock; every event costs O(log n) of what is pending.
    """

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}
        self._timers: list[tuple[float, str]] = []  # heap; stale where it is not the `due` of a pending message

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def next_due(self) -> float | None:
        """When `due` has something to do."""
        while self._timers and not self._is_set(*self._timers[0]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def sent(self, envelope_id: str, subject: str, frame: bytes, now: float, seconds: float) -> None:
        """A message is on its way and may take `seconds`."""
        pending = _Pending(subject, frame, seconds, now + seconds, FIRST_PAUSE, now)
        self._pending[envelope_id] = pending
        self._wind(envelope_id, pending, now)

    def confirmed(self, ids: Iterable[str]) -> list[str]:
        """The journal named these. Returns those that were awaited here."""
        return [envelope_id for envelope_id in ids if self._pending.pop(envelope_id, None) is not None]

    def forget(self, envelope_id: str) -> None:
        """Nobody waits for this one any more."""
        self._pending.pop(envelope_id, None)

    def journal_is_back(self, now: float) -> None:
        """A new process of the journal: what the old one had not confirmed is due at once, pauses start anew."""
        for envelope_id, pending in self._pending.items():
            pending.pause, pending.due = FIRST_PAUSE, now
            heapq.heappush(self._timers, (now, envelope_id))

    def due(self, now: float) -> list[Resend | GiveUp]:
        """What silence asks for now."""
        decisions: list[Resend | GiveUp] = []
        while (due := self.next_due) is not None and due <= now:
            _, envelope_id = heapq.heappop(self._timers)
            pending = self._pending[envelope_id]
            if now < pending.deadline:
                decisions.append(Resend(pending.frame))
                self._wind(envelope_id, pending, now)
            else:
                del self._pending[envelope_id]
                decisions.append(GiveUp(envelope_id, NotConfirmed(pending.subject, pending.seconds)))
        return decisions

    def _wind(self, envelope_id: str, pending: _Pending, now: float) -> None:
        pending.due = min(now + pending.pause, pending.deadline)
        pending.pause = min(2 * pending.pause, LONGEST_PAUSE)
        heapq.heappush(self._timers, (pending.due, envelope_id))

    def _is_set(self, due: float, envelope_id: str) -> bool:
        pending = self._pending.get(envelope_id)
        return pending is not None and pending.due == due
