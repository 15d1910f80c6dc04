"""Takes a file in: looks what it is, reads it, keeps it."""

from __future__ import annotations

import asyncio
import re
import threading

from local.errors import AttachmentRefused
from local.services.attachments.extract import Extract, Limits, extract
from local.services.attachments.kinds import is_picture, kind_of
from local.services.attachments.store import Attachment, AttachmentStore

MAX_NAME = 200
AT_ONCE = 2  # reading a long PDF keeps a core busy
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]+")


class Intake:
    """The way into an `AttachmentStore`."""

    def __init__(self, store: AttachmentStore, limits: Limits) -> None:
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
