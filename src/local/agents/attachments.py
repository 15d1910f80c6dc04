"""The system's attachments, for doors, which know no services."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from local.errors import AttachmentMissing
from local.protocol.memory_messages import OWNER
from local.services.attachments.extract import AttachmentLimits
from local.services.attachments.store import Attachment, AttachmentImporter, AttachmentStore


@dataclass(frozen=True, slots=True)
class FileView:
    """What a door tells of a file. `size` is in bytes, `characters` is how much text was read of it, and `note` says
    what part of it that is, unless it is all."""

    id: str
    name: str
    media_type: str
    size: int
    characters: int
    note: str

    @property
    def is_picture(self) -> bool:
        """Whether the file is for a model's eyes."""
        return self.media_type.startswith("image/")


class Attachments:
    """The attachments in one data directory. Raises `AttachmentMissing` for an id that is not there."""

    def __init__(self, data_dir: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._store = AttachmentStore(data_dir / "attachments")
        self._intake = AttachmentImporter(self._store, AttachmentLimits(max_bytes=max_bytes))

    async def add(self, name: str, data: bytes, user_id: str = OWNER) -> FileView:
        """Read a file and keep it for a user; the same one twice is one, and that of everybody who has sent it. Raises
        `AttachmentRefused`, `StoreFailed`."""
        return _view(await self._intake.add(name, data, user_id))

    async def look_up(self, attachment_id: str, user_id: str | None = None) -> FileView:
        """What is known of a file; with `user_id` only if it is that user's."""
        return _view(await asyncio.to_thread(self._get, attachment_id, user_id))

    async def content(self, attachment_id: str, user_id: str | None = None) -> tuple[FileView, bytes]:
        """What is known of a file, and the bytes that were sent; with `user_id` only if it is that user's."""
        kept, data = await asyncio.to_thread(self._read, attachment_id, user_id)
        return _view(kept), data

    async def delete(self, attachment_id: str, user_id: str | None = None) -> None:
        """Remove a file for good; with `user_id` as that user's, which leaves it to others who have sent it."""
        await asyncio.to_thread(self._delete, attachment_id, user_id)

    def _get(self, attachment_id: str, user_id: str | None) -> Attachment:
        return self._read(attachment_id, user_id)[0]

    def _read(self, attachment_id: str, user_id: str | None) -> tuple[Attachment, bytes]:
        if user_id is not None and user_id not in self._store.owners(attachment_id):
            raise AttachmentMissing(attachment_id)
        return self._store.read(attachment_id)

    def _delete(self, attachment_id: str, user_id: str | None) -> None:
        self._get(attachment_id, user_id)
        if user_id is None:
            self._store.delete(attachment_id)
        else:
            self._store.release(attachment_id, user_id)


def _view(kept: Attachment) -> FileView:
    return FileView(kept.id, kept.name, kept.media_type, kept.size, len(kept.text), kept.note)
