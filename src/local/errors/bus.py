"""What can go wrong with messages on their way."""

from __future__ import annotations

from local.errors.base import LocalError


class MalformedFrame(LocalError):
    """A frame, header or payload that is not what the protocol says."""

    kind = "malformed"


class UnsupportedVersion(MalformedFrame):
    """An envelope of another protocol version."""

    kind = "unsupported_version"

    def __init__(self, theirs: int, ours: int) -> None:
        super().__init__(f"envelope of protocol version {theirs}; this program speaks version {ours}")
        self.theirs, self.ours = theirs, ours


class FrameTooLarge(LocalError):
    """A message that does not fit into one frame."""

    kind = "too_large"

    def __init__(self, subject: str, size: int, limit: int) -> None:
        super().__init__(
            f"a message {subject} of {size:,} bytes is too large for the bus, which takes {limit:,} at most; several"
            " smaller ones would pass"
        )
        self.subject, self.size, self.limit = subject, size, limit


class UnsendableMessage(LocalError):
    """A message that no frame can carry: a subject that is none, or text that is no Unicode."""

    kind = "unsendable"


class UndeclaredMessage(UnsendableMessage):
    """A message that its sender has not declared: everybody would refuse it."""

    kind = "undeclared"

    def __init__(self, sender: str, subject: str) -> None:
        super().__init__(
            f"{sender} has not declared that it says {subject}: write the message's class into `publishes` of the"
            f" participant {sender}, or for a client of another kind {sender}: [{subject}] under `bus_clients` in"
            " system.yaml"
        )
        self.sender, self.subject = sender, subject


class DeclarationNotWritten(LocalError):
    """What a participant may say could not be written down, so that nobody would listen to it."""

    kind = "declaration_not_written"


class BusNotReady(LocalError):
    """The proxy did not answer the handshake in time."""

    kind = "bus_not_ready"

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__(f"the bus at {address} did not answer within {seconds:g} s")
        self.address, self.seconds = address, seconds


class BadBusAddress(LocalError):
    """A bus address that ZeroMQ cannot connect to."""

    kind = "bad_bus_address"


class BlobNotStored(LocalError):
    """A large field could not be written to the blob store."""

    kind = "blob_not_stored"


class BusClosed(LocalError):
    """The bus was closed while it was in use."""

    kind = "bus_closed"


class PublishTimeout(LocalError):
    """A message could not be handed to the transport in time."""

    kind = "publish_timeout"

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(
            f"the bus did not take the message {subject} within {seconds:g} s;"
            " `local2 status` shows whether its proxy runs"
        )
        self.subject, self.seconds = subject, seconds


class RequestTimeout(LocalError):
    """Nobody answered a request in time. `whom` is who was asked, where the request says so."""

    kind = "timeout"

    def __init__(self, subject: str, seconds: float, whom: str = "") -> None:
        silent = f"{whom} did not answer" if whom else f"nobody answered {subject}"
        super().__init__(f"{silent} within {seconds:g} s; `local2 status` shows who is there")
        self.subject, self.seconds = subject, seconds
        self.details = {"subject": subject}


class NotConfirmed(LocalError):
    """The journal did not confirm a message in time. It may yet be on record: the same id may be sent again."""

    kind = "not_confirmed"

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(
            f"the journal did not confirm the message {subject} within {seconds:g} s; it may yet be on record, so ask"
            " again under the same id; `local2 status` shows how the journal is"
        )
        self.subject, self.seconds = subject, seconds


class NoJournal(LocalError):
    """A durable consumer on a bus without a journal."""

    kind = "no_journal"

    def __init__(self, name: str) -> None:
        super().__init__(f"the durable consumer {name} needs a journal, and this bus has none")
        self.name = name


class JournalFull(LocalError):
    """The disk has no room for new work; what was accepted before goes on when there is space."""

    kind = "journal_full"


class JournalGone(JournalFull):
    """The journal's file was taken away while the system runs: new work is refused until it is back."""

    kind = "journal_gone"
