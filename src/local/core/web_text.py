"""The readable content of a web page or a feed: its title, its main text and the links in that text.

The main text is what trafilatura finds in the tree that Beautiful Soup builds. This file does four things around it.
*Decoding*: bytes become text by what they declare, else by what they look like. *Limits*: the time of the parsers and
of trafilatura grows with elements times their depth and with elements times text, so a page is cut at fixed limits
before a tree is built of it, and the text says so. No page among two thousand real ones comes near the limits. *Hidden
text* is removed from the tree first, so that a page cannot tell the model what it shows to no person. *Short pages*:
where trafilatura finds little, or a menu, the lines of the page are taken if they say more, and the article in its
JSON-LD if the page shows only the beginning. A second opinion about long texts was tried and rejected: on public
article pages it was worse than trafilatura alone.
"""

from __future__ import annotations

import codecs
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from local.core.web_url import MediaType

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import Tag

MOST_LINKS = 200
FEED_TYPES = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/xml", "text/xml"}
)
_MAX_TITLE = 300
_LONGEST_URL = 8000  # characters
_XML_DECLARATION = re.compile(r"<\?xml[^<>]*>?", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"\s+")
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
    if "<" not in source:
        return Article("", _clean(unescape(source)))
    soup, is_whole = _parse(source)
    title = next((text for each in soup.select("title:not(svg *), h1") if (text := _one_line(each.get_text()))), "")
    stated = _stated_body(soup)
    _drop_hidden(soup)
    text = _clean(_main_text(soup, stated))
    links = _links(soup, document.url, text)
    return Article(title, text if is_whole else (text + _REST_LEFT_OUT).strip(), links)


def _one_line(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub("", text).split())[:_MAX_TITLE]


def _clean(text: str) -> str:
    """Text without unprintable characters, trailing spaces and piles of empty lines."""
    printable = _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = "\n".join(line.rstrip() for line in printable.split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip()


# Bytes as text.

_SAMPLE = 32_768
_DECLARED_WITHIN = 4096
_TAG = re.compile(rb"<[^<>]{0,1000}>")
# Browsers' encodings for these labels (WHATWG Encoding): the common superset, because pages use its characters.
_SUPERSETS = {
    **{"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874"},
    **{"gb2312": "gb18030", "gbk": "gb18030", "shift-jis": "cp932", "euc-kr": "cp949"},
}
# Python calls these encodings too; no page is written in them and some take quadratic time.
_NOT_FOR_PAGES = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "utf-7"})
# The letters of Polish and Czech are signs in windows-1252, those of Turkish are Icelandic ones.
_EASTERN = re.compile(r"[a-z][¿³¹¼¾£¯º][a-z]|[a-z][¿³¹¼¾][^\w]|\ufffd|^(?!.*[áéæíó]).*[ðþýÐÞÝ]", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")


def decode_page(body: bytes, declared: str | None) -> str:
    """Decode by byte order mark, as UTF-8 if it is, by header or meta label if that fits, else by detection."""
    from bs4.dammit import EncodingDetector, UnicodeDammit

    body, mark = EncodingDetector.strip_byte_order_mark(body)
    if mark:
        return body.decode(mark, "replace")
    text = body.decode("utf-8", "replace")
    # Whatever a page declares: text in another charset has hardly any character that is valid in UTF-8 by chance.
    if not body.isascii() and 10 * text.count("\ufffd") <= len(body) - len(text):
        return text
    for label in (declared, EncodingDetector.find_declared_encoding(body[:_DECLARED_WITHIN], is_html=True)):
        encoding = _known(label, body)
        if encoding and (decoded := body.decode(encoding, "replace")).count("\ufffd") * 100 <= len(decoded):
            return decoded
    if body.isascii():
        return text
    logging.getLogger("bs4").setLevel(logging.ERROR)  # it reports what no encoding fits
    sample = _TAG.sub(b" ", body[:_SAMPLE])
    if len(body) > _SAMPLE:
        sample = sample.rpartition(b" ")[0] or sample  # no half of a character is at its end
    first = ["windows-1252"] if _is_western(sample.decode("cp1252", "replace")) else []
    found = UnicodeDammit(sample, user_encodings=first, is_html=True).original_encoding
    return body.decode(_known(found, body) or "cp1252", "replace")


def _known(label: str | None, body: bytes) -> str:
    """Return the Python codec for a label, or "" if there is none."""
    try:
        name = codecs.lookup(label or "").name.replace("_", "-")
        b" ".decode(name, "replace")  # refuses codecs that are not text, such as zlib
    except (LookupError, ValueError):
        return ""
    wide = name.startswith(("utf-16", "utf-32"))
    return "" if name in _NOT_FOR_PAGES or (wide and b"\0" not in body) else _SUPERSETS.get(name, name)


def _is_western(text: str) -> bool:
    """Whether bytes read as windows-1252 are words: their letters beyond ASCII stand among many of ASCII."""
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    foreign = sum(2 * sum(letter > "\x7f" for letter in word) > len(word) + 1 for word in words)
    return 10 * foreign <= len(words) and _EASTERN.search(text) is None


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


def _parse(html: str) -> tuple[BeautifulSoup, bool]:
    """The tree of a page, and whether that is the whole page."""
    from bs4 import BeautifulSoup
    from bs4.element import PreformattedString

    data = _XML_DECLARATION.sub("", html).replace("\0", "").encode("utf-8", "replace")
    length = _bounded_length(data)
    soup = BeautifulSoup(data[:length], "lxml", from_encoding="utf-8")
    for comment in soup.find_all(string=lambda text: isinstance(text, PreformattedString)):
        comment.extract()
    return soup, length == len(data)


def _bounded_length(data: bytes) -> int:
    """Return how many bytes from the beginning of a page are within the limits."""
    from lxml import etree  # type: ignore[import-untyped]  # has no type stubs of its own

    if len(data) < _CHUNK and data.count(b"<") < _MAX_DEPTH:  # a piece of a feed
        return len(data)
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

_SHORT = 500  # characters below which trafilatura takes everything there is, menus and all
_PROSE = 60  # characters; shorter lines are headings, buttons, names
_MOST_PARAGRAPHS = 4_000  # trafilatura compares itself with methods whose time grows with the square of these
_MOST_COPIED = 4_000_000_000  # elements times characters: to take elements out one by one copies up to as many
_BLOCKS = frozenset(
    {"address", "article", "blockquote", "body", "br", "caption", "center", "dd", "details", "div", "dl", "dt"}
    | {"fieldset", "figcaption", "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li"}
    | {"main", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"}
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
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


def _main_text(soup: BeautifulSoup, stated: str) -> str:
    """The main text as trafilatura finds it; where that is next to nothing or mostly links, the lines of the page."""
    for sign in soup.select(".mw-editsection, a[href^='#'], a:not([href])"):  # in headings of manuals and wikis
        words = sign.get_text().strip()
        if sign.name != "a" or (len(words) == 1 and not words.isalnum()):
            sign.clear()
    for figure in soup.find_all("figure"):  # trafilatura leaves them out
        if caption := figure.find("figcaption"):
            figure.insert_after(soup.new_tag("p", string=_one_line(caption.get_text(" "))))
            caption.decompose()
    text = _extracted(soup)
    links = {_one_line(anchor.get_text()) for anchor in soup.find_all("a")}
    said = sum(len(line) for line in text.split("\n") if _one_line(line.removeprefix("- ")) not in links)
    if len(text) < _SHORT or 2 * said <= len(text):
        lines = _page_lines(soup)
        # Many more lines than a clean short text has are those around it.
        is_clean = said > 0.9 * len(text) and len(lines) > 2 * len(text) > 2 * _PROSE
        text = text if is_clean or 4 * len(lines) < said else lines
    return stated if _is_beginning(text, stated) else text


def _is_beginning(text: str, stated: str) -> bool:
    """Whether the page shows hardly more than a beginning of the article that it states."""
    words, all_words = text.split(), Counter(stated.split())
    is_part = 0.6 * len(words) <= (Counter(words) & all_words).total()
    return len(stated) > 5 * len(text) or (is_part and len(stated) > 1.5 * len(text))


def _stated_body(soup: BeautifulSoup) -> str:
    """Return the longest `articleBody` in the page's JSON-LD as text."""
    found = [""]
    for script in soup.select("script[type='application/ld+json']"):
        try:
            left: list[Any] = [json.loads(script.get_text())]
        except (ValueError, RecursionError):
            continue
        while left:
            value = left.pop()
            if isinstance(value, dict):
                left += value.values()
                found.append(str(value.get("articleBody", "")))
            elif isinstance(value, list):
                left += value
    return _plain(max(found, key=len)[:_MAX_CHARACTERS])


def _extracted(soup: BeautifulSoup) -> str:
    import trafilatura

    # Paragraphs that it reports as errors are missing in its result, and then the lines of the page are taken.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    elements = len(soup.find_all(True))
    if elements * len(soup.get_text()) > _MOST_COPIED or any(len(row.contents) > 1000 for row in soup.find_all("tr")):
        return ""
    fast = len(soup.find_all(["p", "div", "li", "td", "br", "pre"])) > _MOST_PARAGRAPHS
    try:
        return (trafilatura.extract(str(soup), include_comments=False, fast=fast) or "").strip()
    except Exception:  # noqa: BLE001 - a page can trip any of its parsers
        return ""


def _page_lines(soup: BeautifulSoup) -> str:
    """The lines of a page without boilerplate elements and links; with links if it has hardly any other text. A table
    row is one line.
    """
    body = soup.body or soup
    lines: list[tuple[str, int]] = []  # each with how many of its characters are links
    for is_break, pieces in groupby(_pieces(body, len(body.get_text()) / 2), key=lambda piece: piece is None):
        told = [piece for piece in pieces if piece]
        text = "".join(text for text, _ in told)
        text = text.strip("\n" if "\n" in text else None).removesuffix("| ").removesuffix("|").rstrip()
        if not is_break and text not in ("", "-"):
            lines.append((text, sum(len(text.strip()) for text, is_link in told if is_link)))
    read = [line for line, linked in lines if linked < 0.8 * len(line)]
    said = sum(map(len, read))
    is_index = max(map(len, read), default=0) < _PROSE and 5 * said < sum(len(line) for line, _ in lines)
    return "\n".join([line for line, _ in lines] if is_index else read)


def _pieces(
    element: Tag, half: float, *, is_link: bool = False, is_listing: bool = False, is_heading: bool = False
) -> Iterator[tuple[str, bool] | None]:
    """Yield the texts in an element, each with whether it is a link, and None where a line ends. Headings count as no
    links: those of manuals link to themselves. Recursion is as deep as the tree, which is bounded.
    """
    from bs4.element import Tag

    for child in element.children:
        if not isinstance(child, Tag):
            yield str(child) if is_listing else _SPACES.sub(" ", str(child)), is_link and not is_heading
        elif not _is_beside(child, half):
            name = child.name
            if name in _BLOCKS:
                yield None
            if name == "li":
                yield "- ", False
            yield from _pieces(
                child,
                half,
                is_link=is_link or name == "a",
                is_listing=is_listing or name == "pre",
                is_heading=is_heading or name in _HEADINGS,
            )
            if name in _BLOCKS:
                yield None
            elif name in ("td", "th"):
                yield " | ", False


def _is_beside(element: Tag, half: float) -> bool:
    """Whether an element is beside the content, by its tag, role or name, unless it contains half of the page."""
    if element.name in _BESIDE or element.get("role") in _BESIDE_ROLES:
        return element.name not in ("footer", "aside") or len(element.get_text()) <= half
    if element.name == "header" and element.find("h1") is None:
        return element.find_parent(["article", "main"]) is None
    names = f"{_attribute(element, 'id')[:200]} {_attribute(element, 'class')[:500]}"
    is_form = element.name == "form" and element.find(["p", "h1"]) is None
    return (is_form or _BESIDE_NAMES.search(names) is not None) and len(element.get_text()) <= half


def _attribute(element: Tag, name: str) -> str:
    value = element.get(name) or ""
    return value if isinstance(value, str) else " ".join(value)


# The links in the main text.


def _links(soup: BeautifulSoup, page_url: str, text: str) -> tuple[Link, ...]:
    """Return the links whose words are a line of the text or part of a paragraph."""
    base = soup.select_one("base[href]")
    base_url = (base is not None and _absolute(page_url, _attribute(base, "href"))) or page_url
    lines = {_one_line(part.removeprefix("- ")) for line in text.split("\n") for part in (line, *line.split("|"))}
    is_said: dict[int, bool] = {}
    found: dict[str, Link] = {}
    for anchor in soup.find_all("a", href=True):
        words = _one_line(anchor.get_text())
        block = next((above for above in anchor.parents if above.name in _BLOCKS or above.name in ("td", "th")), anchor)
        if words and id(block) not in is_said:
            is_said[id(block)] = _one_line(block.get_text()) in lines
        if words and is_said[id(block)] and (url := _absolute(base_url, _attribute(anchor, "href"))):
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

_HIDDEN = (  # React sends S:… later, and its script puts it into its place
    "[hidden]:not([hidden='until-found' i], [id^='S:']), dialog:not([open]), "
    ".sr-only, .visually-hidden, .visuallyhidden, .screen-reader-text"
)
_OPENED_BY_CLICK = "[role=tab][aria-controls]:not(nav *, header *), [aria-expanded][aria-controls]:not(nav *, header *)"
_TINY = re.compile(r"(?:[01]|0?\.\d+)(?:px|pt)?|0(?:\.0\d*)?(?:r?em|%|v[wh])")
_SIZES = ("width", "height", "max-width", "max-height")
_GONE = re.compile(
    r";(?:display:none|content-visibility:hidden"
    r"|(?:text-indent|margin-left|margin-top|left|top|right|bottom):-(?:(?:9\d\d|\d{4,})[\d.]*(?:px|pt)?"
    r"|(?:5[7-9]|[6-9]\d|\d{3,})[\d.]*r?em|(?:9\d|\d{3,})[\d.]*(?:%|v[wh]))"
    r"|(?:clip|clip-path|transform):[^;]*(?:rect\([01](?:px)?[\s,]|inset\((?:[5-9]\d|100)%|circle\(0|scale[xy]?\(0"
    r"|translate\w*\(-\d{4}))"
)
_COUNTED = frozenset(
    {"text-indent", "margin-left", "margin-top", "left", "top", "right", "bottom", "overflow", "display", "opacity"}
    | {"content-visibility", "visibility", "clip", "clip-path", "transform", "color", "font-size", "background"}
    | {"background-color", "background-clip", *_SIZES}
)
_INHERITED = {"visibility", "font-size", "color", "background-color", "background-clip"}
_COLOUR = re.compile(r"#([0-9a-f]{3,8})\b|rgba?\(([^()]*)\)|\b(white|black|transparent)\b")
_COLOUR_NAMES = {"white": "ffffff", "black": "000000", "transparent": "00000000"}
_SAME = 8  # of 255: differences that are not visible
_FADES_IN = 0.3  # of a page's text: one that fades in holds more of it in transparent elements, one that hides less
_MAX_CSS = 200_000  # characters
_MOST_MATCHES = 500_000  # of rules with elements
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_SELECTOR = re.compile(r"(?:[a-z][a-z0-9]*)?(?:[.#][a-z_][\w-]*)*", re.ASCII | re.IGNORECASE)
_NAME = re.compile(r"[.#]?[\w-]+")
_APPLIES = re.compile(r"@(?:layer|supports|media(?!.*(?:print|max-width|prefers)))")


def _drop_hidden(soup: BeautifulSoup) -> None:
    """Remove code, and text that is hidden, tiny, off the screen, clipped away or written in the colour of its ground.

    Styles are those in the page: attributes, and rules of one simple selector in `<style>`. Panels of tabs and of
    headings that unfold stay, because a click shows them.
    """
    from bs4.element import NavigableString

    styles, page = _styles(soup)
    for code in soup.select("style, script:not([type='application/ld+json'])"):
        code.decompose()
    panels = {name for each in soup.select(_OPENED_BY_CLICK) for name in _attribute(each, "aria-controls").split()}
    hidden = {id(element) for element in soup.select(_HIDDEN)}
    looks: dict[int, Style | None] = {id(soup): page}  # None: gone
    gone: list[Tag] = []
    transparent: dict[int, Tag] = {}
    for element in soup.find_all(True):
        style, above = styles.get(id(element)), looks[id(element.parent)]
        if above is None:
            looks[id(element)] = None
            continue
        is_hidden = id(element) in hidden or (style is not None and _is_gone(style))
        if is_hidden and (element.get("id") not in panels or _is_menu(element)):
            looks[id(element)] = None
            gone.append(element)
            continue
        look = above | {name: style[name] for name in _INHERITED & style.keys()} if style else above
        looks[id(element)] = look
        if look is not page and not _is_seen(look):
            for text in [child for child in element.contents if isinstance(child, NavigableString)]:
                text.extract()
        elif style and style.get("opacity") in ("0", "0%", "0.0", ".0"):
            transparent[id(element)] = element
    outer = [each for each in transparent.values() if not any(id(above) in transparent for above in each.parents)]
    if sum(len(element.get_text()) for element in outer) <= _FADES_IN * len(soup.get_text()):
        gone += outer
    for element in gone:
        element.decompose()


def _is_menu(element: Tag) -> bool:
    return 2 * sum(len(anchor.get_text()) for anchor in element.find_all("a")) >= len(element.get_text().strip())


def _is_gone(style: Style) -> bool:
    """Whether neither an element nor anything in it is on the screen."""
    is_cut = style.get("overflow") in ("hidden", "clip")
    return _GONE.search("".join(f";{name}:{value};" for name, value in style.items())) is not None or (
        is_cut and any(_TINY.fullmatch(style.get(size, "")) for size in _SIZES)
    )


def _is_seen(look: Style) -> bool:
    """Whether a person can read text of this style."""
    if look.get("visibility") in ("hidden", "collapse") or _TINY.fullmatch(look.get("font-size", "")):
        return False
    ink, ground = _colour(look.get("color", "")), _colour(look.get("background-color", ""))
    if ink is None or "text" in look.get("background-clip", ""):  # a ground that is cut to the letters
        return True
    if ink[3] == 0:
        return False
    return ground is None or max(abs(one - other) for one, other in zip(ink[:3], ground[:3], strict=True)) > _SAME


def _colour(value: str) -> tuple[float, ...] | None:
    """Return red, green and blue (0 to 255) and opacity (0 to 1)."""
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
    red, green, blue, opacity = bytes.fromhex((digits + "ff")[:8])
    return red, green, blue, opacity / 255


def _styles(soup: BeautifulSoup) -> tuple[dict[int, Style], Style]:
    """Return the declarations for each element that has any, and the style of the page: white, unless a style sheet
    elsewhere or a rule that is not read may say otherwise.
    """
    rules, has_others = _rules("".join(style.get_text() for style in soup.find_all("style"))[:_MAX_CSS])
    named: defaultdict[str, dict[int, Tag]] = defaultdict(dict)
    for element in soup.find_all(True) if rules else ():
        for name in (
            element.name,
            f"#{element.get('id')}",
            *(f".{one}" for one in element.get_attribute_list("class")),
        ):
            named[name][id(element)] = element
    found = defaultdict[int, Style](dict)
    matches = 0
    for names, declared in sorted(rules.items(), key=lambda rule: len(rule[0])):
        fitting = [named.get(name, {}) for name in names]
        for each in min(fitting, key=len):
            matches += 1
            if matches < _MOST_MATCHES and all(each in elements for elements in fitting):
                found[each] |= declared
    for element in soup.select("[style], [color], [bgcolor]"):
        old = f"color:{_attribute(element, 'color')};background:{_attribute(element, 'bgcolor')};"
        style = old + _attribute(element, "style")
        found[id(element)] |= _declarations(style)
    return found, {} if has_others or soup.select_one("link[rel=stylesheet]") else {"background-color": "white"}


def _declarations(css: str) -> Style:
    text = _CSS_COMMENT.sub("", css[:_MAX_CSS]).lower().replace("!important", "")
    pairs = ((name.strip(), value.strip()) for name, _, value in (part.partition(":") for part in text.split(";")))
    found = {
        name: value
        for name, value in ((name.removeprefix("-webkit-"), value) for name, value in pairs)
        if value and name in _COUNTED
    }
    if "background" in found:
        found["background-color"] = found.pop("background")
    return found


def _rules(css: str) -> tuple[dict[tuple[str, ...], Style], bool]:
    """Return the declarations by the names of selectors without combinators, and whether another one sets a background.
    Media queries are answered for a wide screen.
    """
    found = defaultdict[tuple[str, ...], Style](dict)
    has_others = False
    around: list[bool] = []  # for each open at-rule whether it applies
    for piece in _CSS_COMMENT.sub("", css).split("}"):
        *opened, body = piece.split("{")
        around = (
            [*around, *(bool(_APPLIES.search(rule[-200:].lower())) for rule in opened[:-1])] if opened else around[:-1]
        )
        if not opened or not all(around):
            continue
        declared = _declarations(body)
        for selector in map(str.strip, opened[-1].rpartition(";")[2].split(",")):
            if selector and _SELECTOR.fullmatch(selector):
                found[tuple(_NAME.findall(selector))] |= declared
            elif "background" in body and "@" not in selector:
                has_others = True
    return found, has_others


# A feed (RSS 0.9 to 2.0, Atom) as text: its entries in their order, each with its title, time, address and words.

_FIRST_TAG = re.compile(r"<([a-z][\w:]*)", re.IGNORECASE)
_MOST_TAGS = 60_000  # of a feed, opening and closing
_ROOTS = frozenset({"rss", "feed", "rdf:RDF", "RDF"})
_DATES = ("pubDate", "published", "updated", "dc:date", "date")
_BODIES = ("content:encoded", "content", "description", "summary", "subtitle")  # the fullest first


def _feed(source: str, page_url: str) -> Article | None:
    """A feed as an article, with its entries for links; None for any other XML."""
    from bs4 import BeautifulSoup
    from bs4.exceptions import ParserRejectedMarkup

    first = _FIRST_TAG.search(source)
    if first is None or first[1] not in _ROOTS:
        return None
    try:
        # Without the declarations before it no entity is expanded and nothing is loaded.
        *tags, rest = source[first.start() :].split("<", _MOST_TAGS)
        is_cut = len(tags) == _MOST_TAGS
        data = "<".join(tags if is_cut else [*tags, rest]).encode("utf-8", "replace")
        root = BeautifulSoup(data, "lxml-xml", from_encoding="utf-8").find(True)
    except ParserRejectedMarkup:
        return None
    if root is None:
        return None
    about = root.find("channel", recursive=False) or root
    entries = [
        about,
        *(one for each in {about: 0, root: 0} for one in each.find_all(["item", "entry"], recursive=False)),
    ]
    told = [_entry(entry) for entry in entries]
    found = {url: title for title, address, _ in told[1:] if (url := _absolute(page_url, address))}
    links = tuple(Link(_one_line(title) or url, url) for url, title in found.items())
    text = _clean("\n\n".join(text for _, _, text in told))
    return Article(_one_line(told[0][0]), text + _REST_LEFT_OUT * is_cut, links[:MOST_LINKS])


def _entry(entry: Tag) -> tuple[str, str, str]:
    """Return the title of an entry, its address, which may be relative, and all its fields as lines."""

    def field(*names: str) -> str:
        texts = (_plain(found.get_text()) for name in names if (found := entry.find(name, recursive=False)))
        return next(filter(None, texts), "")

    title, date, body = field("title"), field(*_DATES), field(*_BODIES)
    links = [each for each in entry.find_all("link", recursive=False) if each.get("rel") in (None, "alternate")]
    address = (_attribute(links[0], "href") or links[0].get_text()).strip() if links else ""
    return title, address, "\n".join(filter(None, (title, date, address, body if body != title else "")))


def _plain(html: str) -> str:
    """The lines of a piece of HTML, or of a text that is none."""
    text = _page_lines(_parse(html)[0]) if "<" in html else unescape(html)
    return "\n".join(filter(None, map(str.strip, text.split("\n"))))
