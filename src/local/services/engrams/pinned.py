"""What users have pinned, as lines for a prompt: in their own words, and only what holds."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from local.errors import PinRefused
from local.services.engrams import facts, record
from local.services.engrams.engram import Engram, StatedFact
from local.services.engrams.words import own_words

MAX_LINES, MAX_LINE_CHARACTERS, MAX_CHARACTERS = 30, 300, 2_000
CUT = " … (cut)"
_JOINERS = "\u200c\u200d"  # invisible as control characters are, but some scripts and emoji need them
_MARKUP = re.compile(r"(?:-{2,}|[-+•](?=\s)|[#>*=_~`|\s])+")


def presentable(lines: Iterable[str]) -> tuple[str, ...]:
    """The first of them, as many as there is room for, none of which can pass for a heading or crowd out the rest."""
    kept: list[str] = []
    for line in filter(None, map(plain, lines)):
        if not fits([*kept, line]):
            break
        kept.append(line)
    return tuple(kept)


def fits(lines: Sequence[str]) -> bool:
    """Whether all of them have room in the prompt together."""
    return len(lines) <= MAX_LINES and sum(map(len, lines)) <= MAX_CHARACTERS


def plain(text: str, ending: str = "") -> str:
    """One line of plain text, empty if nothing is left. What is too long is cut, before the `ending`, and says so."""
    text = " ".join("".join(" " if _is_invisible(character) else character for character in text).split())
    text = text[leading.end() :] if (leading := _MARKUP.match(text)) else text
    room = MAX_LINE_CHARACTERS - len(ending)
    return (text if len(text) <= room else text[: room - len(CUT)] + CUT) + ending


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character).startswith("C") and character not in _JOINERS


@dataclass(frozen=True, slots=True)
class Pinned:
    """The lines, in the order in which they were pinned; `left_out` are the pinned engrams whose lines have no room
    any more, as what they state has grown since."""

    lines: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def pin(db: sqlite3.Connection, user_id: str, engram_id: str, now: float) -> None:
    """Pin an engram. Raises `NotOnRecord`, and `PinRefused` where that would not show in the prompt, or where another
    pin would not any more."""
    before = of_user(db, user_id)
    record.pin(db, user_id, engram_id, 1, now)
    lines = _lines(db, record.engram(db, user_id, engram_id), facts.current(db, user_id))
    if not lines:
        raise PinRefused("what the user said there holds no more, or none of it is in the user's own words")
    if not {*of_user(db, user_id).left_out} <= {*before.left_out} - {engram_id}:
        new = [line for line in lines if line not in before.lines]
        used = f"{len(before.lines)} of {MAX_LINES} lines and {_size(before.lines)} of {MAX_CHARACTERS:,} characters"
        raise PinRefused(
            f"no room: {used} are used, and this needs {len(new)} with {_size(new)}; unpin something first"
        )


def of_user(db: sqlite3.Connection, user_id: str) -> Pinned:
    """What is current of each fact that a pinned exchange stated, else what the user asked there; never an answer."""
    current = facts.current(db, user_id)
    return fitting([(engram.engram_id, _lines(db, engram, current)) for engram in record.pinned(db, user_id)])


def fitting(pins: Sequence[tuple[str, Sequence[str]]]) -> Pinned:
    """The lines of pinned engrams, given in the order in which they were pinned: the latest have their place first."""
    kept: tuple[str, ...] = ()
    left_out: list[str] = []
    for engram_id, lines in reversed(pins):
        together = tuple(dict.fromkeys((*lines, *kept)))
        if fits(together):
            kept = together
        else:
            left_out.append(engram_id)
    return Pinned(kept, tuple(reversed(left_out)))


def _lines(db: sqlite3.Connection, engram: Engram, current: Iterable[StatedFact]) -> list[str]:
    stated = {fact.slot for fact in facts.of_engram(db, engram.engram_id) if fact.confirmed}
    if stated:
        return [_line(fact) for fact in current if fact.slot in stated]
    return list(filter(None, [plain(own_words(engram.query))]))


def _line(fact: StatedFact) -> str:
    said = datetime.fromtimestamp(fact.stated_at, UTC).date().isoformat()
    return plain(f"{fact.slot}: {fact.value}", f" ({'' if fact.certain else 'not certain, '}said {said})")


def _size(lines: Sequence[str]) -> str:
    return f"{sum(map(len, lines)):,}"
