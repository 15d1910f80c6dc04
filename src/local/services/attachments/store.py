"""Where attached files are kept: one file for each, named by the SHA-256 of what is in it, and never changed.

A file holds one line of JSON, which says what it is and what text was read of it, and then the bytes that were sent.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import from_json, to_json

from local.errors import AttachmentMissing, StoreFailed
from local.services.attachments.kinds import is_picture

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
        """Whether it is for a model's eyes."""
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
        """The same and the bytes that were sent."""
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
        """Remove those of these files that are there."""
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
