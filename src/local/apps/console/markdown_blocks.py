"""Markdown that comes in fragments, cut into blocks that are finished: what has been printed is never touched again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")


@dataclass(frozen=True, slots=True)
class Block:
    """Finished Markdown. One that `continues` stands right below the one before: a further item of its list, a further
    line of its code. `language` is that of a line of code, None for everything else."""

    source: str
    continues: bool = False
    language: str | None = None


class MarkdownBlocks:
    """Feed it what comes. Each character of the text is in one block, but for blank lines between two and the marks
    around code."""

    def __init__(self) -> None:
        self._rest = ""
        self._fence = ""  # the mark that closes the code we are in
        self._language = ""
        self._in_list = self._in_code = self._in_paragraph = False  # what the last block was a part of

    @property
    def rest(self) -> str:
        """What has come and is in no block yet."""
        return self._rest

    def feed(self, fragment: str) -> list[Block]:
        """Take a fragment; returns what is finished with it."""
        self._rest += fragment
        if "\n" not in fragment:
            return []
        finished: list[Block] = []
        while block := self._code_line() if self._fence else self._next_finished():
            finished.append(block)
        return [block for block in finished if block.source or block.language is not None]

    def take(self, characters: int) -> Block:
        """Finish the beginning of the rest, of a paragraph that goes on."""
        block = Block(self._rest[:characters].strip(), self._in_paragraph)
        self._rest, self._in_paragraph = self._rest[characters:].lstrip(), True
        return block

    def close(self) -> list[Block]:
        """Nothing more comes; returns what is left."""
        blocks = self.feed("\n")
        rest, self._rest = self._rest, ""
        if self._fence:
            return [*blocks, *([Block(rest, self._in_code, self._language)] if rest else [])]
        return [*blocks, *([Block(rest.rstrip(), self._in_list or self._in_paragraph)] if rest.strip() else [])]

    def _code_line(self) -> Block | None:
        line, end, rest = self._rest.partition("\n")
        if not end:
            return None
        self._rest = rest
        stripped = line.strip()
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence, self._in_code = "", False
            return Block("", True)  # the mark, which nobody sees
        block, self._in_code = Block(line, self._in_code, self._language), True
        return block

    def _next_finished(self) -> Block | None:
        whole_lines = self._rest[: self._rest.rfind("\n") + 1]
        first, opening = self._blank(whole_lines)
        if opening:
            self._rest = self._rest[first:]
            return self._enter_code()
        starts = _starts(whole_lines[first:])
        if len(starts) < 2:
            return None
        lines = whole_lines[first:].splitlines(keepends=True)
        (_, is_item), (end, is_next_item) = starts[0], starts[1]
        source = "".join(lines[:end])
        block = Block(source.rstrip(), self._in_paragraph or (self._in_list and is_item))
        self._in_list, self._in_paragraph = is_item and is_next_item, False
        self._rest = self._rest[first + len(source) :]
        return block

    def _blank(self, text: str) -> tuple[int, bool]:
        """How many characters of blank lines there are at the beginning, and whether code begins after them."""
        first = 0
        for line in text.splitlines(keepends=True):
            if line.strip():
                return first, _FENCE.fullmatch(line.rstrip("\n")) is not None
            first += len(line)
        return first, False

    def _enter_code(self) -> Block:
        line, _, self._rest = self._rest.partition("\n")
        found = _FENCE.fullmatch(line)
        assert found is not None
        self._fence, self._language = found[1], found[2]
        self._in_list = self._in_paragraph = False
        return Block("", True)


def _starts(text: str) -> list[tuple[int, bool]]:
    """The lines at which the blocks of a text begin, and whether each is an item of a list."""
    found: list[tuple[int, bool]] = []
    for token in parser().parse(text):
        if token.map is not None and _is_block(token):
            found.append((token.map[0], token.type == "list_item_open"))
    return found


def _is_block(token: Token) -> bool:
    if token.type == "list_item_open":
        return token.level == 1
    return token.level == 0 and token.nesting >= 0 and token.type not in ("bullet_list_open", "ordered_list_open")


@cache
def parser() -> MarkdownIt:
    """What both cuts Markdown and prints it. HTML in it is text."""
    from markdown_it import MarkdownIt  # only where there is something to print with it

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
