"""All exceptions that LoCAL2 raises on purpose: one base class, with children named for the fact."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

# The base of every exception that we raise on purpose.

# The part before the host of an address: anything up to an @; or a password with a character that an address cannot
# have there, such as a slash; a port differs from it by being a number.
_USER_AND_PASSWORD = re.compile(
    r"""(?<=://)(?:[^\s/?\#"'<>]*@|[^\s/?\#@:\["'<>]*:(?!\d{0,5}(?:[/?\#\s"'<>]|$))[^\s@"'<>]*@)"""
)


def without_passwords(text: str) -> str:
    """A text in which addresses have lost user and password: `http://…@host`."""
    return _USER_AND_PASSWORD.sub("…@", text) if "@" in text and "://" in text else text


class LocalError(Exception):
    """Base class of all our errors. `str()` of it is a sentence for a person, without passwords in addresses; `kind`
    is the word for a program.
    """

    kind = "error"

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_passwords(arg) if isinstance(arg, str) else arg for arg in args))


class BadRequest(LocalError):
    """A request that cannot be carried out because of its content. The requester gets the error; it is not logged as a
    fault.
    """

    kind = "invalid"


class ConfigError(LocalError):
    """A setting that is missing, unknown or of the wrong type. Names file, line, key and the expected value."""

    kind = "config"


# Errors of messages on their way.


class MalformedFrame(LocalError):
    """A frame, header or payload that violates the protocol."""

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
            f"a message {subject} of {size:,} bytes is too large for the bus, which takes {limit:,} at most; split it"
            " into smaller ones"
        )
        self.subject, self.size, self.limit = subject, size, limit


class UnsendableMessage(LocalError):
    """A message that no frame can carry: its subject is invalid, or its text is not Unicode."""

    kind = "unsendable"


class UndeclaredMessage(UnsendableMessage):
    """A message that its sender has not declared; every receiver would refuse it."""

    kind = "undeclared"

    def __init__(self, sender: str, subject: str) -> None:
        super().__init__(
            f"{sender} has not declared the subject {subject}: write the message's class into `publishes` of the"
            f" participant {sender}, or for a client of another kind {sender}: [{subject}] under `bus_clients` in"
            " system.yaml"
        )
        self.sender, self.subject = sender, subject


class DeclarationNotWritten(LocalError):
    """The declaration of a participant could not be written, so its messages would be refused."""

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
    """A large field that could not be written to the blob store."""

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
    """A request that was not answered in time. `whom` names the receiver, if the request does."""

    kind = "timeout"

    def __init__(self, subject: str, seconds: float, whom: str = "") -> None:
        silent = f"{whom} did not answer" if whom else f"nobody answered {subject}"
        super().__init__(f"{silent} within {seconds:g} s; `local2 status` shows which participants run")
        self.subject, self.seconds = subject, seconds
        self.details = {"subject": subject}


class NotConfirmed(LocalError):
    """The journal did not confirm a message in time. The message may still be stored: it can be sent again under the
    same id.
    """

    kind = "not_confirmed"

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(
            f"the journal did not confirm the message {subject} within {seconds:g} s; it may still be stored, so"
            " send it again under the same id; `local2 status` shows the state of the journal"
        )
        self.subject, self.seconds = subject, seconds


class NoJournal(LocalError):
    """A durable consumer on a bus without a journal."""

    kind = "no_journal"

    def __init__(self, name: str) -> None:
        super().__init__(f"the durable consumer {name} needs a journal, and this bus has none")
        self.name = name


class JournalFull(LocalError):
    """The disk has no room for new work; work accepted before continues when there is space."""

    kind = "journal_full"


class JournalGone(JournalFull):
    """The journal's file was taken away while the system runs: new work is refused until it is back."""

    kind = "journal_gone"


# Errors of models.


class ModelError(LocalError):
    """The model server failed or cannot do what was requested; the text says what to do about it."""

    kind = "model_error"

    def __init__(self, message: str, *, kind: str = "model_error", status: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status


class NoSuchModel(ModelError, BadRequest):
    """A model that is not here, or a name that no model can have."""


class ModelBusy(ModelError):
    """The model server asks for a later request: after `retry_after` seconds, None if unknown."""

    def __init__(self, message: str, *, kind: str, status: int | None, retry_after: float | None) -> None:
        super().__init__(message, kind=kind, status=status)
        self.retry_after = retry_after


class ContextTooLarge(LocalError):
    """The error for a prompt that cannot fit into the model's context. `parts` are estimated tokens by part."""

    kind = "context_overflow"

    def __init__(self, limit: int, parts: Mapping[str, int]) -> None:
        numbers = ", ".join(f"{part} {tokens:,}" for part, tokens in parts.items())
        found = f"too large for the context of {limit:,} tokens: {numbers}"
        super().__init__(f"{found}; shorten the question, offer fewer tools or raise num_ctx")
        self.limit, self.parts = limit, dict(parts)


# Errors of participants and their processes, and of commands that talk to a system.


class HandedBack(LocalError):
    """Work that was begun and is left to the next process, as when a participant is asked to stop."""

    kind = "handed_back"


class IllegalTransition(LocalError):
    """An action that the table does not allow in this state; nothing was changed."""

    kind = "illegal_transition"

    def __init__(self, state: str, action: str) -> None:
        super().__init__(f"action {action} is not allowed in state {state}")
        self.state, self.action = state, action


class AlreadyRunning(LocalError):
    """A second system on the same data directory."""

    kind = "already_running"


class UnknownParticipant(BadRequest):
    """A name that no participant of this system has."""

    kind = "unknown_participant"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no participant {name}; there are {', '.join(sorted(known))}")
        self.name = name


class UnknownConsumer(BadRequest):
    """A durable consumer that the journal does not know."""

    kind = "unknown_consumer"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no durable consumer {name}; there are {', '.join(sorted(known)) or 'none'}")
        self.name = name


class StartFailed(LocalError):
    """A required participant did not start."""

    kind = "start_failed"

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name} could not be started: {detail}; its own log lines above say why")
        self.name, self.detail = name, detail


class StartInterrupted(LocalError):
    """The system was stopped before it was ready."""

    kind = "start_interrupted"

    def __init__(self) -> None:
        super().__init__("LoCAL2 was stopped before it was ready")


class SetUpFailed(LocalError):
    """The environment cannot be made; the text says what failed and what to do about it."""

    kind = "set_up_failed"


class NoAnswer(LocalError):
    """A system did not answer, or answered with an error; the text is the system's own.

    `status` is the HTTP status and `retry_after` the seconds to wait before the next request, None if there is none.
    """

    def __init__(self, kind: str, message: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.status, self.retry_after = kind, status, retry_after


class NoApi(LocalError):
    """A running system without an HTTP API."""

    kind = "no_api"


class BadQuestion(BadRequest):
    """A question or option that is invalid."""

    kind = "bad_question"


# Errors of stores.

_FULL = (errno.ENOSPC, errno.EDQUOT)


class StoreFailed(LocalError):
    """A database could not be opened, read or written; the text names the file and SQLite's reason."""

    kind = "store_failed"


class StoreTooNew(StoreFailed):
    """A database was written by a newer program, and is left alone: only that program can open it."""

    kind = "store_too_new"


class StoreUnwritable(StoreFailed):
    """A write that failed completely; writing works again when the obstacle is gone."""


class StoreFull(StoreUnwritable):
    """The disk has no room for a write."""

    kind = "store_full"


class StoreReadOnly(StoreUnwritable):
    """The file system takes no changes at present, as after a fault of the disk."""

    kind = "store_read_only"


class StoreInDoubt(StoreUnwritable):
    """A write that may have been made, or may be made yet: it is finished before the next one."""


def refused_by_disk(path: Path, number: int | None) -> StoreUnwritable | None:
    """Return the error for a failed write if `errno` says that no process can write there at present; None for other
    failures.
    """
    if number in _FULL:
        return StoreFull(f"{path}: the disk is full; free some space and try again")
    if number == errno.EROFS:
        return StoreReadOnly(f"{path}: the file system is read-only; make it writable and try again")
    if number == errno.EPERM:
        return StoreReadOnly(f"{path}: the file or its folder is immutable; `chattr -i` makes it writable again")
    return None


class StoreGone(StoreUnwritable):
    """The open file has lost its name: anything written to it would be lost."""

    kind = "store_gone"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is gone: it was removed or moved away while the system runs; nothing can be stored until it is"
            " back, or the system is restarted"
        )
        self.path = path


class StoreLocked(StoreFailed):
    """Another process is in the middle of a commit, perhaps frozen there."""

    kind = "store_locked"


class StoreFenced(LocalError):
    """A newer process has taken over the store; this one must not act on it any more."""

    kind = "fenced"


class StoreReplaced(StoreFenced):
    """Another file has replaced the one that this process has open; the next process opens the new one."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was replaced by another file while this process had it open")
        self.path = path


class StoreDamaged(StoreFailed):
    """A row that does not match its checksum was met. Opening the store with a full check salvages what is sound."""

    kind = "store_damaged"


class BackupRefused(LocalError):
    """A backup that cannot be made or restored; the text says why."""

    kind = "backup_refused"


class UntrustedFact(BadRequest):
    """A fact about the user that is not the user's own word."""

    kind = "untrusted_fact"

    def __init__(self, slot: str, origin: str) -> None:
        super().__init__(
            f"{slot}: content from {origin} is not a fact about the user; only the user's own statements are"
        )
        self.slot, self.origin = slot, origin


class IndexBroken(LocalError):
    """A vector index that cannot be opened, read or written. It is rebuilt; until then only words are searched."""

    kind = "index_broken"


class NotOnRecord(BadRequest):
    """A session or query that is not in the store."""

    kind = "not_found"


class PinRefused(BadRequest):
    """A pin that would have no room in the prompt; the text says why."""

    kind = "conflict"


class SessionInUse(BadRequest):
    """A session that cannot be deleted yet."""

    kind = "conflict"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"a query of session {session_id} is open; wait for its end or cancel it, then delete")


class BadCursor(BadRequest):
    """A text that is not a valid list cursor."""

    kind = "invalid"

    def __init__(self, cursor: str) -> None:
        super().__init__(f"{cursor[:80]!r} is not a cursor; use the one of the previous page")


class SessionExists(BadRequest):
    """A branch with the id of an existing session."""

    kind = "conflict"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} already exists; choose a new session_id")


class TurnStillOpen(BadRequest):
    """A branch that would begin with an open turn."""

    kind = "conflict"

    def __init__(self, session_id: str, query_id: str) -> None:
        what = f"query {query_id} of session {session_id} is open"
        super().__init__(f"{what}; wait for its end or cancel it, then branch")


class RecordUnreadable(StoreFailed):
    """The journal could not return recorded messages; the text is its own."""

    kind = "unavailable"


class RecordNotRedacted(StoreFailed):
    """The journal could not remove deleted content; the text is its own."""

    kind = "unavailable"


class AttachmentRefused(BadRequest):
    """A file that is not accepted. `kind` is too_large, unsupported_media_type, or invalid if it cannot be read."""

    def __init__(self, name: str, reason: str, *, kind: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.kind = name, kind


class AttachmentMissing(BadRequest):
    """An attachment that does not exist or was removed."""

    kind = "not_found"

    def __init__(self, attachment_id: str) -> None:
        super().__init__(f"there is no attachment {attachment_id[:80]}; send the file with POST /attachments first")
        self.attachment_id = attachment_id


# Errors of tools; the texts are for the model.


class ToolError(LocalError):
    """A tool could not carry out its call; the text is for the model, `kind` for programs. `tainted` says that it
    contains untrusted content, and `folder` names the folder that the owner would have to trust for it not to.
    """

    kind = "tool_error"

    def __init__(self, message: str, *, kind: str = "tool_error", tainted: bool = False, folder: str = "") -> None:
        super().__init__(message)
        self.kind, self.tainted, self.folder = kind, tainted, folder


class ToolGone(ToolError):
    """No process serves a tool now. If a call with effects has `begun`, it is unknown whether the effect happened."""

    def __init__(self, why: str, *, begun: bool = False) -> None:
        doubt = "; it is unknown whether the call had its effect" if begun else ""
        super().__init__(f"{why}{doubt}", kind="outcome_unknown" if begun else "unavailable")


class FetchRefused(ToolError):
    """An address that may not be fetched: not a public web address, or a disguised one."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{without_passwords(url)[:200]!a} may not be fetched: {reason}", kind="refused")
        self.url, self.reason = url, reason


class SearchUnavailable(ToolError):
    """A search provider could not search, which differs from finding nothing. `retry_after` is in seconds."""

    def __init__(self, provider: str, reason: str, retry_after: float | None = None) -> None:
        super().__init__(f"{provider} could not search: {reason}", kind="unavailable")
        self.provider, self.reason, self.retry_after = provider, reason, retry_after


class SandboxMissing(ToolError):
    """The error on a machine without a sandbox that could contain a command. `fix` says how to get one."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(f"{why}: {fix}", kind="unavailable")
        self.why, self.fix = why, fix


class SandboxRefused(ToolError):
    """A workspace or a folder that commands must not access."""

    def __init__(self, why: str) -> None:
        super().__init__(why, kind="refused")
