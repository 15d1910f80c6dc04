"""What kind of document a response is, and its bytes as text: by what is declared, and by looking where that lies."""

from __future__ import annotations

import codecs
import re
import unicodedata
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


_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DECLARATION = re.compile(
    rb"<meta[^<>]{0,400}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})|<\?xml[^<>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
_DECLARED_WITHIN = 4096
_SAMPLE = 32_768
# What browsers read for these labels (WHATWG Encoding): the common superset, because pages use its characters.
_SUPERSETS = {
    **{"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874"},
    **{"gb2312": "gb18030", "gbk": "gb18030", "shift-jis": "cp932", "euc-kr": "cp949"},
}
# What detection takes for the Latin letters of one language it often means another; these it knows.
_LAST = "cp1252"
_TAG = re.compile(rb"<[^<>]{0,1000}>")
_EASTERN = frozenset({("cp1250", "Czech"), ("cp1250", "Slovak"), ("cp1254", "Turkish")})
_SIGN_IN_WORD = re.compile("[a-z][\u00b3\u00b9\u00bf\u00bc\u00be\u00a3\u00af\u00ba\ufffd][a-z]")
# Python calls these encodings too; no page is written in them and some take quadratic time.
_NOT_FOR_PAGES = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "utf-7"})


def decode_page(body: bytes, declared: str | None) -> str:
    """Decode by byte order mark, as UTF-8 if it is, by header or meta label if that fits, else by detection."""
    for mark, encoding in _MARKS.items():
        if body.startswith(mark):
            return body.decode(encoding, "replace")
    if not body.isascii():
        try:
            # Whatever a page declares: text in another charset is practically never valid UTF-8 by chance.
            return body.decode("utf-8")
        except UnicodeDecodeError:
            pass  # it is something else, found out below
    for label in (declared, _label_inside(body)):
        encoding = _known(label, body)
        if encoding and _fits(text := body.decode(encoding, "replace")):
            return text
    return body.decode(_detected(body), "replace")


def _label_inside(body: bytes) -> str | None:
    match = _DECLARATION.search(body[:_DECLARED_WITHIN])
    return (match[1] or match[2]).decode("ascii", "replace") if match else None


def _known(label: str | None, body: bytes) -> str:
    """The Python codec for a label, or "" if there is none to use."""
    try:
        name = codecs.lookup(label or "").name.replace("_", "-")
        b" ".decode(name, "replace")  # refuses codecs that are not text, such as zlib
    except (LookupError, ValueError):
        return ""
    wide = name.startswith(("utf-16", "utf-32"))
    return "" if name in _NOT_FOR_PAGES or (wide and b"\0" not in body) else _SUPERSETS.get(name, name)


def _fits(text: str) -> bool:
    return text.count("\ufffd") * 100 <= len(text)


def _detected(body: bytes) -> str:
    """What else it may be, and windows-1252 where that is no more than a guess, as browsers have it."""
    if body.isascii():
        return "utf-8"
    import charset_normalizer  # with trafilatura; few pages need it

    best = charset_normalizer.from_bytes(_TAG.sub(b" ", body[:_SAMPLE])).best()
    # Wide encodings without a byte order mark are its guess for short noise; a text would show NULs and was refused.
    if best is None or best.encoding.startswith(("utf_16", "utf_32")):
        return _LAST
    return _LAST if _is_latin(best.encoding) and not _is_sure(best.encoding, best.language, body) else best.encoding


def _is_latin(encoding: str) -> bool:
    """Whether it is one of the many charsets whose upper half is Latin letters, which detection mixes up."""
    letters = [letter for letter in bytes(range(0xC0, 0x100)).decode(encoding, "ignore") if letter.isalpha()]
    return len(letters) > 32 and all(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)


def _is_sure(encoding: str, language: str, body: bytes) -> bool:
    """Whether a language of the east is really meant: its letters are signs inside words in windows-1252."""
    return (encoding, language) in _EASTERN or _SIGN_IN_WORD.search(body[:_SAMPLE].decode(_LAST, "replace")) is not None
