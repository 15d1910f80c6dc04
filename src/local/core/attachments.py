"""Attachments: reading, checking and storing the files that come with questions."""

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
from pathlib import Path, PurePath
from typing import Literal

from pydantic_core import from_json, to_json

from local.core.errors import AttachmentMissing, AttachmentRefused, StoreFailed, StoreFull
from local.core.excerpts import part_end
from local.core.files import OWNER, locked_folder
from local.core.pdf import pdf_pages, too_slow
from local.core.web_text import Document, read_article
from local.core.web_url import MediaType

# The kind of an attached file, and its text. Slow; runs in a thread.

PDF, HTML = "application/pdf", "text/html"
READABLE = "text, Markdown, HTML, PDF, source code and PNG, JPEG, GIF or WebP pictures"

_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TEXTS = {".md": "text/markdown", ".markdown": "text/markdown", ".csv": "text/csv", ".json": "application/json"}
_HTML_NAMES = frozenset({".html", ".htm", ".xhtml"})
_HTML_START = re.compile(rb"\s*(?:<!doctype html|<html)", re.IGNORECASE)
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PDF_WITHIN = 1024  # readers ignore anything before the mark
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r\x1b")
_CONTROLS_ALLOWED = 0.01  # of the first bytes; a text in any charset has next to none


def kind_of(name: str, data: bytes) -> str:
    """Return the media type. Raises `AttachmentRefused` (unsupported_media_type) for data that is neither text nor of a
    known type.
    """
    if picture := picture_type(data):
        return picture
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return PDF
    suffix = PurePath(name).suffix.lower()
    if not _is_text(data[:65_536]):
        raise AttachmentRefused(name, f"cannot be read; readable are {READABLE}", kind="unsupported_media_type")
    if suffix in _HTML_NAMES or _HTML_START.match(data[:_PDF_WITHIN]):
        return HTML
    return _TEXTS.get(suffix, "text/plain")


def is_picture(media_type: str) -> bool:
    """Whether a file of this type is for a model's eyes."""
    return media_type.startswith("image/")


def picture_type(data: bytes) -> str | None:
    """The media type of a picture that browsers and models show, by its first bytes; None for anything else."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES.items() if data.startswith(start)), None)


MOST_PIXELS = 100_000_000  # a picture of a few kilobytes can fill the memory of a program that shows it


def pixels_of(data: bytes) -> int:
    """Return the number of pixels of a picture, from its header; 0 if that is not readable."""

    def number(start: int, end: int, order: Literal["big", "little"] = "little") -> int:
        return int.from_bytes(data[start:end], order)

    if data.startswith(b"\x89PNG"):
        return number(16, 20, "big") * number(20, 24, "big")
    if data.startswith(b"GIF"):
        return number(6, 8) * number(8, 10)
    match data[12:16]:
        case b"VP8X":
            return (1 + number(24, 27)) * (1 + number(27, 30))
        case b"VP8L":
            return (1 + (number(21, 25) & 0x3FFF)) * (1 + (number(21, 25) >> 14 & 0x3FFF))
        case b"VP8 ":
            return (number(26, 28) & 0x3FFF) * (number(28, 30) & 0x3FFF)
    at = 2  # of a JPEG: its parts, each with its length, up to the one with the size
    while data[at : at + 1] == b"\xff" and len(data) > at + 9:
        if data[at + 1] in _JPEG_SIZES:
            return number(at + 5, at + 7, "big") * number(at + 7, at + 9, "big")
        at += 2 + number(at + 2, at + 4, "big")
    return 0


def _is_text(beginning: bytes) -> bool:
    if beginning.startswith(_UTF_16_MARKS):
        return True
    controls = len(beginning) - len(beginning.translate(None, _CONTROLS))
    return b"\0" not in beginning and controls <= len(beginning) * _CONTROLS_ALLOWED


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """The limits for one file: its bytes, characters of its text, pages of a PDF, and seconds to read it."""

    max_bytes: int = 20 * 1024 * 1024
    max_characters: int = 400_000
    max_pages: int = 500
    max_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Extract:
    """The text extracted from a file. `note` says which part was not read; it is empty if all was."""

    text: str
    note: str = ""


def extract(name: str, media_type: str, data: bytes, limits: AttachmentLimits) -> Extract:
    """Read a file that is not a picture.

    Raises `AttachmentRefused` (invalid) if there is no text in it or it is damaged.
    """
    if media_type == PDF:
        pages, note = pdf_pages(name, data, limits.max_pages, limits.max_characters, limits.max_seconds)
        text = "\n\n".join(filter(None, pages))
    else:
        article = read_article(Document("", MediaType(media_type), data))
        title = article.title if article.title not in article.text[:1000] else ""
        text, note = "\n\n".join(filter(None, (title, article.text))), ""
    if not text.strip():
        hint = "; if it is scanned, attach its pages as pictures" if media_type == PDF else ""
        raise AttachmentRefused(name, f"holds no text that can be read{hint}", kind="invalid")
    if len(text) > limits.max_characters:
        end = part_end(text, 0, limits.max_characters)
        text, note = text[:end], f"its first {end:,} characters"
    return Extract(text, note)


# The store of attached files: one file for each, named by the SHA-256 of its content, and never changed.

_ID = re.compile(r"[0-9a-f]{64}")
_OF = ".of."
UNMARKED = OWNER  # the user of a file without a mark


@dataclass(frozen=True, slots=True)
class Attachment:
    """One stored file. `size` is in bytes; `text` is the extracted text, empty for a picture; `note` says which part of
    the text it is, unless it is all.
    """

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
        """Store a user's file durably; a file with equal content is stored once, for all its users. Raises
        `StoreFailed`.
        """
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
        """Return the description of a file. Raises `AttachmentMissing` if it is missing or damaged."""
        return self.read(attachment_id)[0]

    def read(self, attachment_id: str) -> tuple[Attachment, bytes]:
        """Return the description of a file and its bytes. Raises as `get` does."""
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
        """Return the users of a file."""
        marks = self._directory.glob(f"{attachment_id}{_OF}*") if _ID.fullmatch(attachment_id) else ()
        return frozenset(mark.name.partition(_OF)[2] for mark in marks) or frozenset({UNMARKED})

    def size_of(self, user_id: str) -> int:
        """Return the bytes of a user's files; not for the owner's, some of which have no mark."""
        size = 0
        for mark in self._directory.glob(f"*{_OF}{user_id}"):
            with suppress(OSError):
                size += (self._directory / mark.name.partition(_OF)[0]).stat().st_size
        return size

    def delete(self, attachment_id: str) -> None:
        """Delete a file permanently, for all users. Raises `AttachmentMissing`."""
        if not _ID.fullmatch(attachment_id):
            raise AttachmentMissing(attachment_id)
        try:
            (self._directory / attachment_id).unlink()
        except OSError:
            raise AttachmentMissing(attachment_id) from None
        for mark in self._directory.glob(f"{attachment_id}{_OF}*"):
            mark.unlink(missing_ok=True)

    def release(self, attachment_id: str, user_id: str) -> None:
        """Release a file for a user: it is removed unless others use it, too. Raises `AttachmentMissing`."""
        with self._alone():
            if self.owners(attachment_id) <= {user_id}:
                self.delete(attachment_id)
            else:
                (self._directory / f"{attachment_id}{_OF}{user_id}").unlink(missing_ok=True)

    def discard(self, named: Iterable[tuple[str, str | None, bool]]) -> None:
        """Release files that a user's queries no longer name, with whether others name them (`NamedFile`), as far as
        they exist. One that this user has not sent was lent by the owner, and is removed if that was the last use.
        """
        for attachment_id, user_id, is_last in named:
            name = user_id or UNMARKED
            owners = self.owners(attachment_id)
            with suppress(AttachmentMissing):
                if name in owners:
                    self.release(attachment_id, name)
                elif is_last:
                    self.release(attachment_id, UNMARKED)

    def _mark(self, path: Path, user_id: str) -> None:
        """Record the users of a file, unless it is only the owner's."""
        is_marked = any(path.parent.glob(f"{path.name}{_OF}*"))
        if path.exists() and not is_marked and user_id != UNMARKED:
            path.with_name(f"{path.name}{_OF}{UNMARKED}").touch(mode=0o600)
        if is_marked or user_id != UNMARKED:
            path.with_name(f"{path.name}{_OF}{user_id}").touch(mode=0o600)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock that admits one writer at a time, of all processes."""
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
# Control characters, line ends, and marks that change the direction of what follows: `gpj.exe` would show as `exe.jpg`.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


class AttachmentImporter:
    """The importer of an `AttachmentStore`: it checks, reads and stores files."""

    def __init__(self, store: AttachmentStore, limits: AttachmentLimits) -> None:
        self.store, self.limits = store, limits
        self._places = asyncio.Semaphore(AT_ONCE)

    async def add(self, name: str, data: bytes, user_id: str = UNMARKED) -> Attachment:
        """Keep a user's file; of its name the last part counts. Raises `AttachmentRefused`, `StoreFailed`."""
        name = clean_name(name)
        if len(data) > self.limits.max_bytes:
            reason = f"has {len(data):,} bytes, at most {self.limits.max_bytes:,} are accepted"
            raise AttachmentRefused(name, reason, kind="too_large")
        if not data:
            raise AttachmentRefused(name, "is empty", kind="invalid")
        media_type = kind_of(name, data)
        if is_picture(media_type) and (pixels := pixels_of(data)) > MOST_PIXELS:
            reason = f"has {pixels:,} pixels, at most {MOST_PIXELS:,} are accepted; attach it smaller"
            raise AttachmentRefused(name, reason, kind="too_large")
        read = Extract("") if is_picture(media_type) else await self._read(name, media_type, data)
        kept = partial(self.store.put, name, media_type, data, read.text, read.note, user_id=user_id)
        return await asyncio.to_thread(kept)

    async def _read(self, name: str, media_type: str, data: bytes) -> Extract:
        seconds = self.limits.max_seconds
        try:
            async with self._places, asyncio.timeout(seconds):
                return await asyncio.to_thread(extract, name, media_type, data, self.limits)
        except TimeoutError:
            raise too_slow(name, seconds) from None


def clean_name(name: str) -> str:
    """A file name on one line, without its folders."""
    last = re.split(r"[/\\]", name)[-1]
    return " ".join(_UNPRINTABLE.sub(" ", last).split())[:MAX_NAME] or "file"


@dataclass(frozen=True, slots=True)
class FileView:
    """An attachment as the API shows it. `size` is in bytes, `characters` is the length of the extracted text, and
    `note` says which part of the file that is, unless it is all.
    """

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
        """Read a file and store it for a user; a file with equal content is stored once, for all its users. Raises
        `AttachmentRefused`, `StoreFailed`.
        """
        return _view(await self._intake.add(name, data, user_id))

    def size_of(self, user_id: str) -> int:
        """As `AttachmentStore.size_of`. Blocks."""
        return self._store.size_of(user_id)

    async def look_up(self, attachment_id: str, user_id: str | None = None) -> FileView:
        """Return the description of a file; with `user_id` only if it is that user's."""
        return _view(await asyncio.to_thread(self._get, attachment_id, user_id))

    async def content(self, attachment_id: str, user_id: str | None = None) -> tuple[FileView, bytes]:
        """Return the description of a file and its bytes; with `user_id` only if it is that user's."""
        kept, data = await asyncio.to_thread(self._read, attachment_id, user_id)
        return _view(kept), data

    async def delete(self, attachment_id: str, user_id: str | None = None) -> None:
        """Delete a file permanently; with `user_id` only for that user: others who uploaded it keep it."""
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
