"""The outline of HTML and its like: headings, landmarks, forms, styles, scripts, and which classes are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser

from local.services.reading.outline import Outline, blocks, nested

LANDMARKS = ("main", "nav", "header", "footer", "aside", "section", "article", "form", "table", "style", "script")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
MOST_CLASSES, MOST_TITLE = 15, 80


def markup_outline(text: str, lines: Sequence[str]) -> Outline:
    """Headings count as parts of the landmark that they stand in."""
    reader = _MarkupReader()
    reader.feed(text)
    reader.close()
    parts = nested(reader.found, len(lines))
    facts = []
    if reader.title:
        facts.append(f"title: {' '.join(reader.title.split())[:MOST_TITLE]}")
    if reader.classes:
        common = ", ".join(f".{name} ×{times}" for name, times in reader.classes.most_common(MOST_CLASSES))
        facts.append(f"classes: {common}")
    return Outline("HTML", lines, parts if len(parts) > 1 else blocks(lines), facts)


class _MarkupReader(HTMLParser):
    """`found` are parts as (line, level, title)."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, int, str]] = []
        self.classes: Counter[str] = Counter()
        self.title = ""
        self._heading: tuple[int, str, list[str]] | None = None
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A part begins."""
        named = dict(attrs)
        self.classes.update((named.get("class") or "").split())
        if tag == "title":
            self._within.append(tag)
        elif tag in HEADINGS:
            self._heading = self.getpos()[0], tag, []
        elif tag in LANDMARKS:
            name = named.get("id") or named.get("aria-label") or named.get("src") or named.get("class") or ""
            self.found.append((self.getpos()[0], 1, f"<{tag}> {name}".strip()[:MOST_TITLE]))

    def handle_data(self, data: str) -> None:
        """Text of a heading or of the page's title."""
        if self._heading is not None:
            self._heading[2].append(data)
        elif self._within:
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        """A heading is whole."""
        if tag == "title" and self._within:
            self._within.pop()
        elif self._heading is not None and tag == self._heading[1]:
            line, name, text = self._heading
            self.found.append((line, 1 + int(name[1]), " ".join("".join(text).split())[:MOST_TITLE]))
            self._heading = None


def style_outline(lines: Sequence[str]) -> Outline:
    """The rules of a style sheet: each selector with its lines; what stands within @media is a level below."""
    found, depth = list[tuple[int, int, str]](), 0
    in_comment = False
    for number, line in enumerate(lines, start=1):
        code, in_comment = _uncommented(line, in_comment=in_comment)
        if "{" in code:
            selector = code.partition("{")[0].strip() or (lines[number - 2].strip() if number > 1 else "")
            if selector and depth < 2:
                found.append((number, depth + 1, selector))
        depth = max(0, depth + code.count("{") - code.count("}"))
    parts = nested(found, len(lines))
    return Outline("style sheet", lines, parts if len(parts) > 1 else blocks(lines))


def _uncommented(line: str, *, in_comment: bool) -> tuple[str, bool]:
    code = ""
    while line:
        if in_comment:
            _, closed, line = line.partition("*/")
            in_comment = not closed
        else:
            part, opened, line = line.partition("/*")
            code += part
            in_comment = bool(opened)
    return code, in_comment
