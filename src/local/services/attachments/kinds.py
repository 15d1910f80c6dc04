"""What kind of file an attachment is: from its first bytes, and from its name where those say no more than text."""

from __future__ import annotations

import re
from pathlib import PurePath

from local.errors import AttachmentRefused

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
    """Whether it is for a model's eyes."""
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
