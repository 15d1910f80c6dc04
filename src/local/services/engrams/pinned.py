"""What a model is told of a user unasked, as lines for a prompt: the current facts and what the user has pinned.

Health and safety come first, then what is pinned, then the other facts, the latest first, up to `MAX_CHARACTERS`.
Every line is the user's own words; only the line of a fact that holds is among them.
"""

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

MAX_LINE_CHARACTERS, MAX_CHARACTERS = 300, 2_000
CUT = " … (cut)"
_JOINERS = "\u200c\u200d"  # invisible as control characters are, but some scripts and emoji need them
# Slots and values that a wrong answer could hurt somebody by. Slots are English; what is edited by hand may not be.
_HEALTH = re.compile(
    r"\b(?:allerg|alerg|anaphyla|epipen|intoleran|unverträg|co?eliac|zöliak|gluten|lactose|laktose|diabet"
    r"|insulin|asthma|asma\b|epilep|medic|médic|medik|prescri|drugs?\b|pills?\b|dosage|disease|illness|diagnos|disab"
    r"|pregnan|schwanger|enceinte|embaraz|pacemaker|heart (?:condition|disease|attack)|(?:medical|health) "
    r"|blood (?:type|group|pressure|thinner)|blutgruppe|emergency|notfall|urgence|emergencia|diet\b|dietary|vegan"
    r"|vegetari|végétar|halal|kosher|cannot eat|can't eat|must not eat|krank|kranken|health\b|gesundheit|salud\b|santé)"
    r"|过敏|過敏|アレルギー|糖尿|素食|妊娠|怀孕",
    re.IGNORECASE,
)
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
    return sum(map(len, lines)) <= MAX_CHARACTERS


def plain(text: str, ending: str = "") -> str:
    """One line of plain text, empty if nothing is left. What is too long is cut, before the `ending`, and says so."""
    text = " ".join("".join(" " if _is_invisible(character) else character for character in text).split())
    text = text[leading.end() :] if (leading := _MARKUP.match(text)) else text
    room = MAX_LINE_CHARACTERS - len(ending)
    return (text if len(text) <= room else text[: room - len(CUT)] + CUT) + ending


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character).startswith("C") and character not in _JOINERS


@dataclass(frozen=True, slots=True)
class ToldLines:
    """The lines of a user in the order in which a prompt has them. `pinned` are those of them that come from pins, in
    the order of pinning; `left_out` are the pinned engrams whose lines have no room."""

    lines: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
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
        health = [line for line in before.lines if line in _health_lines(facts.current(db, user_id))]
        kept = list(dict.fromkeys([*health, *before.pinned]))
        new = [line for line in lines if line not in kept]
        used = f"health facts and pins take {_size(kept)} of {MAX_CHARACTERS:,} characters"
        raise PinRefused(f"no room: {used}, and this pin needs {_size(new)} more; unpin something first")


def of_user(db: sqlite3.Connection, user_id: str) -> ToldLines:
    """What a model is told of a user. Of a pinned exchange that is what is current of each fact that it stated, else
    what the user asked there; never an answer."""
    current = sorted(facts.current(db, user_id), key=lambda fact: (-fact.stated_at, fact.fact_id))
    pins = [(engram.engram_id, _lines(db, engram, current)) for engram in record.pinned(db, user_id)]
    return told(_health_lines(current), pins, [_line(fact) for fact in current])


def told(health: Iterable[str], pins: Sequence[tuple[str, Sequence[str]]], others: Iterable[str]) -> ToldLines:
    """The lines that have room. Pinned engrams are given with their lines in the order in which they were pinned; the
    latest have their place first, each with all of its lines or none."""
    first = _fitting((), health)
    kept: tuple[str, ...] = ()
    left_out: list[str] = []
    for engram_id, lines in reversed(pins):
        together = tuple(dict.fromkeys((*lines, *kept)))
        if fits(tuple(dict.fromkeys((*first, *together)))):
            kept = together
        else:
            left_out.append(engram_id)
    lines = _fitting(tuple(dict.fromkeys((*first, *kept))), others)
    return ToldLines(lines, kept, tuple(reversed(left_out)))


def _fitting(kept: tuple[str, ...], lines: Iterable[str]) -> tuple[str, ...]:
    """What is kept, and of the lines those that there is room for beside it and the ones before, each once."""
    for line in lines:
        if line not in kept and fits((*kept, line)):
            kept = (*kept, line)
    return kept


def _health_lines(current: Iterable[StatedFact]) -> list[str]:
    return [_line(fact) for fact in current if is_of_health(fact.slot, fact.value)]


def is_of_health(slot: str, value: str) -> bool:
    """Whether a fact is about health or safety: an allergy, an illness, a medicine, a diet, an emergency."""
    return _HEALTH.search(f"{slot}: {value}") is not None


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
