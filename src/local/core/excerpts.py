"""Long texts made short: parts that end where a sentence does, and excerpts chosen by a question."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？]|(?=\n)")
_WORD_END = re.compile(r"(?=\s)")
_JOINER = "\u200d"
_LONGEST_CLUSTER = 64
HEAD_SHARE = 0.2  # of the excerpt, for orientation: title and beginning
LEAST_PARAGRAPH, LONGEST_PARAGRAPH = 40, 600  # characters; longer ones are parted
MARK_ROOM = 48
_K1, _B = 1.2, 0.75  # as usual for BM25

_WORD = re.compile(r"\w{2,}")
_GAP = re.compile(r"\n\s*\n")


def part_end(text: str, start: int, limit: int) -> int:
    """The index at which a part that begins at `start` and has at most `limit` (≥ 1) characters ends; > start."""
    hard = start + limit
    if hard >= len(text):
        return len(text)
    floor = start + max(1, limit // 2)
    for pattern in (_SENTENCE_END, _WORD_END):
        # One character more is examined: whether `hard` is an end depends on the next character.
        ends = [match.end() for match in pattern.finditer(text, floor, hard + 1) if match.end() <= hard]
        if ends:
            return ends[-1]
    return _character_end(text, start, hard)


def next_start(text: str, end: int) -> int | None:
    """Return where the part after one that ended at `end` begins: at the next character that is not white space."""
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


def excerpt(text: str, question: str, limit: int) -> str:
    """Return at most `limit` characters of the text, in its order, each cut marked with the length left out.

    Paragraphs are ranked by BM25 (Robertson and Zaragoza, 2009) against the question's words. If the limit is too small
    for any text, the result is only the mark, which may be longer.
    """
    if len(text) <= limit:
        return text
    spans = _paragraphs(text, max(LEAST_PARAGRAPH, min(LONGEST_PARAGRAPH, limit // 4)))
    scores = _scores([text[start:end] for start, end in spans], question)
    chosen = _Chosen(spans, limit)
    for index in range(len(spans)):
        if chosen.length + spans[index][1] - spans[index][0] > limit * HEAD_SHARE:
            break
        chosen.take(index)
    for index in sorted(range(len(spans)), key=lambda index: (-scores[index], index)):
        chosen.take(index)
    return _joined(text, [spans[index] for index in sorted(chosen.indexes)])


def closest(texts: Sequence[str], question: str, least: float) -> list[int]:
    """The indexes of the texts that have to do with the question, those that have most first, younger before older
    ones. A text is among them if its score is at least this part of the best one's."""
    scores = _scores(texts, question)
    best = max(scores, default=0.0)
    found = (index for index, score in enumerate(scores) if score > 0 and score >= least * best)
    return sorted(found, key=lambda index: (-scores[index], -index))


def mark(characters: int) -> str:
    """Return the mark for that many omitted characters."""
    return f"[… {characters:,} characters left out …]"


def _paragraphs(text: str, longest: int) -> list[tuple[int, int]]:
    ends = [match.end() for match in _GAP.finditer(text)]
    spans: list[tuple[int, int]] = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        while end - start > longest:
            cut = min(end, part_end(text, start, longest))
            spans.append((start, cut))
            start = cut
        if start < end:
            spans.append((start, end))
    return spans


class _Chosen:
    """The paragraphs chosen so far, and their length with the marks between them; it starts with one mark."""

    def __init__(self, spans: Sequence[tuple[int, int]], limit: int) -> None:
        self._spans, self._limit = spans, limit
        self.indexes: set[int] = set()
        self.length = MARK_ROOM

    def take(self, index: int) -> None:
        """Take a paragraph if there is room for it."""
        start, end = self._spans[index]
        sides = (index == 0 or index - 1 in self.indexes) + (index == len(self._spans) - 1 or index + 1 in self.indexes)
        cost = end - start + 1 + (1 - sides) * MARK_ROOM
        if index not in self.indexes and self.length + cost <= self._limit:
            self.indexes.add(index)
            self.length += cost


def _scores(texts: Sequence[str], question: str) -> list[float]:
    counts = [Counter(_terms(text)) for text in texts]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(texts) or 1.0 if texts else 1.0
    scores = [0.0] * len(texts)
    for term in set(_terms(question)):
        having = sum(term in count for count in counts)
        weight = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for index, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            found = count[term]
            scores[index] += weight * found * (_K1 + 1) / (found + _K1 * (1 - _B + _B * length / mean))
    return scores


def _terms(text: str) -> list[str]:
    # One "s" less makes most English plurals equal; other languages lose nothing by it.
    return [word.removesuffix("s") for word in _WORD.findall(text.lower())]


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        if start > at:
            pieces.append(f"{mark(start - at)}\n")
        pieces.append(text[start:end])
        at = end
        if not text[start:end].endswith("\n"):
            pieces.append("\n")
    if at < len(text):
        pieces.append(mark(len(text) - at))
    return "".join(pieces).rstrip("\n")
