"""The text of an attached file. Slow; runs in a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from local.errors import AttachmentRefused
from local.services.attachments.kinds import PDF
from local.services.attachments.pdf import pdf_pages
from local.services.fetcher import Document
from local.services.media_type import MediaType
from local.services.page_article import read_article
from local.services.page_cut import part_end


@dataclass(frozen=True, slots=True)
class Limits:
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


def extract(name: str, media_type: str, data: bytes, limits: Limits, stopped: Callable[[], bool]) -> Extract:
    """Read a file that is no picture; ends soon after `stopped()`.

    Raises `AttachmentRefused` (invalid) if there is no text in it or it is damaged.
    """
    if media_type == PDF:
        text, note = pdf_pages(name, data, limits.max_pages, limits.max_characters, stopped)
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
