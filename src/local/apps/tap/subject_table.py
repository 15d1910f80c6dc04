"""`local2 tap list`: which subjects are in use, by whom, and how much."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir, JsonOption
from local.apps.tap.connection import listen, print_until_stopped
from local.apps.tap.printer import Printer
from local.apps.tap.selection import Selection
from local.apps.tap.view import PlainView
from local.apps.terminal import visible
from local.bus.bus import Bus
from local.protocol.envelope import Envelope

EVERYTHING = Selection(("*",))


def list_subjects(
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to listen.")] = 5.0,
    as_json: JsonOption = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show which subjects are in use: count, rate, bytes, publishers."""
    print_until_stopped(
        PlainView(),
        lambda bus, printer, stop: count_subjects(bus, printer, stop, seconds, as_json=as_json),
        data_dir=data_dir,
        addresses=bus,
    )


async def count_subjects(
    bus: Bus, printer: Printer[str], stop: asyncio.Event, seconds: float, *, as_json: bool = False
) -> None:
    """Count for `seconds` or until `stop` is set, then print the table."""
    table = SubjectTable()
    elapsed = max(await listen(bus, EVERYTHING, table.add, printer, stop, seconds=seconds), 1e-3)
    text = table.as_json(elapsed) if as_json else "\n".join(table.as_text(elapsed))
    printer.offer(text, len(text))


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
        """The figures as one JSON object: seconds, subjects[{subject, count, rate, bytes, mean_bytes, publishers}]."""
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
