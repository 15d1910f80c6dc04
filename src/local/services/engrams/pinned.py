"""What users have pinned, as lines for a prompt: in their own words, and only what holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from local.services.engrams import facts, record
from local.services.engrams.engram import Fact
from local.services.engrams.own_words import own_words

MAX_LINES = 30
MAX_CHARACTERS = 2_000
_MAX_QUERY = 300


def lines(db: sqlite3.Connection, user_id: str) -> tuple[str, ...]:
    """What is current of each fact that a pinned exchange stated, else what the user asked there; never an answer."""
    current: dict[str, list[Fact]] = {}
    for fact in facts.current(db, user_id):
        current.setdefault(fact.slot, []).append(fact)
    found: list[str] = []
    for engram in record.pinned(db, user_id):
        stated = facts.of_engram(db, engram.engram_id)
        told = {fact.slot: current.get(fact.slot, []) for fact in stated}
        found += [_line(fact) for slot in told.values() for fact in slot]
        if not stated and (query := " ".join(own_words(engram.query).split())):
            found.append(query[:_MAX_QUERY])
    return fitting(dict.fromkeys(found))


def fitting(found: Iterable[str]) -> tuple[str, ...]:
    """As many of the last lines as there is room for, in their order."""
    return tuple(reversed(list(_fitting(reversed(list(found))))))


def _fitting(latest_first: Iterable[str]) -> Iterator[str]:
    room = MAX_CHARACTERS
    for number, line in enumerate(latest_first):
        room -= len(line)
        if room < 0 or number == MAX_LINES:
            return
        yield line


def _line(fact: Fact) -> str:
    said = datetime.fromtimestamp(fact.stated_at, UTC).date().isoformat()
    return f"{fact.slot}: {fact.value} (said {said})"
