"""The outline of any file, by its name and by what it holds."""

from __future__ import annotations

from pathlib import PurePosixPath

from local.errors import AttachmentRefused, ToolError
from local.services.attachments.extract import pdf_pages
from local.services.reading.code_outline import LANGUAGES, code_outline
from local.services.reading.data_outline import json_outline, log_outline, looks_like_log, table_outline
from local.services.reading.markup_outline import markup_outline, style_outline
from local.services.reading.outline import Outline, nested
from local.services.reading.picture import picture_facts
from local.services.reading.text_outline import text_outline

MARKUP = (".html", ".htm", ".xhtml", ".svg", ".xml", ".vue")
TABLES = {".csv": None, ".tsv": "\t"}
MOST_PAGES, MOST_CHARS_OF_PDF = 500, 2_000_000


def file_outline(name: str, content: bytes) -> Outline:
    """What that file is made of. Raises `ToolError` (not_text) for what nothing can be told of."""
    suffix = PurePosixPath(name).suffix.lower()
    if content.startswith(b"%PDF-"):
        return _of_pdf(name, content)
    if facts := picture_facts(content):
        return Outline("picture", (), facts=[facts])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = _in_another_encoding(name, content)
    return _of_text(suffix, content, text)


def _of_text(suffix: str, content: bytes, text: str) -> Outline:
    lines = text.splitlines()
    if suffix in LANGUAGES:
        return code_outline(suffix, content, lines)
    if suffix in MARKUP:
        return markup_outline(text, lines)
    if suffix in (".css", ".scss", ".less"):
        return style_outline(lines)
    if suffix in TABLES:
        return table_outline(text, lines, TABLES[suffix])
    if (suffix in (".json", ".ipynb", ".geojson") or text[:1] in "{[") and (found := json_outline(text, lines)):
        return found
    if suffix == ".log" or looks_like_log(lines):
        return log_outline(lines)
    return text_outline(suffix, lines)


def _in_another_encoding(name: str, content: bytes) -> str:
    if b"\0" in content[:8192] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(f"{name} is no text, and no PDF and no picture: {len(content)} bytes", kind="not_text")
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "cp1252"
    return content.decode(encoding, errors="replace")


def _of_pdf(name: str, content: bytes) -> Outline:
    try:
        texts, note = pdf_pages(name, content, MOST_PAGES, MOST_CHARS_OF_PDF, lambda: False)
    except AttachmentRefused as error:
        raise ToolError(str(error), kind="not_text") from None
    lines, pages = list[str](), list[tuple[int, int, str]]()
    for number, page in enumerate(texts, start=1):
        first = next((line.strip() for line in page.splitlines() if line.strip()), "")
        pages.append((len(lines) + 1, 1, f"page {number}: {first[:60]}"))
        lines += page.splitlines() or [""]
    return Outline("PDF", lines, nested(pages, len(lines)), [note] if note else [])
