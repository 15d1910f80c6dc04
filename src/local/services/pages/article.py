"""The readable part of one document: title, main text and links. Slow; runs in a thread."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from local.services.pages.feed import TYPES as FEED_TYPES
from local.services.pages.feed import feed_entries
from local.services.pages.fetcher import Document
from local.services.pages.main_text import main_text
from local.services.pages.markup import is_tame, parse_markup, strip_markup
from local.services.pages.media_type import decode_page
from local.services.pages.reading_limit import count_steps, text_of
from local.services.pages.unseen import drop_unseen

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

_MAX_LINKS = 50
_MAX_TITLE = 300
_LONGEST_URL = 8000  # characters
_XML_DECLARATION = re.compile(r"<\?xml[^<>]*>", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
_BLANK_LINES = re.compile(r"\n{3,}")


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
        return (document.media_type.name in FEED_TYPES and _feed(source, document.url)) or Article("", _clean(source))
    html = _XML_DECLARATION.sub("", source).replace("\0", "")
    tree = parse_markup(html) if "<" in html and is_tame(html) else None
    if tree is None:
        title = _TITLE.search(html)
        return Article(_one_line(title[1]) if title else "", _clean(strip_markup(html)))
    drop_unseen(tree)
    return Article(_title(tree), _clean(main_text(tree)), _links(tree, document.url))


def _feed(source: str, page_url: str) -> Article | None:
    """A feed as an article, with its entries for links; None for any other XML."""
    entries = feed_entries(source)
    if not entries:
        return None
    found = {url: entry.title for entry in entries[1:] if (url := _absolute(page_url, entry.url))}
    links = tuple(Link(_one_line(title) or url, url) for url, title in found.items())
    text = "\n\n".join(entry.text() for entry in entries)
    return Article(_one_line(entries[0].title), _clean(text), links[:_MAX_LINKS])


def _title(tree: HtmlElement) -> str:
    """The title, or else the first heading; a picture in the page may have a title, too."""
    elements = [*tree.xpath("//title[not(ancestor::svg)]")[:1], *tree.xpath("//h1")[:1]]
    return next((text for element in elements if (text := _one_line(text_of(element)))), "")


def _links(tree: HtmlElement, page_url: str) -> tuple[Link, ...]:
    base = tree.find(".//base[@href]")
    base_url = _absolute(page_url, base.get("href")) if base is not None else None
    found: dict[str, Link] = {}
    for anchor in tree.xpath(".//a[@href]")[: 10 * _MAX_LINKS]:
        url = _absolute(base_url or page_url, anchor.get("href"))
        text = _one_line(text_of(anchor))
        if url and text:
            found.setdefault(url, Link(text, url))
    return tuple(found.values())[:_MAX_LINKS]


def _absolute(base_url: str, reference: str) -> str | None:
    """An http(s) address without its fragment, or None: for another scheme, a place in the same page, and what no
    server takes any more."""
    if len(reference) > _LONGEST_URL:
        return None
    count_steps(len(base_url) + len(reference))
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
