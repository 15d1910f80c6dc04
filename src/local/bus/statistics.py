"""Figures of the bus: how regular messages are, how long they are on their way, and who sends what to whom."""

from __future__ import annotations

import json
import statistics
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from local.bus.envelope import Envelope
from local.bus.filter import is_upkeep
from local.bus.message import covers
from local.bus.messages import ParticipantStatus
from local.bus.security import Declaration
from local.core.errors import MalformedFrame
from local.core.text import visible

WINDOW = 1_000


class ArrivalRate:
    """The rate of messages, from the times of the last `window` + 1 arrivals, in seconds."""

    def __init__(self, window: int = WINDOW) -> None:
        self._times: deque[float] = deque(maxlen=window + 1)
        self._reported = 0
        self._count = 0

    def add(self, now: float) -> None:
        """Note one arrival."""
        self._times.append(now)
        self._count += 1

    def report(self) -> str:
        """Rate and spread, in the words of `ros2 topic hz`; or that nothing has come since the last report."""
        new, self._reported = self._count - self._reported, self._count
        if new == 0 or len(self._times) < 2:
            return "no new messages" if new == 0 else "one message, no interval yet"
        gaps = [later - earlier for earlier, later in pairwise(self._times)]
        mean = statistics.fmean(gaps)
        rate = f"{1 / mean:.3f}" if mean > 0 else "inf"
        spread = f"min: {min(gaps):.4f}s max: {max(gaps):.4f}s std dev: {statistics.pstdev(gaps, mean):.5f}s"
        return f"average rate: {rate}  {spread} window: {len(gaps)}"


class Delays:
    """The last `window` delays of messages, in seconds."""

    def __init__(self, window: int = WINDOW) -> None:
        self._delays: deque[float] = deque(maxlen=window)
        self._count = self._reported = 0

    def add(self, seconds: float) -> None:
        """Note one; below zero where the sender's clock is ahead."""
        self._delays.append(seconds)
        self._count += 1

    @property
    def mean(self) -> float:
        """The mean in seconds; 0 without any."""
        return statistics.fmean(self._delays) if self._delays else 0.0

    def report(self) -> str:
        """The mean and spread in milliseconds, or that nothing has come since the last report."""
        new, self._reported = self._count - self._reported, self._count
        if new == 0:
            return "no new messages"
        delays = [1000 * seconds for seconds in self._delays]
        spread = f"min: {min(delays):.2f} ms max: {max(delays):.2f} ms std dev: {statistics.pstdev(delays):.2f} ms"
        return f"average delay: {statistics.fmean(delays):.2f} ms  {spread} window: {len(delays)}"


class Arrow(NamedTuple):
    """A subject or family that goes from one participant to another; `consumer` if it is delivered by the journal."""

    subject: str
    sender: str
    receiver: str
    consumer: str


@dataclass(frozen=True, slots=True)
class BusMember:
    """A participant of the bus: the subjects that it may publish, and those that it receives, with the name of its
    durable consumer.
    """

    kind: str
    says: frozenset[str]
    hears: dict[str, str]


class BusGraph:
    """The graph of who publishes what to whom, from statuses, and from the declarations that `declared` returns for a
    sender's name. `members` are known by that.
    """

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
        """Return the graph without the regular internal traffic."""
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
        """Return the sorted arrows; each has the narrower one of the published and the received subject."""
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
        return "\n".join(self._lines()) or "no participant was heard; each sends its status every 5 s, so listen longer"

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
        """Return participants[{name, kind, says, hears}] and arrows[{subject, sender, receiver, consumer}]."""
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
    return subject != "" and not is_upkeep(subject)


def _quoted(text: str) -> str:
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
