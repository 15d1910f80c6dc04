"""Every exception that LoCAL2 raises on purpose: one base, children named for the fact."""

from __future__ import annotations

from collections.abc import Iterable


class LocalError(Exception):
    """Base of all our errors. `str()` of it is a sentence for a person; `kind` is the word for a program."""

    kind = "error"


# --- protocol -------------------------------------------------------------------------------------------------------


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
        super().__init__(f"{subject}: {size} bytes do not fit into one frame of at most {limit}")
        self.subject, self.size, self.limit = subject, size, limit


class UnsendableMessage(LocalError):
    """A message that no frame can carry: a subject that is none, or text that is no Unicode."""

    kind = "unsendable"


# --- bus ------------------------------------------------------------------------------------------------------------


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
        super().__init__(f"{subject}: the bus did not take the message within {seconds:g} s")
        self.subject, self.seconds = subject, seconds


class RequestTimeout(LocalError):
    """Nobody answered a request in time."""

    kind = "timeout"

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(f"{subject}: no answer within {seconds:g} s")
        self.subject, self.seconds = subject, seconds


class NotConfirmed(LocalError):
    """The journal did not confirm a message in time. It may yet be on record: the same id may be sent again."""

    kind = "not_confirmed"

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(f"{subject}: the journal did not confirm it within {seconds:g} s; it may yet be on record")
        self.subject, self.seconds = subject, seconds


# --- runtime --------------------------------------------------------------------------------------------------------


class IllegalTransition(LocalError):
    """An action that the table does not allow in this state; nothing was changed."""

    kind = "illegal_transition"

    def __init__(self, state: str, action: str) -> None:
        super().__init__(f"action {action} is not allowed in state {state}")
        self.state, self.action = state, action


class ConfigError(LocalError):
    """A setting that is missing, unknown or of the wrong kind. Says file, line, key and what was expected."""

    kind = "config"


class StoreFailed(LocalError):
    """A database could not be opened, read or written; the text names the file and SQLite's reason."""

    kind = "store_failed"


class StoreFull(StoreFailed):
    """The disk has no room for what was to be written; nothing of it was. Works again once there is space."""

    kind = "store_full"


class StoreDamaged(StoreFailed):
    """A row that does not match its checksum was met. Opening the store with a full check salvages what is sound."""

    kind = "store_damaged"


class NotOnRecord(LocalError):
    """No such session or query in the store."""

    kind = "not_found"


class AlreadyRunning(LocalError):
    """A second instance on the same data."""

    kind = "already_running"


class UnknownParticipant(LocalError):
    """A name that no participant of this system has."""

    kind = "unknown_participant"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no participant {name}; there are {', '.join(sorted(known))}")
        self.name = name


class UnknownConsumer(LocalError):
    """A durable consumer that the journal does not know."""

    kind = "unknown_consumer"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no durable consumer {name}; there are {', '.join(sorted(known)) or 'none'}")
        self.name = name


class StartFailed(LocalError):
    """A participant that the system cannot do without did not start."""

    kind = "start_failed"

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name} could not be started: {detail}; its own log lines above say why")
        self.name, self.detail = name, detail


# --- tools ----------------------------------------------------------------------------------------------------------


class ToolError(LocalError):
    """A tool could not do what it was asked; the text is for the model, `kind` for programs."""

    kind = "tool_error"

    def __init__(self, message: str, *, kind: str = "tool_error") -> None:
        super().__init__(message)
        self.kind = kind


class FetchRefused(ToolError):
    """An address that may not be fetched: no public web address, or one in disguise."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url[:200]!a} may not be fetched: {reason}", kind="refused")
        self.url, self.reason = url, reason


class SearchUnavailable(ToolError):
    """A search provider could not look, which is not the same as finding nothing. `retry_after` is in seconds."""

    def __init__(self, provider: str, reason: str, retry_after: float | None = None) -> None:
        super().__init__(f"{provider} could not search: {reason}", kind="unavailable")
        self.provider, self.reason, self.retry_after = provider, reason, retry_after


# --- models ---------------------------------------------------------------------------------------------------------


class ModelError(LocalError):
    """The model server failed or cannot do what was asked; the text says what to do about it."""

    kind = "model_error"

    def __init__(self, message: str, *, kind: str = "model_error", status: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status
