"""The text of a PDF file, page by page, by the package pypdf where that is installed."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any

from local.core.errors import AttachmentRefused


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
        reason = f"is not a readable PDF ({type(error).__name__}: {error})"
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
