"""Markup: whether it can be read as a tree in moderate time, the tree, and the plain text between the tags."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

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


def parse_markup(html: str) -> HtmlElement | None:
    """The tree of a tame page without comments and instructions, or None if there is nothing to make one of."""
    from lxml import etree
    from lxml.html import HTMLParser, document_fromstring

    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False)
    try:
        return document_fromstring(html.encode("utf-8", "replace"), parser=parser)
    except (etree.LxmlError, ValueError):
        return None
