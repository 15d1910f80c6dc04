"""Where to end one part of a long text: after a sentence, else after a word, never inside a character."""

from __future__ import annotations

import re
import unicodedata

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？]|(?=\n)")
_WORD_END = re.compile(r"(?=\s)")
_JOINER = "\u200d"
_LONGEST_CLUSTER = 64


def part_end(text: str, start: int, limit: int) -> int:
    """The index at which a part that begins at `start` and has at most `limit` (≥ 1) characters ends; > start."""
    hard = start + limit
    if hard >= len(text):
        return len(text)
    floor = start + max(1, limit // 2)
    for pattern in (_SENTENCE_END, _WORD_END):
        # One character more is looked at: an end at `hard` is known by what follows it.
        ends = [match.end() for match in pattern.finditer(text, floor, hard + 1) if match.end() <= hard]
        if ends:
            return ends[-1]
    return _character_end(text, start, hard)


def next_start(text: str, end: int) -> int | None:
    """Where the part after one that ended at `end` begins: at the next character that is not white space."""
    return next((index for index in range(end, len(text)) if not text[index].isspace()), None)


def _character_end(text: str, start: int, hard: int) -> int:
    for end in range(hard, max(start, hard - _LONGEST_CLUSTER), -1):
        if not _continues(text, end):
            return end
    return hard


def _continues(text: str, index: int) -> bool:
    """Whether the character at `index` belongs to the one before it: accent, joined emoji, skin tone, surrogate."""
    character, before = text[index], text[index - 1]
    return (
        unicodedata.category(character).startswith("M")
        or _JOINER in (character, before)
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or ("\udc00" <= character <= "\udfff" and "\ud800" <= before <= "\udbff")
    )
