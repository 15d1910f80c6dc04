"""What trafilatura finds on a page, and how much of it is asked to be compared with what others find."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

# It compares its own finding with that of two other methods, whose time grows with the square of the paragraphs, and
# with the elements times the text between them, of which one keeps copies. These bounds keep that below two seconds and
# some hundred megabytes.
_MOST_PARAGRAPHS = 4_000
_MOST_TEXT_MOVED = 5_000_000_000  # characters
_MOST_TEXT_KEPT = 300_000_000  # characters
_PARAGRAPHS = (
    *(
        "p",
        "div",
        "li",
        "td",
        "th",
        "dd",
        "dt",
        "tr",
        "pre",
        "blockquote",
        "caption",
        "figcaption",
        "figure",
        "section",
    ),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "form", "option", "textarea", "center", "legend", "br"),
)
_DROPPED_LAST_FIRST = ("table", "ul", "div", "aside", "header", "footer", "section", "br")


def extracted_text(tree: HtmlElement) -> str:
    """The main text in trafilatura's view, "" if it finds none."""
    import trafilatura

    # What it complains about it also does not return, and then the blocks have their turn.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    if tree.xpath("boolean(//tr[*[1001]])"):
        return ""  # its time grows with the square of a row's cells
    try:
        return (trafilatura.extract(tree, include_comments=False, fast=_is_laborious(tree)) or "").strip()
    except Exception:  # noqa: BLE001 - a page can trip any of its parsers; what it cannot read the blocks have
        return ""


def _is_laborious(tree: HtmlElement) -> bool:
    """Whether a page is too much for the methods that trafilatura compares itself with."""
    paragraphs = sum(1 for _ in tree.iter(*_PARAGRAPHS))
    return (
        paragraphs > _MOST_PARAGRAPHS
        or _times_text_between(tree) > _MOST_TEXT_MOVED
        or _times_text_between(tree, *_DROPPED_LAST_FIRST) > _MOST_TEXT_KEPT
    )


def _times_text_between(tree: HtmlElement, *tags: str) -> int:
    """The number of elements, times the characters that stand right behind them."""
    behind = [len(element.tail or "") for element in tree.iter(*tags)]
    return len(behind) * sum(behind)
