"""What can go wrong with what is kept."""

from __future__ import annotations

import errno
from pathlib import Path

from local.errors.base import BadRequest, LocalError

_FULL = (errno.ENOSPC, errno.EDQUOT)


class StoreFailed(LocalError):
    """A database could not be opened, read or written; the text names the file and SQLite's reason."""

    kind = "store_failed"


class StoreUnwritable(StoreFailed):
    """Nothing could be written, and nothing of it was; it works again by itself once what is in the way has gone."""


class StoreFull(StoreUnwritable):
    """The disk has no room for what was to be written."""

    kind = "store_full"


class StoreReadOnly(StoreUnwritable):
    """The file system takes no changes at present, as after a fault of the disk."""

    kind = "store_read_only"


def refused_by_disk(path: Path, number: int | None) -> StoreUnwritable | None:
    """The failure to write a file where `errno` says that nobody can write there at present; None if it is another."""
    if number in _FULL:
        return StoreFull(f"{path}: the disk is full; free some space and try again")
    if number == errno.EROFS:
        return StoreReadOnly(f"{path}: the file system is read-only; make it writable and try again")
    return None


class StoreGone(StoreUnwritable):
    """The file that is open has lost its name: whatever was written to it would be lost."""

    kind = "store_gone"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is gone: it was removed or moved away while the system runs; nothing can be kept until it is back,"
            " or the system is started anew"
        )
        self.path = path


class StoreLocked(StoreFailed):
    """Another process is in the middle of a commit, perhaps frozen there."""

    kind = "store_locked"


class StoreFenced(LocalError):
    """A newer process has taken over the store; this one must not act on it any more."""

    kind = "fenced"


class StoreReplaced(StoreFenced):
    """Another file lies where the one was that this process has open; its successor is to open that one."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was replaced by another file while this process had it open")
        self.path = path


class StoreDamaged(StoreFailed):
    """A row that does not match its checksum was met. Opening the store with a full check salvages what is sound."""

    kind = "store_damaged"


class BackupRefused(LocalError):
    """A copy that cannot be made, or cannot be put back there; the text says why."""

    kind = "backup_refused"


class UntrustedFact(BadRequest):
    """A fact about the user that is not the user's own word."""

    kind = "untrusted_fact"

    def __init__(self, slot: str, origin: str) -> None:
        super().__init__(f"{slot}: what comes from {origin} is no fact about the user; only the user's own word is")
        self.slot, self.origin = slot, origin


class IndexBroken(LocalError):
    """A vector index that cannot be opened, read or written. It is rebuilt; until then words alone are searched."""

    kind = "index_broken"


class NotOnRecord(BadRequest):
    """No such session or query in the store."""

    kind = "not_found"


class PinRefused(BadRequest):
    """A pin that would not show in the prompt; the text says why."""

    kind = "conflict"


class SessionInUse(BadRequest):
    """A session that cannot be deleted yet."""

    kind = "conflict"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"a query of session {session_id} is open; wait for its end or cancel it, then delete")


class BadCursor(BadRequest):
    """A text that is no place in a list."""

    kind = "invalid"

    def __init__(self, cursor: str) -> None:
        super().__init__(f"{cursor[:80]!r} is no cursor; take that of the page before")


class SessionExists(BadRequest):
    """A branch that was to have the id of another session."""

    kind = "conflict"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"there is a session {session_id} already; take a new session_id")


class TurnStillOpen(BadRequest):
    """A branch that would begin with a turn that has not ended."""

    kind = "conflict"

    def __init__(self, session_id: str, query_id: str) -> None:
        what = f"query {query_id} of session {session_id} is open"
        super().__init__(f"{what}; wait for its end or cancel it, then branch")


class RecordUnreadable(StoreFailed):
    """The journal could not say what is on record; the text is its own."""

    kind = "unavailable"


class RecordNotRedacted(StoreFailed):
    """The journal could not remove what was to be deleted; the text is its own."""

    kind = "unavailable"


class AttachmentRefused(BadRequest):
    """A file that is not taken in. `kind` is too_large, unsupported_media_type, or invalid if nothing can be read."""

    def __init__(self, name: str, reason: str, *, kind: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.kind = name, kind


class AttachmentMissing(BadRequest):
    """An attachment that is not (or no longer) there."""

    kind = "not_found"

    def __init__(self, attachment_id: str) -> None:
        super().__init__(f"there is no attachment {attachment_id[:80]}; send the file with POST /attachments first")
        self.attachment_id = attachment_id
