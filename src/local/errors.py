"""Every exception that LoCAL2 raises on purpose: one base, children named for the fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class LocalError(Exception):
    """Base of all our errors. `str()` of it is a sentence for a person; `kind` is the word for a program."""

    kind = "error"


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


class NoJournal(LocalError):
    """A durable consumer on a bus without a journal."""

    kind = "no_journal"

    def __init__(self, name: str) -> None:
        super().__init__(f"the durable consumer {name} needs a journal, and this bus has none")
        self.name = name


class JournalFull(LocalError):
    """The disk has no room for new work; what was accepted before goes on when there is space."""

    kind = "journal_full"


class HandedBack(LocalError):
    """Work that was begun and is left to whoever serves next, as when a participant is asked to stop."""

    kind = "handed_back"


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


class StoreFenced(LocalError):
    """A newer process has taken over the store; this one must not act on it any more."""

    kind = "fenced"


class StoreDamaged(StoreFailed):
    """A row that does not match its checksum was met. Opening the store with a full check salvages what is sound."""

    kind = "store_damaged"


class UntrustedFact(LocalError):
    """A fact about the user that is not the user's own word."""

    kind = "untrusted_fact"

    def __init__(self, slot: str, origin: str) -> None:
        super().__init__(f"{slot}: what comes from {origin} is no fact about the user; only the user's own word is")
        self.slot, self.origin = slot, origin


class IndexBroken(LocalError):
    """A vector index that cannot be opened, read or written. It is rebuilt; until then words alone are searched."""

    kind = "index_broken"


class NotOnRecord(LocalError):
    """No such session or query in the store."""

    kind = "not_found"


class SessionInUse(LocalError):
    """A session that cannot be deleted yet."""

    kind = "conflict"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"a query of session {session_id} is open; wait for its end or cancel it, then delete")


class RecordNotRedacted(LocalError):
    """The journal could not remove what was to be deleted; nothing else was removed either."""

    kind = "unavailable"


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


class ModelError(LocalError):
    """The model server failed or cannot do what was asked; the text says what to do about it."""

    kind = "model_error"

    def __init__(self, message: str, *, kind: str = "model_error", status: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status


class ModelBusy(ModelError):
    """The model server wants to be asked later: after `retry_after` seconds, None if it does not say."""

    def __init__(self, message: str, *, kind: str, status: int | None, retry_after: float | None) -> None:
        super().__init__(message, kind=kind, status=status)
        self.retry_after = retry_after


class ContextTooLarge(LocalError):
    """What must be in a prompt does not fit into the model's context. `parts` are tokens by part, estimated."""

    kind = "context_overflow"

    def __init__(self, limit: int, parts: Mapping[str, int]) -> None:
        numbers = ", ".join(f"{part} {tokens:,}" for part, tokens in parts.items())
        found = f"too large for the context of {limit:,} tokens: {numbers}"
        super().__init__(f"{found}; shorten the question, offer fewer tools or raise num_ctx")
        self.limit, self.parts = limit, dict(parts)
