"""Outlines of texts that people write: Markdown, reStructuredText, settings, plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from local.services.reading.outline import Outline, blocks, nested

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#.:_`])\1{2,}\s*$")
_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)[.)]?\s+[A-Z]\w")
_SETTING = re.compile(r"(?:\[{1,2}([^\[\]]+)\]{1,2}|([\w.\"'-]+)\s*:)(?:\s|$)")
MARKDOWN = (".md", ".markdown", ".mdx")
SETTINGS = (".toml", ".ini", ".cfg", ".conf", ".yaml", ".yml")


def text_outline(suffix: str, lines: Sequence[str]) -> Outline:
    """The outline of a text, by what the name of the file ends with; a text without headings in blocks of lines."""
    if suffix in MARKDOWN:
        kind, headings = "Markdown", list(_markdown(lines))
    elif suffix in SETTINGS:
        kind, headings = "settings", list(_settings(lines))
    else:
        kind, headings = "text", list(_underlined(lines)) or list(_numbered(lines))
    parts = nested(headings, len(lines))
    return Outline(kind, lines, parts if len(parts) > 1 else blocks(lines))


def _markdown(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    fence = ""
    for number, line in enumerate(lines, start=1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading := _ATX.match(line):
            yield number, len(heading[1]), heading[2] or ""
        elif number > 1 and re.fullmatch(r"(=+|-{2,})\s*", line) and _is_title(lines, number - 2):
            yield number - 1, 1 if line[0] == "=" else 2, lines[number - 2].strip()


def _is_title(lines: Sequence[str], index: int) -> bool:
    """Whether a line may be the text of an underlined heading: a paragraph of its own, no list and no table."""
    text = lines[index].strip()
    alone = index == 0 or not lines[index - 1].strip()
    return bool(text) and alone and text[0] not in "#>|-*+`"


def _underlined(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Titles with a line of signs under them, in the order in which the signs come up, as in reStructuredText."""
    levels = list[str]()
    for index in range(1, len(lines)):
        mark, title = _UNDERLINE.match(lines[index]), lines[index - 1]
        if mark is None or not title.strip() or _UNDERLINE.match(title) or len(lines[index].rstrip()) < len(title) // 2:
            continue
        if title[0].isspace() and lines[index - 2 : index - 1] != [lines[index]]:
            continue
        sign = mark[1]
        if sign not in levels:
            levels.append(sign)
        yield index, levels.index(sign) + 1, title.strip()


def _numbered(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for number, line in enumerate(lines, start=1):
        if len(line) <= 80 and (mark := _NUMBERED.match(line)) and not line.rstrip().endswith((".", ",", ";")):
            yield number, mark[1].count(".") + 1, line.strip()


def _settings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for number, line in enumerate(lines, start=1):
        if line[:1] not in (" ", "\t", "#", "-") and (mark := _SETTING.match(line)):
            yield number, 1, (mark[1] or mark[2]).strip()
