"""The facts a user stated, as they are stored and as a model finds them in an exchange."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from local.services.engrams.engram import StatedFact, slot_key


@dataclass(frozen=True, slots=True)
class Outdated:
    """A fact that an engram states and that holds no more; `values` are what the user said instead and what
    still holds, none if that is gone, too, or the fact was only taken back. `engram_ids` are the engrams of it."""

    slot: str
    value: str
    superseded_at: float
    values: tuple[str, ...]
    engram_ids: tuple[str, ...]


def of_engram(db: sqlite3.Connection, engram_id: str) -> list[StatedFact]:
    """What the user stated in one exchange, whether it holds or not."""
    return _facts(db, "engram_id = ? ORDER BY fact_id", (engram_id,))


def current(db: sqlite3.Connection, user_id: str) -> list[StatedFact]:
    """What holds for a user, by slot; see `StatedFact` for several of one slot."""
    where = "facts.user_id = ? AND superseded_at IS NULL AND confirmed ORDER BY slot_key, stated_at"
    return _facts(db, where, (user_id,))


def history(db: sqlite3.Connection, user_id: str) -> list[StatedFact]:
    """Everything a user stated, whether it holds or not, by slot, oldest first; also what is not confirmed."""
    return _facts(db, "facts.user_id = ? ORDER BY slot_key, stated_at, fact_id", (user_id,))


def outdated(db: sqlite3.Connection, engram_id: str) -> tuple[Outdated, ...]:
    """The facts of an engram that hold no more."""
    facts = _facts(db, "engram_id = ? AND superseded_at IS NOT NULL ORDER BY fact_id", (engram_id,))
    return tuple(_outdated(fact, current_of_slot(db, fact.user_id, fact.slot)) for fact in facts)


def _outdated(fact: StatedFact, current: Sequence[StatedFact]) -> Outdated:
    values, engrams = tuple(now.value for now in current), (fact.engram_id, *(now.engram_id for now in current))
    return Outdated(fact.slot, fact.value, fact.superseded_at or 0.0, values, tuple(dict.fromkeys(engrams)))


def current_of_slot(db: sqlite3.Connection, user_id: str, slot: str) -> list[StatedFact]:
    """What holds of one slot, the latest first."""
    where = "facts.user_id = ? AND slot_key = ? AND superseded_at IS NULL AND confirmed ORDER BY stated_at DESC"
    return _facts(db, where, (user_id, slot_key(slot)))


def of_slot(db: sqlite3.Connection, user_id: str, slot: str) -> list[StatedFact]:
    """All that a user stated about a slot and that is confirmed, whether it holds or not, oldest first."""
    return _facts(db, "facts.user_id = ? AND slot_key = ? AND confirmed ORDER BY stated_at", (user_id, slot_key(slot)))


def _facts(db: sqlite3.Connection, where: str, key: Sequence[object]) -> list[StatedFact]:
    return [stored_fact(row) for row in db.execute(f"{SELECT} WHERE {where}", tuple(key)).fetchall()]


SELECT = "SELECT facts.*, engram_id FROM facts JOIN engrams USING (number)"


def stored_fact(row: sqlite3.Row) -> StatedFact:
    """A fact from a row of `SELECT`."""
    return StatedFact(
        row["fact_id"], row["user_id"], row["engram_id"], row["slot"], row["value"], row["stated_at"],
        row["superseded_by"], row["superseded_at"], bool(row["certain"]), bool(row["added"]),
        bool(row["confirmed"]),
    )  # fmt: skip


class Way(StrEnum):
    """What a fact does to the others of its slot."""

    SUPERSEDE = "supersede"
    ADD = "add"  # all of them hold
    CONTRADICT = "contradict"  # nobody knows which holds
    RETRACT = "retract"  # they hold no more, and nothing takes their place
    EXTEND = "extend"  # it says more of one that the same exchange states


@dataclass(frozen=True, slots=True)
class FactFinding:
    """One fact that a user stated, or took back: then the value, if there is one, says which of the slot's. One that is
    not `confirmed` was found by a model that has failed its self-test: it is stored, and changes no other. `extends` is
    the value that it says more of."""

    way: Way
    slot: str
    value: str
    certain: bool = True
    confirmed: bool = True
    extends: str = ""


@dataclass(frozen=True, slots=True)
class Classified:
    """What is to be noted of an exchange. `is_parsed` is False where the model's reply could not be read."""

    is_parsed: bool
    intent: str | None = None
    entities: tuple[str, ...] = ()
    findings: tuple[FactFinding, ...] = ()
