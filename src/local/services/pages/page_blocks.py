"""A page as blocks of text in the order of reading, without what stands around its content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.services.pages.reading_limit import text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

PROSE = 60  # characters; shorter blocks are headings, buttons, names
_BESIDE = frozenset(
    {"script", "style", "template", "noscript", "svg", "nav", "footer", "aside", "button", "select", "iframe", "head"}
    | {"object", "canvas", "video", "audio", "menu", "textarea", "datalist", "title"}
    | {"amp-consent", "amp-ad", "amp-sidebar"}
)
_BESIDE_ROLES = frozenset(
    {"navigation", "contentinfo", "search", "complementary", "menu", "menubar", "alertdialog", "dialog"}
)
_BESIDE_NAMES = re.compile(
    r"(?:^|[\s_-])(?:(?:sub|top|main|site)?nav(?:bar|igation)?|(?:main|top|side)?menu|breadcrumbs?|\w*side-?bar(?:wrapper)?|cookies?|"
    r"consent|share|sharing|social|related|recommended|newsletter|subscribe|(?:site|page)?footer|promo|adverts?|ads?|"
    r"banner|pagination|pager|toolbar|topbar|skip(?:-?link)?|announcement|notification|toc|tableofcontents|navbox|"
    r"catlinks|post-?profile|user-?info|signature|foot|signed-out)(?:[\s_-]|$)",
    re.IGNORECASE,
)
_NAMED = frozenset({"div", "ul", "ol", "section", "p", "span", "table", "td", "dl", "form", "header"})
_COMMENT_NAMES = re.compile(
    r"(?:^|[\s_-])comment(?:s|ary-?list|list|-)?(?:[\s_-]|$)|^comment(?!ary)|disqus", re.IGNORECASE
)
_BLOCKS = frozenset(
    {"address", "article", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset"}
    | {"figcaption", "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li", "main", "ol"}
    | {"p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_IN_CELLS = "|".join(f".//{tag}" for tag in ("table", "ul", "ol", "h1", "h2", "h3", "h4", "pre", "p[2]", "div[2]"))
_CONTENT_OF_FORMS = "boolean(.//p|.//table|.//li|.//article|.//pre|.//h1|.//h2|.//h3)"  # some wrap all of the page
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class PageBlock:
    """One paragraph, heading, item, row or listing. `linked` is how many of its characters lie in links."""

    text: str
    linked: int = 0
    commented: bool = False
    """Whether it stands in an element called comment."""

    @property
    def is_link(self) -> bool:
        """Whether the block is a place to go rather than something to read."""
        return self.linked >= 0.8 * len(self.text)

    @property
    def is_prose(self) -> bool:
        """Whether the block is a text of its own."""
        return len(self.text) >= PROSE and self.linked * 2 < len(self.text)


def page_blocks(tree: HtmlElement) -> list[PageBlock]:
    """The blocks of a tree, without menus, side columns and footers as far as elements say that they are such."""
    body = tree.find("body")
    return _Walk(tree if body is None else body).blocks


def is_commented(element: HtmlElement) -> bool:
    """Whether an element is called comment."""
    return any(_COMMENT_NAMES.search((element.get(name) or "")[:500]) for name in ("id", "class"))


class _Walk:
    """Collects the text of inline elements until a block ends; recursion is as deep as a tame page."""

    def __init__(self, body: HtmlElement) -> None:
        self.blocks: list[PageBlock] = []
        self._half = len(text_of(body)) / 2
        self._pieces: list[str] = []
        self._linked = 0
        self._links = self._comments = 0
        self._inside(body)
        self._end()

    def _inside(self, element: HtmlElement) -> None:
        self._say(element.text)
        for child in element:
            self._child(child)
            self._say(child.tail)

    def _child(self, child: HtmlElement) -> None:
        if child.tag == "br":
            self._pieces.append("\n")
        elif child.tag not in _BLOCKS:
            if not self._is_beside(child):
                self._counted(child)
        else:
            self._end()
            if not self._is_beside(child):
                self._block(child)
                self._end()

    def _counted(self, child: HtmlElement) -> None:
        linked, commented = child.tag == "a", is_commented(child)
        self._links += linked
        self._comments += commented
        self._inside(child)
        self._links -= linked
        self._comments -= commented

    def _block(self, child: HtmlElement) -> None:
        if child.tag == "pre":
            self._add(text_of(child).strip("\n"), 0)
        elif child.tag == "tr" and not child.xpath(_IN_CELLS):
            self._row(child)
        else:
            if child.tag == "li":
                self._pieces.append("- ")
            self._counted(child)
            if child.tag in _HEADINGS:
                self._linked = 0  # many link to themselves

    def _row(self, row: HtmlElement) -> None:
        cells = [_SPACES.sub(" ", text_of(cell)).strip() for cell in row]
        linked = sum(len(text_of(anchor)) for anchor in row.iter("a"))
        self._add(" | ".join(cells) if any(cells) else "", linked)

    def _end(self) -> None:
        if self._pieces:
            lines = (_SPACES.sub(" ", line).strip() for line in "".join(self._pieces).split("\n"))
            text = "\n".join(line for line in lines if line)
            self._add("" if text == "-" else text, self._linked)
            self._pieces, self._linked = [], 0

    def _add(self, text: str, linked: int) -> None:
        if text:
            self.blocks.append(PageBlock(text, linked, self._comments > 0))

    def _say(self, text: str | None) -> None:
        if text:
            self._pieces.append(_SPACES.sub(" ", text))
            self._linked += len(text.strip()) if self._links else 0

    def _is_beside(self, element: HtmlElement) -> bool:
        """By its tag, role or name, unless it holds half of the page: then it is called so by mistake."""
        if element.tag in _BESIDE or element.get("role") in _BESIDE_ROLES:
            return element.tag not in ("footer", "aside") or len(text_of(element)) <= self._half
        if element.tag == "header" and next(element.iterancestors("article", "main"), None) is None:
            return element.find(".//h1") is None
        if element.tag == "form" and not element.xpath(_CONTENT_OF_FORMS):
            return len(text_of(element)) <= self._half
        names = (element.get("id"), element.get("class"))
        named = element.tag in _NAMED and any(_BESIDE_NAMES.search(name[:500]) for name in names if name)
        return named and len(text_of(element)) <= self._half


def joined(blocks: Iterable[PageBlock]) -> str:
    """The text of blocks, each on lines of its own."""
    return "\n".join(block.text for block in blocks)
