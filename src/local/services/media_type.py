"""What kind of document a response is: from its Content-Type header, and from its first bytes where that lies."""

from __future__ import annotations

import re
from dataclasses import dataclass

from local.errors import ToolError

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

_APPLICATION_TEXT = re.compile(r"application/(?:[\w.-]+\+)?(?:json|xml)|application/x-ndjson")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_SIGNATURES = {
    b"%PDF-": "application/pdf",
    b"\x89PNG\r\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
}
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class MediaType:
    """A content type in lower case without parameters, and the charset it declares, if any."""

    name: str
    charset: str | None = None

    @property
    def is_html(self) -> bool:
        """Whether the text is markup for a browser."""
        return self.name in HTML_TYPES


def readable_type(header: str) -> MediaType:
    """The type a Content-Type header names (none: HTML); `ToolError` of kind unsupported_type if it is not text."""
    name = header.partition(";")[0].strip().lower() or "text/html"
    if not name.startswith("text/") and name not in HTML_TYPES and not _APPLICATION_TEXT.fullmatch(name):
        raise _unsupported(name[:80])
    charset = _CHARSET.search(header)
    return MediaType(name, charset[1] if charset else None)


def check_is_text(body: bytes, charset: str | None) -> None:
    """`ToolError` of kind unsupported_type if a body that claims to be text is a binary format."""
    for signature, name in _SIGNATURES.items():
        if body.startswith(signature):
            raise _unsupported(name)
    wide = body.startswith(_UTF_16_MARKS) or (charset or "").lower().startswith(("utf-16", "utf-32"))
    if b"\0" in body[:1024] and not wide:
        raise _unsupported("binary data")


def _unsupported(name: str) -> ToolError:
    return ToolError(
        f"the address leads to {name}, which cannot be read; only HTML, plain text, Markdown, JSON and XML can",
        kind="unsupported_type",
    )
