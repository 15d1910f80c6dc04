"""Where attached files are kept: one file for each, named by the SHA-256 of what is in it, and never changed.

A file holds one line of JSON, which says what it is and what text was read of it, and then the bytes that were sent.
Beside it an empty file for each user who has sent it says so; one without any is the owner's of the system.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic_core import from_json, to_json

from local.errors import AttachmentMissing, AttachmentRefused, StoreFailed, StoreFull
from local.folder_lock import locked_folder
from local.services.attachments.extract import AttachmentLimits, Extract, extract, is_picture, kind_of

_ID = re.compile(r"[0-9a-f]{64}")
_OF = ".of."
UNMARKED = "owner"  # whose a file without a mark is


@dataclass(frozen=True, slots=True)
class Attachment:
    """One kept file. `size` is in bytes; `text` is what was read of it, empty for a picture; `note` says what part of
    it that is, unless it is all."""

    id: str
    name: str
    media_type: str
    size: int
    text: str
    note: str

    @property
    def is_picture(self) -> bool:
        """Whether the file is for a model's eyes."""
        return is_picture(self.media_type)


class AttachmentStore:
    """A folder of attachments. Its methods block; writers and readers may be different processes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(
        self, name: str, media_type: str, data: bytes, text: str = "", note: str = "", *, user_id: str = UNMARKED
    ) -> Attachment:
        """Keep a user's file durably; the same one twice is one, of everybody who sent it. Raises `StoreFailed`."""
        header = to_json({"name": name, "media_type": media_type, "text": text, "note": note})
        content = b"%s\n%s" % (header, data)
        attachment_id = hashlib.sha256(content).hexdigest()
        path = self._directory / attachment_id
        try:
            with self._alone():
                self._mark(path, user_id)
                if not path.exists():
                    self._write(path, content)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull(f"{self._directory}: the disk is full; free some space and try again") from None
            raise StoreFailed(f"{name} could not be stored in {self._directory}: {error}") from None
        return Attachment(attachment_id, name, media_type, len(data), text, note)

    def get(self, attachment_id: str) -> Attachment:
        """What is known of a file. Raises `AttachmentMissing` if it is not there, or damaged."""
        return self.read(attachment_id)[0]

    def read(self, attachment_id: str) -> tuple[Attachment, bytes]:
        """What is known of a file, and the bytes that were sent. Raises as `get` does."""
        if not _ID.fullmatch(attachment_id):
            raise AttachmentMissing(attachment_id)
        try:
            content = (self._directory / attachment_id).read_bytes()
        except OSError:
            raise AttachmentMissing(attachment_id) from None
        if hashlib.sha256(content).hexdigest() != attachment_id:
            raise AttachmentMissing(attachment_id)
        header, _, data = content.partition(b"\n")
        return Attachment(id=attachment_id, size=len(data), **from_json(header)), data

    def owners(self, attachment_id: str) -> frozenset[str]:
        """Whose a file is."""
        marks = self._directory.glob(f"{attachment_id}{_OF}*") if _ID.fullmatch(attachment_id) else ()
        return frozenset(mark.name.partition(_OF)[2] for mark in marks) or frozenset({UNMARKED})

    def delete(self, attachment_id: str) -> None:
        """Remove a file for good, whosever it is. Raises `AttachmentMissing`."""
        if not _ID.fullmatch(attachment_id):
            raise AttachmentMissing(attachment_id)
        try:
            (self._directory / attachment_id).unlink()
        except OSError:
            raise AttachmentMissing(attachment_id) from None
        for mark in self._directory.glob(f"{attachment_id}{_OF}*"):
            mark.unlink(missing_ok=True)

    def release(self, attachment_id: str, user_id: str) -> None:
        """A user has no more use for a file: it is removed unless it is others', too. Raises `AttachmentMissing`."""
        with self._alone():
            if self.owners(attachment_id) <= {user_id}:
                self.delete(attachment_id)
            else:
                (self._directory / f"{attachment_id}{_OF}{user_id}").unlink(missing_ok=True)

    def discard(self, named: Iterable[tuple[str, str | None, bool]]) -> None:
        """Files that a user's queries name no more, and whether anybody's do (`NamedFile`), are released, as far as
        they are there. One that this user has not sent was lent by the owner, and goes if it is the last time."""
        for attachment_id, user_id, is_last in named:
            name = user_id or UNMARKED
            owners = self.owners(attachment_id)
            with suppress(AttachmentMissing):
                if name in owners:
                    self.release(attachment_id, name)
                elif is_last:
                    self.release(attachment_id, UNMARKED)

    def _mark(self, path: Path, user_id: str) -> None:
        """Say whose a file is, where that is not the owner's alone."""
        is_marked = any(path.parent.glob(f"{path.name}{_OF}*"))
        if path.exists() and not is_marked and user_id != UNMARKED:
            path.with_name(f"{path.name}{_OF}{UNMARKED}").touch(mode=0o600)
        if is_marked or user_id != UNMARKED:
            path.with_name(f"{path.name}{_OF}{user_id}").touch(mode=0o600)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time, in whichever process."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked_folder(self._directory):
            yield

    def _write(self, path: Path, content: bytes) -> None:
        part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


MAX_NAME = 200
AT_ONCE = 2  # reading a long PDF keeps a core busy
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]+")


class AttachmentImporter:
    """The way into an `AttachmentStore`."""

    def __init__(self, store: AttachmentStore, limits: AttachmentLimits) -> None:
        self.store, self.limits = store, limits
        self._places = asyncio.Semaphore(AT_ONCE)

    async def add(self, name: str, data: bytes, user_id: str = UNMARKED) -> Attachment:
        """Keep a user's file; of its name the last part counts. Raises `AttachmentRefused`, `StoreFailed`."""
        name = clean_name(name)
        if len(data) > self.limits.max_bytes:
            reason = f"has {len(data):,} bytes, at most {self.limits.max_bytes:,} are taken"
            raise AttachmentRefused(name, reason, kind="too_large")
        if not data:
            raise AttachmentRefused(name, "is empty", kind="invalid")
        media_type = kind_of(name, data)
        read = Extract("") if is_picture(media_type) else await self._read(name, media_type, data)
        kept = partial(self.store.put, name, media_type, data, read.text, read.note, user_id=user_id)
        return await asyncio.to_thread(kept)

    async def _read(self, name: str, media_type: str, data: bytes) -> Extract:
        stop, seconds = threading.Event(), self.limits.max_seconds
        try:
            async with self._places, asyncio.timeout(seconds):
                return await asyncio.to_thread(extract, name, media_type, data, self.limits, stop.is_set)
        except TimeoutError:
            reason = f"could not be read within {seconds:g} s; attach the part that matters"
            raise AttachmentRefused(name, reason, kind="invalid") from None
        finally:
            stop.set()


def clean_name(name: str) -> str:
    """A file name on one line, without its folders."""
    last = re.split(r"[/\\]", name)[-1]
    return " ".join(_UNPRINTABLE.sub(" ", last).split())[:MAX_NAME] or "file"
