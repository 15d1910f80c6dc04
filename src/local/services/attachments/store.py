"""Where attached files are kept: one file for each, named by the SHA-256 of what is in it, and never changed.

A file holds one line of JSON, which says what it is and what text was read of it, and then the bytes that were sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import from_json, to_json

from local.errors import AttachmentMissing, AttachmentRefused, StoreFailed
from local.services.attachments.extract import AttachmentLimits, Extract, extract, is_picture, kind_of

_ID = re.compile(r"[0-9a-f]{64}")


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

    def put(self, name: str, media_type: str, data: bytes, text: str = "", note: str = "") -> Attachment:
        """Keep a file durably; the same one twice is one. Raises `StoreFailed`."""
        header = to_json({"name": name, "media_type": media_type, "text": text, "note": note})
        content = b"%s\n%s" % (header, data)
        attachment_id = hashlib.sha256(content).hexdigest()
        path = self._directory / attachment_id
        try:
            if not path.exists():
                self._write(path, content)
        except OSError as error:
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

    def delete(self, attachment_id: str) -> None:
        """Remove a file for good. Raises `AttachmentMissing`."""
        if not _ID.fullmatch(attachment_id):
            raise AttachmentMissing(attachment_id)
        try:
            (self._directory / attachment_id).unlink()
        except OSError:
            raise AttachmentMissing(attachment_id) from None

    def discard(self, attachment_ids: Iterable[str]) -> None:
        """Remove these files, as far as they are there."""
        for attachment_id in attachment_ids:
            with suppress(AttachmentMissing):
                self.delete(attachment_id)

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
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

    async def add(self, name: str, data: bytes) -> Attachment:
        """Keep a file; of its name the last part counts. Raises `AttachmentRefused`, `StoreFailed`."""
        name = clean_name(name)
        if len(data) > self.limits.max_bytes:
            reason = f"has {len(data):,} bytes, at most {self.limits.max_bytes:,} are taken"
            raise AttachmentRefused(name, reason, kind="too_large")
        if not data:
            raise AttachmentRefused(name, "is empty", kind="invalid")
        media_type = kind_of(name, data)
        read = Extract("") if is_picture(media_type) else await self._read(name, media_type, data)
        return await asyncio.to_thread(self.store.put, name, media_type, data, read.text, read.note)

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
