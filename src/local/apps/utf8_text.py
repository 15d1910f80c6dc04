"""Text as UTF-8, from the command line or the standard input, where Python lets other bytes pass as half characters."""

from __future__ import annotations

import re
import sys

from local.errors import BadRequest

STANDARD_INPUT = "the standard input"
_WORD_BEGIN = re.compile(r'[^\s"]*\Z')
_WORD_END = re.compile(r'[^\s"]*')
_MOST_SHOWN = 60  # characters on each side of what is no UTF-8


class NotUtf8(BadRequest):
    """A word that is no text in UTF-8: `word` shows its bytes as they are, `caf\\xe9`."""

    kind = "not_utf8"

    def __init__(self, text: str, at: int, place: str = "") -> None:
        """`text` holds at the index `at` what no UTF-8 can say; `place` is where the text was read."""
        begin = _WORD_BEGIN.search(text, max(0, at - _MOST_SHOWN), at)
        end = _WORD_END.match(text, at, at + _MOST_SHOWN)
        self.word = _with_bytes((begin[0] if begin else "") + (end[0] if end else ""))
        line = text.count("\n", 0, at) + 1
        where = f"{place}, line {line}: " if place else ""
        super().__init__(f"{where}'{self.word}' is no text in UTF-8; write it in UTF-8 (`iconv -t UTF-8` makes it so)")


def as_utf8(text: str, place: str = "") -> bytes:
    """The text as UTF-8. Raises `NotUtf8`."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotUtf8(text, error.start, place) from None


def standard_input() -> str:
    """What comes from the standard input up to its end. Raises `NotUtf8`."""
    return utf8_text(sys.stdin.buffer.read(), STANDARD_INPUT)


def utf8_text(content: bytes, place: str) -> str:
    """The text that bytes say. Raises `NotUtf8`."""
    text = content.decode("utf-8", "surrogateescape")
    as_utf8(text, place)
    return text


def _with_bytes(text: str) -> str:
    return "".join(f"\\x{ord(each) - 0xDC00:02x}" if "\udc80" <= each <= "\udcff" else each for each in text)
