"""The text that a page is there for: what trafilatura finds, or where that is not it, the page's blocks."""

from __future__ import annotations

import asyncio
import colorsys
import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from lxml.etree import _Element  # type: ignore[import-untyped]  # has no type stubs of its own
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own


# The limits of reading a page: a count of work, which is the same on every machine, and a wide limit of time.

T = TypeVar("T")

MOST_STEPS = 200_000_000
"""The steps after which a page counts as too complicated. A step is a character that is looked at once more; pages that
people write take fewer than ten for each of their characters."""
SECONDS_FACTOR = 4.0
"""A reading may last this many times the seconds of its setting: enough for a slow machine that is busy, too."""
_STEPS_OF_AN_ELEMENT = 20  # what finding an element's text takes, however short it is


class TooMuchWork(Exception):
    """A page takes more steps than a reading may take, or its reader waits no longer."""


class WorkCount:
    """The steps that one reading has taken."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.steps = 0
        self._most = most

    def add(self, steps: int) -> None:
        """Count further steps. `TooMuchWork` above the limit."""
        self.steps += steps
        if self.steps > self._most:
            raise TooMuchWork

    def stop(self) -> None:
        """End the work at the next step that is counted."""
        self._most = -1


_count: ContextVar[WorkCount | None] = ContextVar("work_count", default=None)


def count_steps(steps: int) -> None:
    """Count steps of the reading that runs here, if one does. `TooMuchWork` above its limit."""
    if count := _count.get():
        count.add(steps)


def text_of(element: HtmlElement) -> str:
    """All text in an element; each of its characters is a step."""
    text = str(element.text_content())
    count_steps(len(text) + _STEPS_OF_AN_ELEMENT)
    return text


def counted(work: Callable[[], T], count: WorkCount) -> T:
    """Do `work`, with its steps counted in `count`. `TooMuchWork` above its limit."""
    token = _count.set(count)
    try:
        return work()
    finally:
        _count.reset(token)


@dataclass(frozen=True, slots=True)
class ReadingLimit:
    """At most `most_steps` steps, and at most `SECONDS_FACTOR` times `seconds`."""

    seconds: float
    most_steps: int = MOST_STEPS

    async def within(self, work: Callable[[], T]) -> T:
        """The result of `work`, done in a thread; `TooMuchWork` when a limit is reached.

        The thread is not waited for then: it ends by itself at the next step that it counts.
        """
        count = WorkCount(self.most_steps)
        try:
            async with asyncio.timeout(SECONDS_FACTOR * self.seconds):
                return await asyncio.to_thread(counted, work, count)
        except TimeoutError:
            raise TooMuchWork from None
        finally:
            count.stop()


# Elements that are taken out of a tree, each in its own time however much text stands around them.


def drop_elements(elements: Iterable[HtmlElement]) -> None:
    """Take elements out of their tree, with what is in them; the text behind each stays.

    lxml's `drop_tree` copies all text before an element to add what stands behind it: of many elements among much text
    the time grows with the square. Here what stands behind neighbours is put together first.
    """
    doomed = dict.fromkeys(element for element in elements if element.getparent() is not None)
    for first in [element for element in doomed if element.getprevious() not in doomed]:
        _drop_run(first, doomed)


def _drop_run(first: HtmlElement, doomed: dict[HtmlElement, None]) -> None:
    """Take out an element and those right after it that go, too."""
    parent, before = first.getparent(), first.getprevious()
    run = [first]
    while (following := run[-1].getnext()) is not None and following in doomed:
        run.append(following)
    behind = "".join(element.tail or "" for element in run)
    for element in run:
        element.tail = None
        parent.remove(element)
    joined_to = (parent.text if before is None else before.tail) or ""
    count_steps(len(joined_to) + len(behind))
    if behind and before is not None:
        before.tail = joined_to + behind
    elif behind:
        parent.text = joined_to + behind


# What trafilatura finds on a page, and how much of it is asked to be compared with what others find.

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


# Markup: whether it can be read as a tree in moderate time, the tree, and the plain text between the tags.

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


# A feed (RSS 0.9 to 2.0, Atom) as text: its entries in their order, each with its title, time, address and words.

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
    from lxml import etree

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


# A page as blocks of text in the order of reading, without what stands around its content.

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


_SHORT = 500  # characters below which trafilatura takes everything there is, menus and all
_MEDIUM = 1800  # characters below which what trafilatura leaves out is looked at: dates, prices, places are short
_THREAD = 300  # characters beside the comments of a page that is there for them, at most
_OPENING = 1500  # characters of a post that opens a discussion, with what stands beside it
_IS_POST = "boolean(//article|//*[{}])".format(
    " or ".join(
        f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"
        for name in ("post", "hentry", "article", "entry-content", "post-content", "post-body", "article-body")
    )
)
_MAX_JSON = 2_000_000
_LONG, _BRIEF = 50, 20  # characters of a block by which it is found in a text
_SIGNS = frozenset("¶#§🔗")
_WORDS = re.compile(r"\w+")


def main_text(tree: HtmlElement) -> str:
    """The main text, "" if there is none; the tree is changed."""
    stated = _stated_body(tree)
    _drop_signs(tree)
    _bare_listings(tree)
    _keep_captions(tree)
    _mark_layout(tree)
    text = extracted_text(tree)
    if not _is_nearly_all(text, tree):
        blocks = page_blocks(tree)
        if _is_thread(tree, blocks):
            text = _without_links(blocks) or text
        elif _is_poor(text, blocks):
            text = _without_links([block for block in blocks if not block.commented]) or text
        elif len(text) < _MEDIUM:
            text = _with_what_stands_between(text, blocks, _first_headings(tree))
    return stated if _goes_further(stated, text) else text


def _first_headings(tree: HtmlElement) -> set[str]:
    return {_key(text_of(heading)) for heading in tree.iter("h1")}


def _with_what_stands_between(text: str, blocks: Sequence[PageBlock], headings: set[str]) -> str:
    """A text with the dates, prices and names that it leaves out from the first heading to its end, if they are few."""
    there, lines = _key(text), {_key(line) for line in text.split("\n")}
    content = [(block, _key(block.text)) for block in blocks if not block.commented]
    found = [at for at, (block, key) in enumerate(content) if key in lines or (block.is_prose and key[:50] in there)]
    if not found:
        return text
    begin = next((at for at in range(found[0], -1, -1) if content[at][1] in headings), found[0])
    whole = joined(block for block, _ in content[begin : found[-1] + 1] if not block.is_link)
    if not len(text) < len(whole) <= 1.3 * len(text):
        return text
    said = _key(whole)
    return whole if all(line in said for line in lines) else text


def _goes_further(stated: str, text: str) -> bool:
    """Whether a stated body is what a page holds back: far longer than what it shows, or the rest of its beginning."""
    begun = _key(stated)[:50]
    return len(stated) > 2 * len(text) or (len(stated) > len(text) and len(begun) == 50 and begun in _key(text))


def _is_nearly_all(text: str, tree: HtmlElement) -> bool:
    """Whether a text is most of a page with few links: there is nothing to look for then."""
    seen = sum(_characters(element) for body in tree.iterfind("body") for element in body.iter("*"))
    links = sum(len(text_of(anchor)) for anchor in tree.iter("a"))
    return len(text) >= _MEDIUM and 2 * len(text) > seen and 8 * links < seen


def _characters(element: HtmlElement) -> int:
    """What an element shows itself and after it; XPath's `text()` takes the square of their number."""
    own = "" if element.tag in ("script", "style") else element.text or ""
    return len(own.strip()) + len((element.tail or "").strip())


def _is_poor(text: str, blocks: Sequence[PageBlock]) -> bool:
    """Whether a text is short, is mostly links or lacks most of what there is to read."""
    if len(text) < _SHORT:
        return True
    if 2 * _link_characters(text, blocks) > len(text):
        return True
    prose = [(block, _beginning(_key(block.text))) for block in blocks if block.is_prose and not block.commented]
    there = _found({beginning for _, beginning in prose}, _key(text))
    missed = sum(len(block.text) for block, beginning in prose if beginning not in there)
    return 2 * missed > sum(len(block.text) for block, _ in prose)


def _beginning(key: str) -> str:
    return key[: _LONG if len(key) >= _LONG else _BRIEF]


def _found(beginnings: Set[str], there: str) -> set[str]:
    """Which beginnings of blocks stand in a text's words: looked for word by word, since to look for each in all of a
    long text takes the product of both."""
    found = {beginning for beginning in beginnings if len(beginning) < _BRIEF and beginning in there[:_SHORT]}
    for word in _WORDS.finditer(there):
        begin = word.start()
        count_steps(_LONG + _BRIEF)
        found |= beginnings & {there[begin : begin + _LONG], there[begin : begin + _BRIEF]}
    return found


def _link_characters(text: str, blocks: Sequence[PageBlock]) -> int:
    """How much of a text are lines that are links in the page."""
    links = {_key(block.text) for block in blocks if block.is_link}
    return sum(len(line) for line in text.split("\n") if _key(line) and _key(line) in links)


def _without_links(content: Sequence[PageBlock]) -> str:
    read = [block for block in content if not block.is_link]
    return joined(content if _is_index(read, content) else read)


def _is_thread(tree: HtmlElement, blocks: Sequence[PageBlock]) -> bool:
    """Whether a page is there for what stands in elements called comment: it says little else, or only opens them."""
    said = len(joined(block for block in blocks if block.commented))
    opening = len(joined(block for block in blocks if not block.commented))
    if said <= opening:
        return False
    return opening < _THREAD or (opening < _OPENING and said > 4 * opening and not tree.xpath(_IS_POST))


def _is_index(read: Sequence[PageBlock], content: Sequence[PageBlock]) -> bool:
    """Whether a page is there for its links: beside them it says next to nothing."""
    return not any(block.is_prose for block in read) and 5 * len(joined(read)) < len(joined(content))


def _key(text: str) -> str:
    """A text's words alone, to find it again however it is set."""
    return " ".join(_WORDS.findall(text))


def _drop_signs(tree: HtmlElement) -> None:
    """Take out what headings of manuals and wikis carry: a sign that links to themselves, and “edit”."""
    anchors = tree.xpath("//a[string-length(normalize-space()) = 1]")
    drop_elements(anchor for anchor in anchors if text_of(anchor).strip() in _SIGNS and _is_of_its_page(anchor))
    drop_elements(tree.xpath("//span[contains(@class, 'mw-editsection')]"))


def _is_of_its_page(anchor: HtmlElement) -> bool:
    return str(anchor.get("href") or "#").startswith("#")


def _bare_listings(tree: HtmlElement) -> None:
    """Take the names off boxes that hold a listing and little else: with a toolbar in them they pass for one."""
    for listing in tree.iter("pre"):
        room = 1.2 * len(text_of(listing)) + 60
        for box in list(listing.iterancestors("div", "figure"))[:3]:
            # What has few children is looked at few times; to count many takes long.
            if next(islice(box, 4, None), None) is not None or len(text_of(box)) > room:
                break
            box.attrib.clear()


def _mark_layout(tree: HtmlElement) -> None:
    """Tell tables that set the page from those that say something, as pages of the nineties do not."""
    for table in tree.xpath("//td[table or h1 or h2 or p[2] or div/p[2]]/ancestor::table[1]"):
        table.set("role", "presentation")


def _keep_captions(tree: HtmlElement) -> None:
    """Make paragraphs of the captions of pictures and tables, which trafilatura throws away with the pictures."""
    for caption in tree.xpath(".//figcaption|.//table/caption|.//*[contains(@class, 'wp-caption-text')]"):
        parent = caption.getparent()
        caption.tag = "p"
        caption.attrib.clear()
        if parent.tag == "figure" or "caption" in (parent.get("class") or ""):
            parent.tag = "div"
            parent.attrib.clear()
        elif parent.tag == "table" and parent.getparent() is not None:
            parent.addprevious(caption)


def _stated_body(tree: HtmlElement) -> str:
    """The longest `articleBody` that the page states in JSON-LD."""
    bodies = (body for script in tree.xpath(".//script[@type='application/ld+json']") for body in _bodies(script.text))
    return max(map(_main_text_plain, bodies), key=len, default="")


def _bodies(source: str | None) -> Iterator[str]:
    try:
        # Line ends inside of strings are a common mistake.
        yield from _article_bodies(json.loads((source or "")[:_MAX_JSON], strict=False))
    except (ValueError, RecursionError):
        return


def _article_bodies(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(body := value.get("articleBody"), str):
        yield body
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _article_bodies(inner)


def _main_text_plain(body: str) -> str:
    return strip_markup(body) if "<" in body else body


# The styles that a page itself gives its elements, as far as it takes to know what is seen of them.

Colour = tuple[float, float, float, float]

_MAX_CSS = 200_000  # characters of all <style> elements
_COMMENT = re.compile(r"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|$)")
_SELECTOR = re.compile(r"[a-z][a-z0-9]*|(?:[a-z][a-z0-9]*)?[.#][\w-]+")
_LENGTH = re.compile(r"([+-]?\d*\.?\d+)\s*([a-z%]*)")
_PIXELS = {"": 1.0, "px": 1.0, "pt": 1.333, "pc": 16.0, "cm": 37.8, "mm": 3.78, "in": 96.0, "rem": 16.0, "q": 0.945}
_RELATIVE = {"em": 16.0, "ex": 8.0, "ch": 8.0, "%": 10.0, "vw": 10.0, "vh": 10.0, "vmin": 10.0, "vmax": 10.0}
_FONT_SIZES = {"small", "medium", "large", "x-small", "xx-small", "x-large", "xx-large", "initial"}
_FONT_SHORTHAND = re.compile(r"(?:^|\s)([\d.]+[a-z%]*)\s*(?:/|\s)")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^()]*)\)")
_COLOUR_WORD = re.compile(r"#[0-9a-f]{3,8}|(?:rgb|hsl)a?\([^()]*\)|[a-z]+")
_NAMES = {
    **{"white": "ffffff", "black": "000000", "red": "ff0000", "lime": "00ff00", "blue": "0000ff", "green": "008000"},
    **{
        "yellow": "ffff00",
        "gray": "808080",
        "grey": "808080",
        "silver": "c0c0c0",
        "maroon": "800000",
        "navy": "000080",
    },
    **{"whitesmoke": "f5f5f5", "snow": "fffafa", "ivory": "fffff0", "ghostwhite": "f8f8ff", "transparent": "00000000"},
    **{"purple": "800080", "teal": "008080", "aqua": "00ffff", "orange": "ffa500", "olive": "808000"},
}
_HIDING_CLASSES = frozenset({"sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"})
_STYLED = "//*[@style or @hidden or @color or @bgcolor or self::dialog{}]".format(
    "".join(f" or contains(@class, '{name}')" for name in sorted(_HIDING_CLASSES))
)


class StyleSheet:
    """Rules of one simple selector (`p`, `.note`, `#top`, `p.note`) in `<style>`, and what elements say themselves."""

    def __init__(self, tree: HtmlElement) -> None:
        """Reads the `<style>` elements of a tree; media queries and compound selectors are passed over."""
        self._rules: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._ground_is_white = tree.find(".//link[@rel='stylesheet']") is None
        self._known: dict[HtmlElement, dict[str, str]] = {}
        css = "".join(style.text or "" for style in tree.iter("style"))[:_MAX_CSS]
        for selectors, body in _rules(_COMMENT.sub("", css).lower()):
            self._add(selectors, body)

    def _add(self, selectors: str, body: str) -> None:
        declared = declarations(body)
        for selector in map(str.strip, selectors.split(",")):
            if _SELECTOR.fullmatch(selector):
                self._rules[selector].update(declared)
            elif any(name.startswith("background") for name in declared):
                self._ground_is_white = False

    def styled(self, tree: HtmlElement) -> Iterator[HtmlElement]:
        """The elements that anything is said of, in document order."""
        if not self._rules:
            return iter(tree.xpath(_STYLED))
        bare = set(tree.xpath(_STYLED))
        return (one for one in tree.iter() if one in bare or any(rule in self._rules for rule in _selectors(one)))

    def of(self, element: HtmlElement) -> dict[str, str]:
        """What is declared for an element, property by property, in lower case; `sr-only` for classes of that use."""
        if element not in self._known:
            self._known[element] = self._declared(element)
        return self._known[element]

    def _declared(self, element: HtmlElement) -> dict[str, str]:
        found = {old: element.get(old).lower() for old in ("color", "bgcolor") if element.get(old)}
        if "bgcolor" in found:
            found["background-color"] = found.pop("bgcolor")
        for selector in _selectors(element) if self._rules else ():
            found |= self._rules.get(selector, {})
        if not _HIDING_CLASSES.isdisjoint((element.get("class") or "")[:500].lower().split()):
            found["sr-only"] = ""
        return found | declarations(_COMMENT.sub("", (element.get("style") or "")[:_MAX_CSS]).lower())

    def ground(self, element: HtmlElement) -> Colour | None:
        """The colour behind an element's text; None if the page alone does not say."""
        for one in (element, *element.iterancestors()):
            styles = self.of(one)
            said = [styles[name] for name in ("background", "background-color", "background-image") if name in styles]
            if any("url(" in value or "gradient" in value for value in said):
                return None
            if found := next((shade for value in said if (shade := colour(value)) and shade[3] > 0), None):
                return found
        return colour("white") if self._ground_is_white else None


def declarations(body: str) -> dict[str, str]:
    """The declarations of a rule or a `style` attribute in lower case; the last of a name counts."""
    pairs = (part.partition(":") for part in body.split(";"))
    found = {name.strip(): value.replace("!important", "").strip() for name, _, value in pairs if value}
    if "font-size" not in found and (size := _FONT_SHORTHAND.search(found.get("font", ""))):
        found["font-size"] = size[1]
    return found


def length(value: str, otherwise: float, *, relative: bool = True) -> float:
    """A length in CSS pixels, roughly where it is relative (0 of it if `relative` is off); `otherwise` for none."""
    match = _LENGTH.fullmatch(value)
    if match is None:
        return 16.0 if value in _FONT_SIZES else otherwise
    scale = _PIXELS.get(match[2]) or (_RELATIVE.get(match[2], 0.0) if relative else 0.0)
    return float(match[1]) * scale


def colour(value: str) -> Colour | None:
    """Red, green and blue (0 to 255) and opacity (0 to 1) of the first colour in a value, None if there is none."""
    for match in _COLOUR_WORD.finditer(value):
        word = match[0]
        if function := _FUNCTION.fullmatch(word):
            return _computed(function[1], function[2])
        if digits := word[1:] if word.startswith("#") else _NAMES.get(word):
            return _hexadecimal(digits)
    return None


def _hexadecimal(digits: str) -> Colour | None:
    wide = "".join(2 * digit for digit in digits) if len(digits) in (3, 4) else digits
    if len(wide) not in (6, 8):
        return None
    red, green, blue, opacity = (int((wide + "ff")[at : at + 2], 16) for at in (0, 2, 4, 6))
    return red, green, blue, opacity / 255


def _computed(kind: str, arguments: str) -> Colour | None:
    parts = re.findall(r"-?\d*\.?\d+%?", arguments)
    if len(parts) not in (3, 4):
        return None
    opacity = _part(parts[3], 1.0) if len(parts) == 4 else 1.0
    if kind == "rgb":
        red, green, blue = (_part(part, 255.0) for part in parts[:3])
        return red, green, blue, opacity
    hue, saturation, light = float(parts[0].rstrip("%")) / 360, _part(parts[1], 1.0), _part(parts[2], 1.0)
    red, green, blue = colorsys.hls_to_rgb(hue % 1.0, light, saturation)
    return red * 255, green * 255, blue * 255, opacity


def _part(text: str, whole: float) -> float:
    return float(text[:-1]) / 100 * whole if text.endswith("%") else float(text)


def _selectors(element: HtmlElement) -> list[str]:
    tag, classes, name = element.tag, (element.get("class") or "")[:500].lower().split(), element.get("id")
    ids = [f"#{name.lower()}", f"{tag}#{name.lower()}"] if name else []
    return [tag, *(f".{one}" for one in classes), *(f"{tag}.{one}" for one in classes), *ids]


def _rules(css: str) -> list[tuple[str, str]]:
    """Selectors and declarations of the rules that stand in no block of their own."""
    found, depth, start, selectors = [], 0, 0, ""
    for brace in re.finditer(r"[{}]", css):
        piece, start = css[start : brace.start()], brace.end()
        if brace[0] == "{":
            depth += 1
            selectors = piece.rpartition(";")[2] if depth == 1 else "@"
        else:
            if depth == 1 and not selectors.strip().startswith("@"):
                found.append((selectors, piece))
            depth = max(0, depth - 1)
    return found


# What a browser does not show of a page: taken out of its tree, so that nobody reads what no person sees.

# A page that fades in holds most of its text in elements that are transparent at first; one that hides holds little.
_FADES_IN = 0.3
_OFF_SCREEN = -900.0  # px
_TINY = 1.0  # px
_CLIPPED = re.compile(
    r"rect\((?:\s*[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:[5-9]\d|100)%|circle\(\s*0|scale[xy]?\(\s*0\s*[,)]"
)
_SHIFT = re.compile(r"translate(?:x|y|3d)?\(\s*(-[\d.]+[a-z%]*)")
_CONTROLS = (
    "//*[@role='tab' or @aria-expanded][not(ancestor::nav or ancestor::header[not(ancestor::main)])]/@aria-controls"
)
_ALWAYS_SHOWN = frozenset({"html", "head", "body", "title", "base", "link", "meta", "style", "script"})


def drop_unseen(tree: HtmlElement) -> None:
    """Remove what is hidden, tiny, off the screen, clipped away or written in the colour of its ground.

    Styles are those in the page: `style` and a few old attributes, and rules of one simple selector in `<style>`.
    Panels of tabs and of accordions stay, because a click shows them.
    """
    sheet = StyleSheet(tree)
    panels = _opened_by_click(tree)
    fading: list[HtmlElement] = []
    gone: list[HtmlElement] = []
    for element in [one for one in sheet.styled(tree) if one.tag not in _ALWAYS_SHOWN]:
        styles = sheet.of(element)
        if _is_gone(element, styles) or _is_out_of_sight(styles):
            if element not in panels:
                gone.append(element)
        elif styles.get("opacity", "") in ("0", "0%", "0.0", ".0"):
            fading.append(element)
        else:
            _drop_unreadable(element, styles, sheet)
    drop_elements(gone)
    _drop_transparent(tree, fading)


def _opened_by_click(tree: HtmlElement) -> set[HtmlElement]:
    """What a tab or a heading that folds opens; a menu that a button opens is none of it."""
    controls = {name for value in tree.xpath(_CONTROLS) for name in value.split()}
    opened = [panel for panel in tree.xpath("//*[@id]") if panel.get("id") in controls] if controls else []
    return {panel for panel in opened if panel.get("role") == "tabpanel" or not _is_menu(panel)}


def _is_menu(element: HtmlElement) -> bool:
    if element.tag in ("nav", "dialog", "form") or element.get("role") in ("menu", "navigation", "dialog", "search"):
        return True
    linked = sum(len(text_of(anchor)) for anchor in element.iter("a"))
    return element.find(".//nav") is not None or 2 * linked >= len(text_of(element).strip())


def _is_gone(element: HtmlElement, styles: dict[str, str]) -> bool:
    hidden = element.get("hidden")
    return (
        (hidden is not None and hidden.lower() != "until-found")
        or styles.get("display") == "none"
        or styles.get("content-visibility") == "hidden"
        or (element.tag == "dialog" and element.get("open") is None)
    )


def _is_out_of_sight(styles: dict[str, str]) -> bool:
    placed = styles.get("position") in ("absolute", "fixed")
    sides = ("text-indent", "margin-left", "margin-top", *(("left", "top", "right", "bottom") if placed else ()))
    cut = styles.get("overflow", "") in ("hidden", "clip")
    sizes = ("width", "height", "max-width", "max-height") if cut else ()
    shape = " ".join(styles.get(name, "") for name in ("clip", "clip-path", "transform"))
    shift = _SHIFT.search(shape)
    return (
        any(length(styles.get(side, ""), 0.0) <= _OFF_SCREEN for side in sides)
        or any(length(styles.get(size, ""), 99.0) <= _TINY for size in sizes)
        or "sr-only" in styles
        or _CLIPPED.search(shape) is not None
        or (shift is not None and length(shift[1], 0.0) <= _OFF_SCREEN)
    )


def _drop_unreadable(element: HtmlElement, styles: dict[str, str], sheet: StyleSheet) -> None:
    """Text that is there and cannot be read; what stands inside it and shows again stays."""
    if styles.get("visibility") in ("hidden", "collapse"):
        _silence(element, lambda inner: sheet.of(inner).get("visibility") == "visible")
    if length(styles.get("font-size", ""), 99.0) <= _TINY:
        _silence(element, lambda inner: length(sheet.of(inner).get("font-size", ""), 0.0, relative=False) > _TINY)
    ink = styles.get("color", "")
    if ink and _is_invisible(element, ink, sheet):
        _silence(element, lambda inner: _stands_out(inner, sheet))


def _stands_out(element: HtmlElement, sheet: StyleSheet) -> bool:
    styles = sheet.of(element)
    return any(name in styles for name in ("color", "background", "background-color"))


def _is_invisible(element: HtmlElement, ink: str, sheet: StyleSheet) -> bool:
    written = colour(ink)
    if ink == "transparent" or (written is not None and written[3] == 0.0):
        # Text may be cut out of a coloured ground.
        return not any("text" in value for name, value in sheet.of(element).items() if name.endswith("background-clip"))
    ground = sheet.ground(element)
    if written is None or ground is None:
        return False
    return max(abs(one - other) for one, other in zip(written[:3], ground[:3], strict=True)) <= 8


def _drop_transparent(tree: HtmlElement, fading: list[HtmlElement]) -> None:
    if not fading:
        return
    whole, known = len(text_of(tree)), set(fading)
    outer = [one for one in fading if known.isdisjoint(one.iterancestors())]
    if sum(len(text_of(one)) for one in outer) <= whole * _FADES_IN:
        drop_elements(outer)


def _silence(element: HtmlElement, shows_again: Callable[[HtmlElement], bool]) -> None:
    element.text = None
    for child in element:
        child.tail = None
        if not shows_again(child):
            _silence(child, shows_again)
