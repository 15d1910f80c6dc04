"""The statistics of the bus: `local2 tap hz`, `bw`, `delay`, `graph`, `info` and `list`."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.filter import Filter
from local.bus.message import PARTICIPANT_STATUS, Message, covers, delivery_of, is_family, is_subject, message_classes
from local.bus.security import Declarations
from local.bus.statistics import WINDOW, ArrivalRate, BusGraph, Delays
from local.cli.main import BusOption, DataDir, EndSeconds, JsonOption, sized, visible
from local.cli.tap import PlainView, Printer, listen, print_until_stopped, report_until_stopped
from local.core.data_dir import SENDERS
from local.core.environment import data_dir as find_data_dir
from local.core.errors import LocalError

# `local2 tap hz`: the rate and regularity of messages.


def hz(
    subject: Annotated[str, typer.Argument(help="A subject, family or pattern.")],
    window: Annotated[int, typer.Option(min=1, help="Number of intervals in the window.")] = WINDOW,
    seconds: EndSeconds = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show the rate of messages on a subject and its regularity. Arrivals are timed here, not by the senders' clocks.

    Example: local2 tap hz generation.token
    """
    rate = ArrivalRate(window)
    report_until_stopped(
        subject,
        lambda _: rate.add(time.monotonic()),
        rate.report,
        seconds=seconds,
        data_dir=data_dir,
        addresses=bus,
    )


# `local2 tap bw`: the bytes of messages in a second.


def bw(
    subject: Annotated[str, typer.Argument(help="A subject, family or pattern.")] = "*",
    window: Annotated[int, typer.Option(min=1, help="Number of messages in the window.")] = WINDOW,
    seconds: EndSeconds = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show the bytes of payload per second, and the sizes of messages.

    Example: local2 tap bw generation. --seconds 10
    """
    bandwidth = Bandwidth(window)
    report_until_stopped(
        subject,
        lambda envelope: bandwidth.add(time.monotonic(), len(envelope.payload)),
        lambda: bandwidth.report(time.monotonic()),
        seconds=seconds,
        data_dir=data_dir,
        addresses=bus,
    )


class Bandwidth:
    """The bytes a second, from the times in seconds and the sizes in bytes of the last `window` messages."""

    def __init__(self, window: int = WINDOW) -> None:
        self._messages: deque[tuple[float, int]] = deque(maxlen=window)
        self._count = self._reported = 0

    def add(self, now: float, size: int) -> None:
        """Note one message."""
        self._messages.append((now, size))
        self._count += 1

    def report(self, now: float) -> str:
        """Bytes a second from the first message of the window until `now`, and the sizes; or that nothing new came."""
        new, self._reported = self._count - self._reported, self._count
        if new == 0:
            return "no new messages"
        sizes = [size for _, size in self._messages]
        elapsed = now - self._messages[0][0]
        rate = f"{sized(round(sum(sizes) / elapsed))}/s" if elapsed > 0 else "inf"
        mean = sized(round(sum(sizes) / len(sizes)))
        return f"average: {rate}  mean: {mean} min: {sized(min(sizes))} max: {sized(max(sizes))} window: {len(sizes)}"


LISTEN_SECONDS = 6.0  # every participant publishes its status every five seconds
Text = Callable[["BusGraph"], str]

Seconds = Annotated[
    float, typer.Option(min=0.1, help="Seconds to listen; every participant sends its status every 5 s.")
]


def graph(
    seconds: Seconds = LISTEN_SECONDS,
    all_subjects: Annotated[
        bool, typer.Option("--all", help="Include status beats, journal traffic and leases.")
    ] = False,
    dot: Annotated[bool, typer.Option("--dot", help="For Graphviz.")] = False,
    as_json: JsonOption = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show which participant sends which subjects to whom, from declarations and subscriptions.

    Example: local2 tap graph --dot | dot -Tsvg -o bus.svg
    """
    if dot and as_json:
        raise typer.BadParameter("--dot and --json exclude each other; give one of them")
    show: Text = BusGraph.as_dot if dot else BusGraph.as_json if as_json else BusGraph.as_text
    draw_and_print(lambda found: show(found if all_subjects else found.without_upkeep()), seconds, data_dir, bus)


def draw_and_print(show: Text, seconds: float, data_dir: Path | None, addresses: str | None) -> None:
    """Listen, then print the output of `show` for the graph. Raises `LocalError`: no such system or bus."""
    folder = find_data_dir(data_dir) / SENDERS

    async def work(bus: Bus, printer: Printer[str], stop: asyncio.Event) -> None:
        drawn = BusGraph(Declarations(folder).read)
        await listen(bus, Filter.of("subject", [PARTICIPANT_STATUS]), drawn.receive, printer, stop, seconds=seconds)
        text = show(drawn)
        printer.offer(text, len(text))

    print_until_stopped(PlainView(), work, data_dir=data_dir, addresses=addresses)


# `local2 tap delay`: how long messages are on their way.


def delay(
    subject: Annotated[str, typer.Argument(help="A subject, family or pattern.")] = "*",
    window: Annotated[int, typer.Option(min=1, help="Number of messages in the window.")] = WINDOW,
    seconds: EndSeconds = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show the delay of messages to this tap, from the sender's clock to this machine's.

    Example: local2 tap delay participant.status
    """
    delays = Delays(window)
    report_until_stopped(
        subject,
        lambda envelope: delays.add(time.time() - envelope.sent_at),
        delays.report,
        seconds=seconds,
        data_dir=data_dir,
        addresses=bus,
    )


# `local2 tap info`: the description of a subject, with its publishers and receivers.


class UnknownSubject(LocalError):
    """The error for a text that is neither a subject nor a family."""

    kind = "bad_subject"


def info(
    subject: Annotated[str, typer.Argument(help="A subject (query.received) or a family (tool.request.).")],
    seconds: Seconds = LISTEN_SECONDS,
    as_json: JsonOption = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show a subject's message, its delivery class, its fields, and its present senders and receivers.

    Example: local2 tap info query.received
    """
    if not is_subject(subject.removesuffix(".")):
        raise UnknownSubject(f"{subject!r}: expected a subject (query.received) or a family (tool.request.)")
    draw_and_print(lambda drawn: SubjectInfo(subject, drawn).text(as_json=as_json), seconds, data_dir, bus)


class SubjectInfo:
    """The description of one subject or family, by the protocol and the participants."""

    def __init__(self, subject: str, drawn: BusGraph) -> None:
        self._subject = subject
        self._kinds = [
            kind for kind in message_classes() if covers(kind.subject, subject) or covers(subject, kind.subject)
        ]
        members = sorted(drawn.members.items())
        self._senders = [name for name, each in members if any(map(self._meets, each.says))]
        self._receivers = [
            (name, consumer) for name, each in members for heard, consumer in each.hears.items() if self._meets(heard)
        ]

    def text(self, *, as_json: bool) -> str:
        """Return the description for people, or as one JSON object: subject, messages, senders[], receivers[{name,
        consumer}].
        """
        if as_json:
            receivers = [{"name": name, "consumer": consumer or None} for name, consumer in self._receivers]
            told = {"subject": self._subject, "messages": list(map(_described, self._kinds))}
            return json.dumps({**told, "senders": self._senders, "receivers": receivers})
        lines = [line for kind in self._kinds for line in _lines_of(kind)]
        if not self._kinds:
            lines.append(f"{self._subject}: not a message of LoCAL2; {delivery_of(self._subject)}")
        heard = [f"{name} (durable, as {consumer})" if consumer else name for name, consumer in self._receivers]
        return "\n".join(
            [*lines, f"sent by: {', '.join(self._senders) or '-'}", f"received by: {', '.join(heard) or '-'}"]
        )

    def _meets(self, other: str) -> bool:
        return covers(other, self._subject) or (is_family(self._subject) and covers(self._subject, other))


def _described(kind: type[Message]) -> dict[str, object]:
    fields = {name: _type_of(kind, name) for name in kind.model_fields}
    about = inspect.cleandoc(kind.__doc__ or "")
    return {
        "subject": kind.subject,
        "name": kind.__name__,
        "delivery": str(kind.delivery),
        "about": about,
        "fields": fields,
    }


def _lines_of(kind: type[Message]) -> list[str]:
    about = inspect.cleandoc(kind.__doc__ or "").split("\n")
    fields = [f"    {name}: {_type_of(kind, name)}" for name in kind.model_fields]
    return [f"{kind.subject}  {kind.__name__}, {kind.delivery}", *(f"  {line}" for line in about), *fields]


def _type_of(kind: type[Message], name: str) -> str:
    annotation = kind.model_fields[name].annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


# `local2 tap list`: the subjects in use, their publishers and rates.

EVERYTHING = Filter("subject:*")


def list_subjects(
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds to listen.")] = 5.0,
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
    """The counters of one subject: messages, payload bytes, and the senders."""

    count: int = 0
    size: int = 0
    publishers: set[str] = field(default_factory=set)


class SubjectTable:
    """A table of counters of all subjects."""

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
