"""Lines that a prompt has of a user: plain, short, and not more than there is room for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

MAX_LINE_CHARACTERS, MAX_CHARACTERS = 300, 2_000
CUT = " … (cut)"
_JOINERS = "\u200c\u200d"  # invisible as control characters are, but some scripts and emoji need them
_MARKUP = re.compile(r"(?:-{2,}|[-+•](?=\s)|[#>*=_~`|\s])+")


def presentable(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the first lines, as many as fit, changed so that none passes for a heading or displaces the rest."""
    kept: list[str] = []
    for line in filter(None, map(plain, lines)):
        if not fits([*kept, line]):
            break
        kept.append(line)
    return tuple(kept)


def fits(lines: Sequence[str]) -> bool:
    """Whether all of them have room in the prompt together."""
    return sum(map(len, lines)) <= MAX_CHARACTERS


def plain(text: str, ending: str = "") -> str:
    """Return one line of plain text, empty if nothing is left. Too long text is cut with a mark, before the
    `ending`.
    """
    text = " ".join("".join(" " if _is_invisible(character) else character for character in text).split())
    text = text[leading.end() :] if (leading := _MARKUP.match(text)) else text
    room = MAX_LINE_CHARACTERS - len(ending)
    return (text if len(text) <= room else text[: room - len(CUT)] + CUT) + ending


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character).startswith("C") and character not in _JOINERS
