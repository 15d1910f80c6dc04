"""The readable part of one document: title, main text and links. Slow; runs in a thread."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from local.services.fetcher import Document
from local.services.page_charset import decode_page
from local.services.page_markup import is_tame, strip_markup

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

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
