"""The readable content of a web page: its title, its main text and the links in that text.

The main text is what trafilatura finds. The rest of this file does three things around it. *Limits*: the time of the
parser and of trafilatura grows with elements times their depth and with elements times text, so a page is cut at fixed
limits before a tree is built of it, and the text says so. No page among two thousand real ones comes near the limits.
*Hidden text* is removed from the tree first, so that a page cannot tell the model what it shows to no person. *Short
pages*: where trafilatura finds little, or a menu, the lines of the page are taken instead if they say more. A second
opinion about long texts was tried and rejected: on public article pages it was worse than trafilatura alone.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from local.core.web_url import MediaType, decode_page

if TYPE_CHECKING:
    from lxml.etree import _Element  # type: ignore[import-untyped]  # has no type stubs of its own
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

MOST_LINKS = 200
_MAX_TITLE = 300
_LONGEST_URL = 8000  # characters
_XML_DECLARATION = re.compile(r"<\?xml[^<>]*>", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_REST_LEFT_OUT = "\n\n[The page is too large or too deeply nested; the rest of it was left out.]"


@dataclass(frozen=True, slots=True)
class Document:
    """A fetched document. `url` is the final address, after redirects; `body` is decompressed."""

    url: str
    media_type: MediaType
    body: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page: its words and its absolute http(s) address."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Article:
    """A document as text, with its title and links. Each field may be empty."""

    title: str
    text: str
    links: tuple[Link, ...] = ()


def read_article(document: Document) -> Article:
    """Decode a document and extract the content that a person reads. Slow, so it runs in a thread; no content makes it
    raise.
    """
    source = decode_page(document.body, document.media_type.charset)
    if not document.media_type.is_html:
        return (document.media_type.name in FEED_TYPES and _feed(source, document.url)) or Article("", _clean(source))
    html = _XML_DECLARATION.sub("", source).replace("\0", "")
    if "<" not in html:
        return Article("", _clean(unescape(html)))
    tree, is_whole = parse_page(html)
    title = _title(tree)
    drop_unseen(tree)
    text = _clean(main_text(tree))
    links = _links(tree, document.url, text)
    return Article(title, text if is_whole else (text + _REST_LEFT_OUT).strip(), links)


def _title(tree: HtmlElement) -> str:
    """The title, or else the first heading; a picture in the page may have a title, too."""
    elements = [*tree.xpath("//title[not(ancestor::svg)]")[:1], *tree.xpath("//h1")[:1]]
    return next((text for element in elements if (text := _one_line(element.text_content()))), "")


def _one_line(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub("", text).split())[:_MAX_TITLE]


def _clean(text: str) -> str:
    """Text without unprintable characters, trailing spaces and piles of empty lines."""
    printable = _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = "\n".join(line.rstrip() for line in printable.split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip()


# The tree of a page, up to fixed limits.

_MAX_ELEMENTS = 30_000  # of 2,103 real pages the largest has 16,000, the deepest 56 levels
_MAX_DEPTH = 200
_MAX_DEPTH_SUM = 600_000
_MAX_ATTRIBUTES = 200  # libxml2 takes the square of an element's attributes; of real pages the most has 71
_MAX_CHARACTERS = 2_000_000
_CHUNK = 2_048  # bytes, in which a page is cut


class _LimitReached(Exception):
    """The signal that a page is too large and must be cut; never leaves this module."""


class _Unreadable(_LimitReached):
    """The signal that a page cannot be parsed in reasonable time."""


class _Census:
    """A count of what libxml2 itself parses of a page, so that no quoting trick makes the count differ from the parser
    that builds the tree.
    """

    def __init__(self) -> None:
        self._elements = self._depth = self._depth_sum = self._characters = 0
        self._is_program = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth += 1
        self._depth_sum += self._depth
        self._is_program = tag in ("script", "style")
        if len(attributes) > _MAX_ATTRIBUTES:
            raise _Unreadable
        if self._elements > _MAX_ELEMENTS or self._depth > _MAX_DEPTH or self._depth_sum > _MAX_DEPTH_SUM:
            raise _LimitReached

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._is_program = False

    def data(self, text: str) -> None:
        self._characters += 0 if self._is_program else len(text)
        if self._characters > _MAX_CHARACTERS:
            raise _LimitReached

    def close(self) -> None: ...


def parse_page(html: str) -> tuple[HtmlElement, bool]:
    """The tree of a page, without comments, and whether that is the whole page."""
    from lxml import etree  # type: ignore[import-untyped]  # has no type stubs of its own
    from lxml.html import HTMLParser, document_fromstring

    data = html.encode("utf-8", "replace")
    length = _bounded_length(data)
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False)
    try:
        tree = document_fromstring(data[:length], parser=parser)
    except (etree.LxmlError, ValueError):
        tree = document_fromstring("<html></html>", parser=parser)
    return tree, length == len(data)


def _bounded_length(data: bytes) -> int:
    """Return how many bytes from the beginning of a page are within the limits."""
    from lxml import etree

    parser = etree.HTMLParser(target=_Census(), encoding="utf-8")
    for offset in range(0, len(data), _CHUNK):
        try:
            parser.feed(data[offset : offset + _CHUNK])
        except _Unreadable:
            return 0
        except (_LimitReached, etree.LxmlError):
            return offset
    return len(data)


# The main text.

_SPACES = re.compile(r"\s+")
_SHORT = 500  # characters below which trafilatura takes everything there is, menus and all
_PROSE = 60  # characters; shorter lines are headings, buttons, names
_MOST_PARAGRAPHS = 4_000  # trafilatura compares itself with methods whose time grows with the square of these
_MOST_COPIED = 4_000_000_000  # elements times characters: to take elements out one by one copies up to as many
_BLOCKS = frozenset(
    {"address", "article", "blockquote", "body", "br", "caption", "center", "dd", "details", "div", "dl", "dt"}
    | {"fieldset", "figcaption", "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li"}
    | {"main", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"}
)
_BESIDE = frozenset(
    {"script", "style", "template", "noscript", "svg", "nav", "footer", "aside", "button", "select", "iframe", "head"}
    | {"object", "canvas", "video", "audio", "menu", "textarea", "datalist"}
)
_BESIDE_ROLES = frozenset(
    {"navigation", "contentinfo", "search", "complementary", "menu", "menubar", "alertdialog", "dialog", "banner"}
)
_BESIDE_NAMES = re.compile(
    r"(?:^|[\s_-])(?:(?:sub|top|main|site)?nav(?:bar|igation)?|(?:main|top|side)?menu|breadcrumbs?|\w*side-?bar(?:wrapper)?|"
    r"cookies?|consent|share|sharing|social|related|recommended|newsletter|subscribe|(?:site|page)?footer|promo|adverts?|"
    r"ads?|banner|pagination|pager|toolbar|topbar|announcement|toc|catlinks|post-?profile|signature)(?:[\s_-]|$)",
    re.IGNORECASE,
)


def main_text(tree: HtmlElement) -> str:
    """The main text as trafilatura finds it; where that is next to nothing or mostly links, the lines of the page."""
    _drop_signs(tree)
    text = _extracted(tree)
    links = {_one_line(anchor.text_content()) for anchor in tree.iter("a")}
    said = sum(len(line) for line in text.split("\n") if _one_line(line.removeprefix("- ")) not in links)
    if len(text) >= _SHORT and 2 * said > len(text):
        return text
    lines = _Lines(tree).text()
    # Many more lines than a clean short text has are those around it.
    is_clean = said > 0.9 * len(text) and len(lines) > 2 * len(text) > 2 * _PROSE
    return text if is_clean or 4 * len(lines) < said else lines


def _extracted(tree: HtmlElement) -> str:
    import trafilatura

    # Paragraphs that it reports as errors are missing in its result, and then the lines of the page are taken.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    elements = sum(1 for _ in tree.iter("*"))
    if elements * _shown(tree) > _MOST_COPIED or tree.xpath("boolean(//tr[*[1001]])"):
        return ""
    fast = tree.xpath("count(//p|//div|//li|//td|//br|//pre)") > _MOST_PARAGRAPHS
    try:
        return (trafilatura.extract(tree, include_comments=False, fast=fast) or "").strip()
    except Exception:  # noqa: BLE001 - a page can trip any of its parsers
        return ""


def _drop_signs(tree: HtmlElement) -> None:
    """Empty the signs in headings of manuals and wikis: a link to the heading, and "edit"."""
    for sign in tree.xpath("//a[string-length(normalize-space()) = 1]|//span[contains(@class, 'mw-editsection')]"):
        if sign.tag == "span" or ((sign.get("href") or "#")[0] == "#" and not sign.text_content().strip().isalnum()):
            sign.clear(keep_tail=True)


class _Lines:
    """The lines of a page without boilerplate elements; a table row is one line."""

    def __init__(self, tree: HtmlElement) -> None:
        self._lines: list[tuple[str, int]] = []  # each with how many of its characters are links
        self._pieces: list[str] = []
        self._linked = 0
        self._half = len(tree.text_content()) / 2
        for body in tree.iterfind("body"):
            self._inside(body, is_link=False, is_listing=False)
        self._end()

    def text(self) -> str:
        """Return the lines that are not links, or all lines if the page has hardly any other text."""
        read = [line for line, linked in self._lines if linked < 0.8 * len(line)]
        said = sum(map(len, read))
        is_index = max(map(len, read), default=0) < _PROSE and 5 * said < sum(len(line) for line, _ in self._lines)
        return "\n".join([line for line, _ in self._lines] if is_index else read)

    def _inside(self, element: HtmlElement, *, is_link: bool, is_listing: bool) -> None:
        """Add the text of an element. Recursion is as deep as the tree, which is bounded."""
        self._add(element.text, is_link, is_listing)
        for child in element:
            if not self._is_beside(child):
                self._child(child, is_link, is_listing)
            self._add(child.tail, is_link, is_listing)

    def _child(self, child: HtmlElement, is_link: bool, is_listing: bool) -> None:
        tag = child.tag
        if tag in _BLOCKS:
            self._end()
        if tag == "li":
            self._pieces.append("- ")
        # Headings of manuals link to themselves.
        self._inside(child, is_link=tag == "a" or (is_link and tag[0] != "h"), is_listing=is_listing or tag == "pre")
        if tag in _BLOCKS:
            if tag[0] == "h":
                self._linked = 0
            self._end()
        elif tag in ("td", "th"):
            self._pieces.append(" | ")

    def _add(self, text: str | None, is_link: bool, is_listing: bool) -> None:
        if text:
            self._pieces.append(text if is_listing else _SPACES.sub(" ", text))
            self._linked += len(text.strip()) if is_link else 0

    def _end(self) -> None:
        text = "".join(self._pieces).strip("\n" if "\n" in "".join(self._pieces) else None)
        text = text.removesuffix("| ").removesuffix("|").rstrip()
        if text not in ("", "-"):
            self._lines.append((text, self._linked))
        self._pieces, self._linked = [], 0

    def _is_beside(self, element: HtmlElement) -> bool:
        """Whether an element is beside the content, by its tag, role or name, unless it contains half of the page."""
        if element.tag in _BESIDE or element.get("role") in _BESIDE_ROLES:
            return element.tag not in ("footer", "aside") or len(element.text_content()) <= self._half
        if element.tag == "header" and element.find(".//h1") is None:
            return next(element.iterancestors("article", "main"), None) is None
        names = f"{(element.get('id') or '')[:200]} {(element.get('class') or '')[:500]}"
        is_form = element.tag == "form" and element.find(".//p") is None and element.find(".//h1") is None
        return (is_form or _BESIDE_NAMES.search(names) is not None) and len(element.text_content()) <= self._half


# The links in the main text.


def _links(tree: HtmlElement, page_url: str, text: str) -> tuple[Link, ...]:
    """Return the links whose words are a line of the text or part of a paragraph."""
    base = tree.find(".//base[@href]")
    base_url = (base is not None and _absolute(page_url, base.get("href"))) or page_url
    lines = {_one_line(part.removeprefix("- ")) for line in text.split("\n") for part in (line, *line.split("|"))}
    is_said: dict[HtmlElement, bool] = {}
    found: dict[str, Link] = {}
    for anchor in tree.iter("a"):
        words = _one_line(anchor.text_content())
        if not words or not anchor.get("href"):
            continue
        block = next((above for above in anchor.iterancestors(*_BLOCKS, "td", "th", "dd")), anchor)
        if block not in is_said:
            is_said[block] = _one_line(block.text_content()) in lines
        if is_said[block] and (url := _absolute(base_url, anchor.get("href"))):
            found.setdefault(url, Link(words, url))
        if len(found) == MOST_LINKS:
            break
    return tuple(found.values())


def _absolute(base_url: str, reference: str) -> str | None:
    """Return an http(s) address without its fragment, or None: for another scheme, a place in the same page, and an
    address that no server accepts.
    """
    if len(reference) > _LONGEST_URL or len(base_url) > _LONGEST_URL:
        return None
    try:
        url = urljoin(base_url, reference.strip()).partition("#")[0]
        return url if urlsplit(url).scheme in ("http", "https") and url != base_url else None
    except ValueError:
        return None


# Content of a page that is not visible: removed from the tree before anything reads it.

Style = dict[str, str]
Rules = dict[str, list[tuple[frozenset[str], Style]]]
Colour = tuple[float, ...]  # red, green, blue (0 to 255), opacity (0 to 1)

_MAX_CSS = 200_000  # characters
_MOST_RULES, _MOST_CLASSES = 10, 30  # for a name, of an element
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_SELECTOR = re.compile(r"(?:[a-z][a-z0-9]*)?(?:[.#][\w-]+)*")
_NAME = re.compile(r"[.#]?[\w-]+")
_APPLIES = re.compile(r"@(?:layer|supports|media(?!.*(?:print|max-width|prefers)))")
_LENGTH = re.compile(r"([+-]?\d*\.?\d+)([a-z%]*)")
_PIXELS = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "%": 10.0, "vw": 10.0, "vh": 10.0}  # roughly
_FAR_AWAY, _TINY = -900.0, 1.0  # px
_SIDES = ("text-indent", "margin-left", "margin-top", "left", "top", "right", "bottom")
_SIZES = ("width", "height", "max-width", "max-height")
_COUNTED = frozenset(
    {
        *_SIDES,
        *_SIZES,
        "display",
        "visibility",
        "content-visibility",
        "opacity",
        "overflow",
        "clip",
        "clip-path",
        "color",
    }
    | {"transform", "font-size", "background", "background-color", "background-clip", "-webkit-background-clip"}
)
_CLIPPED = re.compile(r"rect\([01](?:px)?[\s,]|inset\((?:[5-9]\d|100)%|circle\(0|scale[xy]?\(0|translate\w*\(-\d{4}")
_HIDING_CLASSES = frozenset({"sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"})
_COLOUR = re.compile(r"#([0-9a-f]{3,8})\b|rgba?\(([^()]*)\)|\b(white|black|transparent)\b")
_COLOUR_NAMES = {"white": "ffffff", "black": "000000", "transparent": "00000000"}
_SAME = 8  # of 255: differences that are not visible
_STREAMED = re.compile(r"S:[0-9a-f]+")  # sent later by React and put into its place by its script
_FADES_IN = 0.3  # of a page's text: one that fades in holds more of it in transparent elements, one that hides less
_OPENED_BY_CLICK = "//*[@role='tab' or @aria-expanded][not(ancestor::nav or ancestor::header)]/@aria-controls"


class _Look(NamedTuple):
    """The visibility and style of the text directly inside an element, by the page's own styles."""

    is_hidden: bool = False
    is_tiny: bool = False
    ink: Colour | None = None
    ground: Colour | None = None

    @property
    def is_seen(self) -> bool:
        """Whether a person can read it."""
        if self.is_hidden or self.is_tiny or (self.ink and self.ink[3] == 0):
            return False
        if not self.ink or not self.ground:
            return True
        return max(abs(one - other) for one, other in zip(self.ink[:3], self.ground[:3], strict=True)) > _SAME


def drop_unseen(tree: HtmlElement) -> None:
    """Remove text that is hidden, tiny, off the screen, clipped away or written in the colour of its ground.

    Styles are those in the page: attributes, and rules of one simple selector in `<style>`. Panels of tabs and of
    headings that unfold stay, because a click shows them.
    """
    rules = _rules("".join(style.text or "" for style in tree.iter("style"))[:_MAX_CSS])
    is_styled_elsewhere = tree.find(".//link[@rel='stylesheet']") is not None or "?" in rules
    page = _Look(ground=None if is_styled_elsewhere else (255, 255, 255, 1))
    panels = {name for value in tree.xpath(_OPENED_BY_CLICK) for name in value.split()}
    looks: dict[HtmlElement, _Look] = {}
    fading: list[HtmlElement] = []
    for element in list(tree.iter("*")):
        above = looks.get(element.getparent(), page)
        style = _style(element, rules)
        looks[element] = look = _look(style, above) if style else above
        if element.tail and not above.is_seen:
            element.tail = None
        if _is_gone(element, style) and not (element.get("id") in panels and not _is_menu(element)):
            element.clear(keep_tail=True)
        elif element.text and not look.is_seen and element.tag not in ("title", "style", "script"):
            element.text = None
        elif style.get("opacity") in ("0", "0%", "0.0", ".0"):
            fading.append(element)
    _drop_transparent(tree, fading)


def _is_menu(element: HtmlElement) -> bool:
    return 2 * sum(len(anchor.text_content()) for anchor in element.iter("a")) >= len(element.text_content().strip())


def _drop_transparent(tree: HtmlElement, fading: list[HtmlElement]) -> None:
    known = set(fading)
    outer = [element for element in fading if known.isdisjoint(element.iterancestors())]
    if sum(map(_shown, outer)) <= _FADES_IN * _shown(tree):
        for element in outer:
            element.clear(keep_tail=True)


def _shown(tree: HtmlElement) -> int:
    """Return how many characters of an element are not code."""
    return sum(
        len(one.text or "") * (one.tag not in ("script", "style")) + len(one.tail or "") for one in tree.iter("*")
    )


def _is_gone(element: HtmlElement, style: Style) -> bool:
    """Whether neither an element nor anything in it is on the screen."""
    hidden = (element.get("hidden", "until-found") or "hidden").lower() != "until-found"
    if hidden and not _STREAMED.fullmatch(element.get("id") or ""):
        return True
    if element.tag == "dialog" and "open" not in element.attrib:
        return True
    if not _HIDING_CLASSES.isdisjoint((element.get("class") or "")[:500].lower().split()):
        return True
    if not style:
        return False
    sizes = _SIZES if style.get("overflow") in ("hidden", "clip") else ()
    return (
        style.get("display") == "none"
        or style.get("content-visibility") == "hidden"
        or any(_pixels(style.get(side), 0.0) <= _FAR_AWAY for side in _SIDES)
        or any(_pixels(style.get(size), 99.0) <= _TINY for size in sizes)
        or any(_CLIPPED.search(style.get(name, "")) for name in ("clip", "clip-path", "transform"))
    )


def _look(style: Style, above: _Look) -> _Look:
    visibility = style.get("visibility")
    ground = above.ground
    for name in ("background-color", "background"):
        if name in style:
            ground = None if "url(" in style[name] or "gradient" in style[name] else _colour(style[name]) or ground
    # Transparent ink may show a ground that is cut to the letters.
    cut_out = any("text" in style.get(name, "") for name in ("background-clip", "-webkit-background-clip"))
    ink = None if cut_out else _colour(style["color"]) if "color" in style else above.ink
    return _Look(
        above.is_hidden if visibility is None else visibility in ("hidden", "collapse"),
        _pixels(style["font-size"], 16.0) <= _TINY if "font-size" in style else above.is_tiny,
        ink,
        ground,
    )


def _pixels(value: str | None, otherwise: float) -> float:
    match = _LENGTH.fullmatch(value or "")
    return float(match[1]) * _PIXELS.get(match[2], 16.0) if match else otherwise


def _colour(value: str) -> Colour | None:
    match = _COLOUR.search(value)
    if match is None:
        return None
    if match[2] is not None:
        parts = [float(part) for part in re.findall(r"\d*\.?\d+", match[2])]
        return (*parts[:3], parts[3] if len(parts) > 3 else 1.0) if len(parts) >= 3 else None
    digits = match[1] or _COLOUR_NAMES[match[3]]
    if len(digits) in (3, 4):
        digits = "".join(2 * digit for digit in digits)
    if len(digits) not in (6, 8):
        return None
    red, green, blue, opacity = (int((digits + "ff")[at : at + 2], 16) for at in (0, 2, 4, 6))
    return red, green, blue, opacity / 255


def _style(element: HtmlElement, rules: Rules) -> Style:
    """Return the declarations for an element: old attributes, rules for its tag, classes and id, its own style."""
    found: Style = {}
    for attribute, name in (("color", "color"), ("bgcolor", "background-color")):
        if value := element.get(attribute):
            found[name] = value.lower()
    if rules:
        names = {f".{one}" for one in (element.get("class") or "")[:500].lower().split()[:_MOST_CLASSES]}
        names |= {element.tag, f"#{(element.get('id') or '')[:100].lower()}"}
        fitting = (rule for name in names for rule in rules.get(name, ())[:_MOST_RULES] if rule[0] <= names)
        for _, declared in sorted(fitting, key=lambda rule: len(rule[0])):
            found |= declared
    return found | _declarations(element.get("style") or "")


def _declarations(css: str) -> Style:
    if not css:
        return {}
    text = _CSS_COMMENT.sub("", css[:_MAX_CSS]).lower().replace("!important", "")
    pairs = ((name.strip(), value.strip()) for name, _, value in (part.partition(":") for part in text.split(";")))
    return {name: value for name, value in pairs if name in _COUNTED}


def _rules(css: str) -> Rules:
    """The declarations of selectors without combinators, by one of the names of each, with all its names; "?" is there
    if another selector sets a background. Media queries are answered for a wide screen."""
    found: Rules = defaultdict(list)
    around: list[bool] = []  # for each open at-rule whether it applies
    for piece in _CSS_COMMENT.sub("", css).lower().split("}"):
        *opened, body = piece.split("{")
        around = [*around, *(bool(_APPLIES.search(rule[-200:])) for rule in opened[:-1])] if opened else around[:-1]
        if not opened or not all(around):
            continue
        declared = _declarations(body)
        for selector in map(str.strip, opened[-1].rpartition(";")[2].split(",")):
            if selector and declared and _SELECTOR.fullmatch(selector):
                names = _NAME.findall(selector)
                found[names[-1]].append((frozenset(names), declared))
            elif "background" in body and "@" not in selector:
                found["?"] = []
    return found


# A feed (RSS 0.9 to 2.0, Atom) as text: its entries in their order, each with its title, time, address and words.

FEED_TYPES = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/xml", "text/xml"}
)
_ROOTS = frozenset({"rss", "feed", "RDF"})
_DATES = frozenset({"pubDate", "published", "updated", "date"})
_BODIES = ("encoded", "content", "description", "summary", "subtitle")  # the fullest first
_DECLARATION = re.compile(r"<\?xml[^<>]*>")


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry of a feed, or the description of the feed itself. Each field may be empty; `url` may be relative."""

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

    # No entity is expanded and nothing is loaded; content nested deeper than 256 is left out.
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


def _feed(source: str, page_url: str) -> Article | None:
    """A feed as an article, with its entries for links; None for any other XML."""
    entries = feed_entries(source)
    if not entries:
        return None
    found = {url: entry.title for entry in entries[1:] if (url := _absolute(page_url, entry.url))}
    links = tuple(Link(_one_line(title) or url, url) for url, title in found.items())
    text = "\n\n".join(entry.text() for entry in entries)
    return Article(_one_line(entries[0].title), _clean(text), links[:MOST_LINKS])


_TOKEN = re.compile(r"<(/?)([a-z][a-z0-9]*)[^<>]*>|<!?[^<>]*>|[^<]+|<", re.IGNORECASE)
_SILENT = frozenset({"script", "style", "template", "noscript", "svg"})
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u"}
)


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
