"""The publisher's side of recorded messages: kept until the journal's cumulative acknowledgement, bounded."""

from __future__ import annotations

import bisect
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

PAUSE = 0.5
WINDOW = 256


@dataclass(slots=True)
class _Kept:
    frame: bytes
    sent_at: float


@dataclass(frozen=True, slots=True)
class Overdue:
    """What silence asks for: frames to resend, what to tell the journal, what to report as `bus.gap`."""

    frames: list[bytes] = field(default_factory=list)
    floors: dict[str, int] = field(default_factory=dict)  # by subject: nothing up to this seq will be sent again
    gaps: dict[str, int] = field(default_factory=dict)  # by subject: messages dropped, which may be missing


class RecordedBuffer:
    """The oldest are dropped first when there are too many. Times are seconds of any monotonic clock.

    At most `WINDOW` frames, the oldest, are on their way again at any time: each acknowledgement makes the next due.
    """

    def __init__(self, max_count: int = 10_000, max_bytes: int = 16 * 1024 * 1024) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._kept: OrderedDict[tuple[str, int], _Kept] = OrderedDict()  # by (subject, seq), oldest first
        self._seqs: dict[str, deque[int]] = {}
        self._bytes = 0
        self._gaps: Counter[str] = Counter()
        self._gaps_due = 0.0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def next_due(self) -> float | None:
        """When `due` has something to do."""
        times = [kept.sent_at + PAUSE for kept in islice(self._kept.values(), WINDOW)]
        return min([*times, self._gaps_due] if self._gaps else times, default=None)

    def sent(self, subject: str, seq: int, frame: bytes, now: float) -> None:
        """A message is on its way."""
        self._kept[subject, seq] = _Kept(frame, now)
        bisect.insort(self._seqs.setdefault(subject, deque()), seq)  # one that waited for room may be told of late
        self._bytes += len(frame)
        while len(self._kept) > 1 and (len(self._kept) > self._max_count or self._bytes > self._max_bytes):
            self._drop_oldest(now)

    def acknowledged(self, recorded: Mapping[str, int]) -> None:
        """The journal has everything up to these, by subject."""
        for subject, upto in recorded.items():
            seqs = self._seqs.get(subject)
            while seqs and seqs[0] <= upto:
                self._remove(subject, seqs[0])

    def due(self, now: float) -> Overdue:
        """What the journal has been silent about for a pause of 0.5 s."""
        overdue = Overdue()
        for (subject, _), kept in islice(self._kept.items(), WINDOW):
            if kept.sent_at + PAUSE <= now:
                kept.sent_at = now
                overdue.frames.append(kept.frame)
                overdue.floors[subject] = self._seqs[subject][0] - 1
        if self._gaps and self._gaps_due <= now:
            overdue.gaps.update(self._gaps)
            self._gaps.clear()
        return overdue

    def _drop_oldest(self, now: float) -> None:
        subject, seq = next(iter(self._kept))
        self._remove(subject, seq)
        if not self._gaps:
            self._gaps_due = now + PAUSE  # one report for all that are dropped in the meantime
        self._gaps[subject] += 1

    def _remove(self, subject: str, seq: int) -> None:
        self._bytes -= len(self._kept.pop((subject, seq)).frame)
        seqs = self._seqs[subject]
        seqs.remove(seq)
        if not seqs:
            del self._seqs[subject]
