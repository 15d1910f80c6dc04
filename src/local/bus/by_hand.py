"""Messages that a person publishes: `local2 tap pub`, and the inspector of the desktop window."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.envelope import Envelope, needs_packing, new_id
from local.bus.message import covers, is_subject, message_classes, parse_object
from local.bus.security import Declaration, Declarations, SenderGuard, with_keys
from local.bus.zeromq import open_transport
from local.core.bus_address import BusAddress
from local.core.errors import LocalError, MalformedFrame

READY_SECONDS = 5.0


class BadPublication(LocalError):
    """The error for a message that its receivers could not read, with the reason."""

    kind = "bad_message"


def client_bus(address: BusAddress, sender: str, declaration: Declaration | None = None) -> Bus:
    """Return a bus, not yet open, for a command that is not a participant. It checks senders, and may itself publish
    what is declared. The declaration stays while the system runs, because a busy receiver may read it after the
    command has ended.
    """
    declarations = None if address.senders is None else Declarations(address.senders)
    if declarations is not None and declaration is not None:
        before = declarations.read(sender) or Declaration(frozenset())
        declarations.write(sender, replace(declaration, says=declaration.says | before.says))
    guard = None if declarations is None else SenderGuard(declarations.read)
    return Bus(sender, open_transport(with_keys(address, sender)), guard=guard)


def checked(subject: str, text: str) -> bytes:
    """Return the checked payload. Raises `BadPublication`: invalid subject, not a JSON object, or not valid for this
    subject.
    """
    if not is_subject(subject):
        raise BadPublication(f"{subject!r} is not a complete subject; expected one such as query.cancel")
    try:
        content = json.dumps(parse_object(text.encode(), "payload")).encode()
        for kind in message_classes():
            if covers(kind.subject, subject):
                kind.decode(content)
    except MalformedFrame as error:
        raise BadPublication(f"{subject}: {error}") from None
    return content


def envelope_of(bus: Bus, subject: str, payload: bytes, query: str | None, session: str | None) -> Envelope:
    """Return the envelope of the message from this end of the bus; without a query it begins a new trace."""
    identity = new_id()
    return Envelope(
        subject, identity, bus.sender, bus.instance, 1, query or identity, payload, session_id=session,
        sent_at=time.time(),
    )  # fmt: skip


async def say(bus: Bus, envelope: Envelope, blobs: BlobStore) -> None:
    """Returns when the proxy has it. Raises as `Bus.ready` and `Bus.send` do."""
    if needs_packing(envelope.payload):
        envelope = envelope._replace(payload=await blobs.pack_aside(envelope.payload))
    async with bus:
        await bus.ready(READY_SECONDS)
        await bus.send(envelope)
        await bus.ready(READY_SECONDS)  # the probe comes back behind it
