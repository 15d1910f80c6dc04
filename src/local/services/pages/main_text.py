"""The text that a page is there for: what trafilatura finds, or where that is not it, the page's blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any

from local.services.pages.dropped_elements import drop_elements
from local.services.pages.extraction import extracted_text
from local.services.pages.markup import strip_markup
from local.services.pages.page_blocks import PageBlock, joined, page_blocks
from local.services.pages.reading_limit import count_steps, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

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
    return max(map(_plain, bodies), key=len, default="")


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


def _plain(body: str) -> str:
    return strip_markup(body) if "<" in body else body
