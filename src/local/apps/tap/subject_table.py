"""Which subjects are in use, by whom, and how much."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from local.apps.terminal import visible
from local.protocol.envelope import Envelope


@dataclass(slots=True)
class SubjectFigures:
    """One subject: messages, payload bytes, and who published them."""

    count: int = 0
    size: int = 0
    publishers: set[str] = field(default_factory=set)


class SubjectTable:
    """Counts envelopes by subject."""

    def __init__(self) -> None:
        self.figures: dict[str, SubjectFigures] = {}

    def add(self, envelope: Envelope) -> None:
        """Count one envelope."""
        figures = self.figures.setdefault(envelope.subject, SubjectFigures())
        figures.count += 1
        figures.size += len(envelope.payload)
        figures.publishers.add(envelope.sender)

    def as_text(self, seconds: float) -> Iterator[str]:
        """A table for people, the busiest subject first; `seconds` is how long was counted."""
        form = "{:<28} {:>8} {:>10} {:>12} {:>10}  {}"
        yield form.format("subject", "count", "rate/s", "bytes", "mean", "publishers")
        for subject, row in sorted(self.figures.items(), key=lambda entry: (-entry[1].count, entry[0])):
            rate, mean = f"{row.count / seconds:.1f}", f"{row.size / row.count:.0f}"
            publishers = visible(", ".join(sorted(row.publishers)))
            yield form.format(subject, row.count, rate, row.size, mean, publishers)

    def as_json(self, seconds: float) -> str:
        """The same as one JSON object: seconds, subjects[{subject, count, rate, bytes, mean_bytes, publishers}]."""
        subjects = [
            {
                "subject": subject,
                "count": row.count,
                "rate": row.count / seconds,
                "bytes": row.size,
                "mean_bytes": row.size / row.count,
                "publishers": sorted(row.publishers),
            }
            for subject, row in sorted(self.figures.items())
        ]
        return json.dumps({"seconds": round(seconds, 3), "subjects": subjects})
