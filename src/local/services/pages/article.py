"""The readable part of one document: title, main text and links. Slow; runs in a thread."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from local.services.pages.fetcher import Document
from local.services.pages.media_type import decode_page

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

# A tree parser's time grows with elements times their depth, and with the square of one element's attributes. These
# bounds keep extraction below some three seconds; the largest pages people write have about a tenth of them.
_MAX_ELEMENTS = 60_000
_MAX_DEPTH = 240  # libxml2 drops what is deeper than 255
_MAX_DEPTH_SUM = 1_000_000
_MAX_ATTRIBUTES = 200
_CHUNK = 65_536

_TOKEN = re.compile(r"<(/?)([a-z][a-z0-9]*)[^<>]*>|<!?[^<>]*>|[^<]+|<", re.IGNORECASE)
_SILENT = frozenset({"script", "style", "template", "noscript", "svg"})
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u"}
)


class _TooWild(Exception):
    """Ends the look; never leaves this module."""


class _Census:
    """Counts what libxml2 itself reports, so that no trick of quoting makes it count other than the tree parser."""

    def __init__(self) -> None:
        self._elements = self._depth = self._depth_sum = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth += 1
        self._depth_sum += self._depth
        if (
            self._elements > _MAX_ELEMENTS
            or self._depth > _MAX_DEPTH
            or self._depth_sum > _MAX_DEPTH_SUM
            or len(attributes) > _MAX_ATTRIBUTES
        ):
            raise _TooWild

    def end(self, tag: str) -> None:
        self._depth -= 1

    def close(self) -> None: ...


def is_tame(html: str) -> bool:
    """Whether parsers that build a tree can read this page in moderate time without dropping half of it."""
    from lxml import etree  # type: ignore[import-untyped]  # has no type stubs of its own

    parser = etree.HTMLParser(target=_Census(), encoding="utf-8")
    data = html.encode("utf-8", "replace")
    try:
        for offset in range(0, len(data), _CHUNK):
            parser.feed(data[offset : offset + _CHUNK])
        parser.close()
    except (_TooWild, etree.LxmlError):
        return False
    return True


def strip_markup(html: str) -> str:
    """The text between the tags, in one linear pass over the page and with no recursion."""
    pieces: list[str] = []
    silent = ""
    for match in _TOKEN.finditer(html):
        closing, name = match[1], (match[2] or "").lower()
        if silent:
            silent = "" if closing and name == silent else silent
        elif name in _SILENT and not closing:
            silent = name
        elif name:
            pieces.append("" if name in _INLINE else "\n")
        elif match[0] == "<" or not match[0].startswith("<"):
            pieces.append(match[0])
    return unescape("".join(pieces))


_MAX_LINKS = 50
_MAX_TITLE = 300
_XML_DECLARATION = re.compile(r"<\?xml[^<>]*>", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_NO_TEXT_IN = ("script", "style", "template", "noscript", "svg", "nav", "footer", "aside", "form")


@dataclass(frozen=True, slots=True)
class Link:
    """Where a page points to: the words of the link and its absolute http(s) address."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Article:
    """A whole document as text. Each field may be empty: there are pages without."""

    title: str
    text: str
    links: tuple[Link, ...] = ()


def read_article(document: Document) -> Article:
    """Decode a document and take out what a reader came for; never raises for what a page contains."""
    source = decode_page(document.body, document.media_type.charset)
    if not document.media_type.is_html:
        return Article("", _clean(source))
    html = _XML_DECLARATION.sub("", source).replace("\0", "")
    if "<" not in html or not is_tame(html):
        title = _TITLE.search(html)
        return Article(_one_line(title[1]) if title else "", _clean(strip_markup(html)))
    from bs4 import BeautifulSoup
    from bs4.filter import SoupStrainer

    outline = BeautifulSoup(html, "lxml", parse_only=SoupStrainer(["title", "h1", "base", "a"]))
    heading = outline.find("title") or outline.find("h1")
    title_text = _one_line(heading.get_text()) if heading else ""
    return Article(title_text, _clean(_main_text(html)), _links(outline, document.url))


def _main_text(html: str) -> str:
    import trafilatura
    from bs4 import BeautifulSoup

    # What it complains about it also does not return, and then the next reader has its turn.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        text = trafilatura.extract(html, include_comments=False)
    except Exception:  # noqa: BLE001 - a page can trip any of its parsers; what it cannot read the next line reads
        text = None
    if text and not text.isspace():
        return str(text)
    soup = BeautifulSoup(html, "lxml")
    for element in soup.find_all(_NO_TEXT_IN):
        element.decompose()
    return (soup.body or soup).get_text("\n", strip=True)


def _links(outline: BeautifulSoup, page_url: str) -> tuple[Link, ...]:
    base = outline.find("base", href=True)
    base_url = _absolute(page_url, str(base["href"])) if base else None
    found: dict[str, Link] = {}
    for anchor in outline.find_all("a", href=True, limit=10 * _MAX_LINKS):
        url = _absolute(base_url or page_url, str(anchor["href"]))
        text = _one_line(anchor.get_text())
        if url and text:
            found.setdefault(url, Link(text, url))
    return tuple(found.values())[:_MAX_LINKS]


def _absolute(base_url: str, reference: str) -> str | None:
    """An http(s) address without its fragment, or None: for another scheme, and for a place in the same page."""
    try:
        url = urljoin(base_url, reference.strip()).partition("#")[0]
        return url if urlsplit(url).scheme in ("http", "https") and url != base_url else None
    except ValueError:
        return None


def _one_line(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub("", text).split())[:_MAX_TITLE]


def _clean(text: str) -> str:
    """Text without unprintable characters, trailing spaces and piles of empty lines."""
    printable = _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = "\n".join(line.rstrip() for line in printable.split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip()
