"""Finished blocks of Markdown as lines for a terminal."""

from __future__ import annotations

import io

from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.text import Text

from local.apps.console.markdown_blocks import Block, parser

CODE_THEME = "ansi_dark"  # the terminal's own colours, which fit its background
JOINS_CHARACTERS = {"\u200c", "\u200d"}  # what emoji and some scripts are made with


class BlockStyle:
    """Lines of at most `width` columns, with line ends; without escapes where `colour` is False."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def block(self, block: Block, width: int) -> str:
        """A block, with the blank line that parts it from what stands above it."""
        source = clean(block.source)
        if block.language is None:
            body = self._rendered(_markdown(source), width)
        else:
            body = self._rendered(_code(source, block.language), width)
        return body if block.continues else f"\n{body}"

    def dim(self, line: str) -> str:
        """A line that stays in the background."""
        return f"\x1b[2m{line}\x1b[22m" if self._colour else line

    def alarm(self, line: str) -> str:
        """A line that says that something went wrong."""
        return f"\x1b[31m{line}\x1b[39m" if self._colour else line

    def _rendered(self, what: Markdown | Text, width: int) -> str:
        out = io.StringIO()
        Console(
            file=out, width=max(width, 4), force_terminal=self._colour, no_color=not self._colour, legacy_windows=False,
            color_system="standard" if self._colour else None, highlight=False, emoji=False, _environ={},
        ).print(what, crop=False, overflow="fold", no_wrap=False)  # fmt: skip
        return "".join(f"{line.rstrip()}\n" for line in out.getvalue().rstrip("\n").split("\n"))


def clean(text: str) -> str:
    """Text without control characters, which would be orders to the terminal: they show as `\\x1b`. Direction marks
    are such orders, too."""
    if text.isprintable():
        return text
    shown = (char if _is_harmless(char) else char.encode("unicode_escape").decode() for char in text)
    return "".join(shown)


def _is_harmless(char: str) -> bool:
    return char.isprintable() or char in "\n\t" or char in JOINS_CHARACTERS or (char.isspace() and ord(char) > 0x7F)


def _markdown(source: str) -> Markdown:
    made = Markdown("", hyperlinks=False, code_theme=CODE_THEME, inline_code_lexer=None)
    made.markup = source
    made.parsed = parser().parse(source)
    return made


def _code(line: str, language: str) -> Text:
    text = Syntax("", language or "text", theme=CODE_THEME).highlight(line)
    text.rstrip()
    return Text("  ").append_text(text)
