"""`local2 tap pub`: one message, said by hand."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir
from local.apps.tap.connection import READY_SECONDS, print_until_stopped
from local.apps.tap.printer import Printer
from local.apps.tap.view import PlainView
from local.apps.utf8_text import standard_input
from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.sender_guard import Declaration
from local.environment import data_dir as find_data_dir
from local.errors import LocalError, MalformedFrame
from local.protocol.delivery_classes import message_classes
from local.protocol.envelope import Envelope, needs_packing, new_id
from local.protocol.message import parse_object
from local.protocol.subjects import covers, is_subject

SENDER = "tap_pub"
STDIN = "-"


class BadPublication(LocalError):
    """What nobody could read, said why."""

    kind = "bad_message"


def pub(
    subject: Annotated[str, typer.Argument(help="A whole subject.")],
    payload: Annotated[str, typer.Argument(metavar="JSON", help="An object; - reads it from stdin.")],
    query: Annotated[str | None, typer.Option(metavar="ID", help="The query that it belongs to.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="The session that it belongs to.")] = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Say one message in the name of tap_pub, and print its id. A running system takes it as said: it answers a query,
    carries out a call, and keeps it on record.

    Example: local2 tap pub query.cancel '{"query_id": "q7"}' --query q7
    """
    content = checked(subject, standard_input() if payload == STDIN else payload)
    folder = find_data_dir(data_dir)

    async def work(bus: Bus, printer: Printer[str], stop: asyncio.Event) -> None:
        envelope = envelope_of(subject, content, bus.instance, query, session)
        await say(bus, envelope, BlobStore(folder / "blobs"))
        printer.offer(envelope.id, len(envelope.id))

    says = Declaration(frozenset({subject}))
    print_until_stopped(PlainView(), work, data_dir=Path(folder), addresses=bus, sender=SENDER, declaration=says)


def checked(subject: str, text: str) -> bytes:
    """The payload to send. Raises `BadPublication`: no subject, no JSON object, or not what this subject says."""
    if not is_subject(subject):
        raise BadPublication(f"{subject!r} is no whole subject; expected one such as query.cancel")
    try:
        content = json.dumps(parse_object(text.encode(), "payload")).encode()
        for kind in message_classes():
            if covers(kind.subject, subject):
                kind.decode(content)
    except MalformedFrame as error:
        raise BadPublication(f"{subject}: {error}") from None
    return content


def envelope_of(subject: str, payload: bytes, instance: str, query: str | None, session: str | None) -> Envelope:
    """The message on its way, sent now; without a query it begins a trace of its own."""
    identity = new_id()
    return Envelope(
        subject, identity, SENDER, instance, 1, query or identity, payload, session_id=session, sent_at=time.time()
    )


async def say(bus: Bus, envelope: Envelope, blobs: BlobStore) -> None:
    """Returns when the proxy has it. Raises as `Bus.ready` and `Bus.send` do."""
    if needs_packing(envelope.payload):
        envelope = envelope._replace(payload=await blobs.pack_aside(envelope.payload))
    async with bus:
        await bus.ready(READY_SECONDS)
        await bus.send(envelope)
        await bus.ready(READY_SECONDS)  # the probe comes back behind it
