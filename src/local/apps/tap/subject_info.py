"""`local2 tap info`: what a subject is for, and who says and hears it."""

from __future__ import annotations

import inspect
import json
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir, JsonOption
from local.apps.tap.bus_graph import LISTEN_SECONDS, BusGraph, Seconds, draw_and_print
from local.errors import LocalError
from local.protocol.delivery_classes import delivery_of, message_classes
from local.protocol.message import Message
from local.protocol.subjects import covers, is_family, is_subject


class UnknownSubject(LocalError):
    """Neither a subject nor a family."""

    kind = "bad_subject"


def info(
    subject: Annotated[str, typer.Argument(help="A subject (query.received) or a family (tool.request.).")],
    seconds: Seconds = LISTEN_SECONDS,
    as_json: JsonOption = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show what a subject says, how it is delivered, its fields, and who says and hears it now.

    Example: local2 tap info query.received
    """
    if not is_subject(subject.removesuffix(".")):
        raise UnknownSubject(f"{subject!r}: expected a subject (query.received) or a family (tool.request.)")
    draw_and_print(lambda drawn: SubjectInfo(subject, drawn).text(as_json=as_json), seconds, data_dir, bus)


class SubjectInfo:
    """What the protocol and the participants say of one subject or family."""

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
        """For people, or as one JSON object: subject, messages, senders[], receivers[{name, consumer}]."""
        if as_json:
            receivers = [{"name": name, "consumer": consumer or None} for name, consumer in self._receivers]
            told = {"subject": self._subject, "messages": list(map(_described, self._kinds))}
            return json.dumps({**told, "senders": self._senders, "receivers": receivers})
        lines = [line for kind in self._kinds for line in _lines_of(kind)]
        if not self._kinds:
            lines.append(f"{self._subject}: no message of ours; {delivery_of(self._subject)}")
        heard = [f"{name} (durable, as {consumer})" if consumer else name for name, consumer in self._receivers]
        return "\n".join(
            [*lines, f"said by: {', '.join(self._senders) or '-'}", f"heard by: {', '.join(heard) or '-'}"]
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
