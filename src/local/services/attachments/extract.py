"""What kind of file an attachment is, and its text. Slow; runs in a thread."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from local.errors import AttachmentRefused
from local.services.pages.article import read_article
from local.services.pages.fetcher import Document
from local.services.pages.media_type import MediaType
from local.services.pages.page_reader import part_end

PDF, HTML = "application/pdf", "text/html"
READABLE = "text, Markdown, HTML, PDF, source code and PNG, JPEG, GIF or WebP pictures"

_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_TEXTS = {".md": "text/markdown", ".markdown": "text/markdown", ".csv": "text/csv", ".json": "application/json"}
_HTML_NAMES = frozenset({".html", ".htm", ".xhtml"})
_HTML_START = re.compile(rb"\s*(?:<!doctype html|<html)", re.IGNORECASE)
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PDF_WITHIN = 1024  # what stands before the mark, readers ignore
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r\x1b")
_CONTROLS_ALLOWED = 0.01  # of the first bytes; a text in any charset has next to none


def kind_of(name: str, data: bytes) -> str:
    """The media type. Raises `AttachmentRefused` (unsupported_media_type) for what is neither text nor known."""
    if picture := _picture(data):
        return picture
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return PDF
    suffix = PurePath(name).suffix.lower()
    if not _is_text(data[:65_536]):
        raise AttachmentRefused(name, f"cannot be read; what can is {READABLE}", kind="unsupported_media_type")
    if suffix in _HTML_NAMES or _HTML_START.match(data[:_PDF_WITHIN]):
        return HTML
    return _TEXTS.get(suffix, "text/plain")


def is_picture(media_type: str) -> bool:
    """Whether a file of this type is for a model's eyes."""
    return media_type.startswith("image/")


def _picture(data: bytes) -> str | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES.items() if data.startswith(start)), None)


def _is_text(beginning: bytes) -> bool:
    if beginning.startswith(_UTF_16_MARKS):
        return True
    controls = len(beginning) - len(beginning.translate(None, _CONTROLS))
    return b"\0" not in beginning and controls <= len(beginning) * _CONTROLS_ALLOWED


def pdf_pages(
    name: str, data: bytes, max_pages: int, max_characters: int, stopped: Callable[[], bool]
) -> tuple[list[str], str]:
    """The texts of the first pages, as far as the limits go, and a note on what they left out, if anything.

    Raises `AttachmentRefused`: unsupported_media_type without the package pypdf, invalid for a file that it cannot
    read.
    """
    try:
        import pypdf
    except ImportError:
        reason = "PDF files are read with the package pypdf, which is not installed; attach the text instead"
        raise AttachmentRefused(name, reason, kind="unsupported_media_type") from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it complains about files that it can read
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise AttachmentRefused(name, "is protected by a password; save a copy without one", kind="invalid")
        return _read_pages(reader, max_pages, max_characters, stopped)
    except AttachmentRefused:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file can trip any part of the parser
        reason = f"is no PDF that can be read ({type(error).__name__}: {error})"
        raise AttachmentRefused(name, reason[:300], kind="invalid") from None


def _read_pages(reader: Any, max_pages: int, max_characters: int, stopped: Callable[[], bool]) -> tuple[list[str], str]:
    total, texts, length = len(reader.pages), list[str](), 0
    for number in range(min(total, max_pages)):
        if stopped() or length > max_characters:
            break
        texts.append(reader.pages[number].extract_text().strip())
        length += len(texts[-1])
    note = "" if len(texts) == total else f"its first {len(texts)} of {total} pages"
    return texts, note


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """What is taken of one file at most: bytes of it, characters of its text, pages of a PDF; and seconds."""

    max_bytes: int = 20 * 1024 * 1024
    max_characters: int = 400_000
    max_pages: int = 500
    max_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Extract:
    """What was read. `note` says in words what was not, and is empty if that is nothing."""

    text: str
    note: str = ""


def extract(name: str, media_type: str, data: bytes, limits: AttachmentLimits, stopped: Callable[[], bool]) -> Extract:
    """Read a file that is no picture; ends soon after `stopped()`.

    Raises `AttachmentRefused` (invalid) if there is no text in it or it is damaged.
    """
    if media_type == PDF:
        pages, note = pdf_pages(name, data, limits.max_pages, limits.max_characters, stopped)
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
