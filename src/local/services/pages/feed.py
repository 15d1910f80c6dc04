"""A feed (RSS 0.9 to 2.0, Atom) as text: its entries in their order, each with its title, time, address and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.services.pages.markup import strip_markup

if TYPE_CHECKING:
    from lxml.etree import _Element  # type: ignore[import-untyped]  # has no type stubs of its own

TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/xml", "text/xml"})
_ROOTS = frozenset({"rss", "feed", "RDF"})
_DATES = frozenset({"pubDate", "published", "updated", "date"})
_BODIES = ("encoded", "content", "description", "summary", "subtitle")  # the fullest first
_DECLARATION = re.compile(r"<\?xml[^<>]*>")


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry, or what the feed says of itself. Each field may be empty; `url` may be relative."""

    title: str
    date: str
    url: str
    body: str

    def text(self) -> str:
        """The entry's fields, each on lines of its own."""
        return "\n".join(filter(None, (self.title, self.date, self.url, self.body if self.body != self.title else "")))


def feed_entries(source: str) -> list[FeedEntry]:
    """The feed itself and then its entries; none if the source is not a feed."""
    from lxml import etree  # type: ignore[import-untyped]  # has no type stubs of its own

    # No entity is expanded and nothing is loaded; what is nested deeper than 256 is left out.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, remove_comments=True)
    try:
        root = etree.fromstring(_DECLARATION.sub("", source, count=1).strip().encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError):
        return []
    if root is None or _name(root) not in _ROOTS:
        return []
    about = next((child for child in root if _name(child) == "channel"), root)
    entries = (one for each in {about: 0, root: 0} for one in each if _name(one) in ("item", "entry"))
    return [_entry(about), *map(_entry, entries)]


def _name(element: _Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _entry(element: _Element) -> FeedEntry:
    found: dict[str, str] = {}
    for name, text in _fields(element):
        if text:
            found.setdefault(name, text)
    body = next((found[name] for name in _BODIES if name in found), "")
    date = next((text for name, text in found.items() if name in _DATES), "")
    return FeedEntry(found.get("title", ""), date, found.get("link", ""), body)


def _fields(element: _Element) -> Iterator[tuple[str, str]]:
    for child in element:
        name = _name(child)
        if name == "link":
            if child.get("rel") in (None, "alternate"):
                yield name, (child.get("href") or child.text or "").strip()
        elif name in _BODIES or name in _DATES or name == "title":
            yield name, _plain("".join(child.itertext()))


def _plain(text: str) -> str:
    lines = map(str.strip, (strip_markup(text) if "<" in text or "&" in text else text).split("\n"))
    return "\n".join(filter(None, lines))
