"""`local2 tap graph`: who says what to whom, as all of them tell it themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from local.apps.command_line import BusOption, DataDir, JsonOption
from local.apps.run_directory import SENDERS
from local.apps.tap.connection import listen, print_until_stopped
from local.apps.tap.printer import Printer
from local.apps.tap.selection import UPKEEP, Selection
from local.apps.tap.view import PlainView
from local.apps.terminal import visible
from local.bus.bus import Bus
from local.bus.sender_guard import Declaration, Declarations
from local.environment import data_dir as find_data_dir
from local.errors import MalformedFrame
from local.protocol.envelope import Envelope
from local.protocol.messages import ParticipantStatus
from local.protocol.subjects import PARTICIPANT_STATUS, covers

LISTEN_SECONDS = 6.0  # everybody says every five how it is
Text = Callable[["BusGraph"], str]

Seconds = Annotated[float, typer.Option(min=0.1, help="How long to listen; all beat every 5 s.")]


def graph(
    seconds: Seconds = LISTEN_SECONDS,
    all_subjects: Annotated[bool, typer.Option("--all", help="Also status beats, journal and leases.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="For Graphviz.")] = False,
    as_json: JsonOption = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show which subjects go from whom to whom, by what participants have declared and say that they hear.

    Example: local2 tap graph --dot | dot -Tsvg -o bus.svg
    """
    if dot and as_json:
        raise typer.BadParameter("--dot and --json exclude each other; give one of them")
    show: Text = BusGraph.as_dot if dot else BusGraph.as_json if as_json else BusGraph.as_text
    draw_and_print(lambda found: show(found if all_subjects else found.without_upkeep()), seconds, data_dir, bus)


def draw_and_print(show: Text, seconds: float, data_dir: Path | None, addresses: str | None) -> None:
    """Listen, then print what `show` makes of the graph. Raises `LocalError`: no such system or bus."""
    folder = find_data_dir(data_dir) / SENDERS

    async def work(bus: Bus, printer: Printer[str], stop: asyncio.Event) -> None:
        drawn = BusGraph(Declarations(folder).read)
        await listen(bus, Selection((PARTICIPANT_STATUS,)), drawn.receive, printer, stop, seconds=seconds)
        text = show(drawn)
        printer.offer(text, len(text))

    print_until_stopped(PlainView(), work, data_dir=data_dir, addresses=addresses)


class Arrow(NamedTuple):
    """A subject or family that goes from one participant to another; `consumer` if it is delivered by the journal."""

    subject: str
    sender: str
    receiver: str
    consumer: str


@dataclass(frozen=True, slots=True)
class BusMember:
    """Somebody who takes part: what they may say, and what they hear, each with its durable consumer's name or none."""

    kind: str
    says: frozenset[str]
    hears: dict[str, str]


class BusGraph:
    """Made from status beats, and from what `declared` gives for a sender's name. `members` are known by that."""

    def __init__(self, declared: Callable[[str], Declaration | None]) -> None:
        self._declared = declared
        self.members: dict[str, BusMember] = {}

    def receive(self, envelope: Envelope) -> None:
        """Take a status beat; the last one of a participant counts."""
        try:
            status = ParticipantStatus.decode(envelope.payload)
        except MalformedFrame:
            return  # those who take part report it
        declaration = self._declared(envelope.sender)
        says = declaration.says if declaration else frozenset()
        if status.state == "stopping":
            self.members.pop(envelope.sender, None)
        else:
            self.members[envelope.sender] = BusMember(status.kind, says, dict(status.subscriptions))

    def without_upkeep(self) -> BusGraph:
        """The graph without what is said all the time to keep the system going."""
        smaller = BusGraph(self._declared)
        smaller.members = {
            name: BusMember(
                each.kind, frozenset(filter(_is_worth_showing, each.says)),
                {subject: consumer for subject, consumer in each.hears.items() if _is_worth_showing(subject)},
            )
            for name, each in self.members.items()
        }  # fmt: skip
        return smaller

    def arrows(self) -> list[Arrow]:
        """Sorted; the subject of each is the narrower one of what is said and what is heard."""
        return sorted(
            Arrow(said if covers(heard, said) else heard, sender, receiver, consumer)
            for sender, speaker in self.members.items()
            for receiver, hearer in self.members.items()
            for said in speaker.says
            for heard, consumer in hearer.hears.items()
            if covers(heard, said) or covers(said, heard)
        )

    def as_text(self) -> str:
        """A line for each subject: from whom, to whom; durable consumers with a `*`."""
        return "\n".join(self._lines()) or "nobody was heard; a participant says every 5 s how it is: listen longer"

    def as_dot(self) -> str:
        """A directed graph for Graphviz: participants are boxes, subjects ellipses, durable arrows bold."""
        lines = ["digraph bus {", "  rankdir=LR;"]
        lines += [f"  {_quoted(f'{name}')} [shape=box];" for name in sorted(self.members)]
        arrows = self.arrows()
        lines += [f"  {_quoted(f'{arrow.subject} ')} [shape=ellipse];" for arrow in _first_of_each(arrows)]
        said = {(arrow.sender, arrow.subject) for arrow in arrows}
        lines += [f"  {_quoted(sender)} -> {_quoted(f'{subject} ')};" for sender, subject in sorted(said)]
        heard = {(arrow.subject, arrow.receiver, arrow.consumer) for arrow in arrows}
        lines += [
            f"  {_quoted(f'{subject} ')} -> {_quoted(receiver)}{' [style=bold]' if consumer else ''};"
            for subject, receiver, consumer in sorted(heard)
        ]
        return "\n".join([*lines, "}"])

    def as_json(self) -> str:
        """participants[{name, kind, says, hears}] and arrows[{subject, sender, receiver, consumer}]."""
        members = [
            {"name": name, "kind": each.kind, "says": sorted(each.says), "hears": each.hears}
            for name, each in sorted(self.members.items())
        ]
        arrows = [{**arrow._asdict(), "consumer": arrow.consumer or None} for arrow in self.arrows()]
        return json.dumps({"participants": members, "arrows": arrows})

    def _lines(self) -> Iterator[str]:
        arrows = self.arrows()
        for first in _first_of_each(arrows):
            of_subject = [arrow for arrow in arrows if arrow.subject == first.subject]
            senders = sorted({arrow.sender for arrow in of_subject})
            receivers = sorted({f"{arrow.receiver}{'*' if arrow.consumer else ''}" for arrow in of_subject})
            yield visible(f"{first.subject or '(everything)':<28} {', '.join(senders)} → {', '.join(receivers)}")


def _first_of_each(arrows: list[Arrow]) -> list[Arrow]:
    return list({arrow.subject: arrow for arrow in reversed(arrows)}.values())[::-1]


def _is_worth_showing(subject: str) -> bool:
    return subject != "" and not any(covers(upkeep, subject) for upkeep in UPKEEP)


def _quoted(text: str) -> str:
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
