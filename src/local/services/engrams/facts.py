"""The facts a user stated: slots, their values, what superseded what, and what a model made of each exchange."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from local.errors import NotOnRecord, UntrustedFact
from local.services.engrams.engram import Engram, Origin, StatedFact, Statement, slot_key
from local.services.engrams.masking import masked
from local.services.engrams.store import stored_engram


@dataclass(frozen=True, slots=True)
class Outdated:
    """A fact that an engram states and that holds no more; `values` are what the user said instead and what
    still holds, none if that is gone, too, or the fact was only taken back. `engram_ids` are the engrams of it."""

    slot: str
    value: str
    superseded_at: float
    values: tuple[str, ...]
    engram_ids: tuple[str, ...]


def supersede(db: sqlite3.Connection, statement: Statement) -> StatedFact:
    """Store a fact in place of the current ones of its slot, or behind them if they were stated later.

    Storing it twice is storing it once. Raises `NotOnRecord`, `UntrustedFact`.
    """
    fact, current = _store(db, statement)
    if fact is None:
        return current[0]
    later = [other for other in current if other.stated_at > fact.stated_at]
    if later:
        _mark(db, fact, later[0])
    for other in current:
        if not later:
            _mark(db, other, fact)
    return _fact(db, fact.fact_id)


def contradict(db: sqlite3.Connection, statement: Statement) -> StatedFact:
    """Store a fact beside the current ones of its slot: nobody knows which holds. Raises as `supersede` does."""
    fact, current = _store(db, statement)
    return fact or current[0]


def retract(db: sqlite3.Connection, user_id: str, slot: str, retracted_at: float) -> int:
    """What a user said about a slot until then holds no more, nothing takes its place; returns how much that was."""
    sql = (
        "UPDATE facts SET superseded_at = ?"
        " WHERE user_id = ? AND slot_key = ? AND superseded_at IS NULL AND stated_at <= ?"
    )
    return db.execute(sql, (retracted_at, user_id, slot_key(slot), retracted_at)).rowcount


def of_engram(db: sqlite3.Connection, engram_id: str) -> list[StatedFact]:
    """What the user stated in one exchange, whether it holds or not."""
    return _facts(db, "engram_id = ? ORDER BY fact_id", (engram_id,))


def current(db: sqlite3.Connection, user_id: str) -> list[StatedFact]:
    """What holds for a user, by slot; several facts of one slot contradict each other."""
    where = "facts.user_id = ? AND superseded_at IS NULL ORDER BY slot_key, stated_at"
    return _facts(db, where, (user_id,))


def history(db: sqlite3.Connection, user_id: str) -> list[StatedFact]:
    """Everything a user stated, whether it holds or not, by slot, oldest first."""
    return _facts(db, "facts.user_id = ? ORDER BY slot_key, stated_at, fact_id", (user_id,))


def outdated(db: sqlite3.Connection, engram_id: str) -> tuple[Outdated, ...]:
    """The facts of an engram that hold no more."""
    facts = _facts(db, "engram_id = ? AND superseded_at IS NOT NULL ORDER BY fact_id", (engram_id,))
    return tuple(_outdated(fact, _current_of(db, fact)) for fact in facts)


def _outdated(fact: StatedFact, current: Sequence[StatedFact]) -> Outdated:
    values, engrams = tuple(now.value for now in current), (fact.engram_id, *(now.engram_id for now in current))
    return Outdated(fact.slot, fact.value, fact.superseded_at or 0.0, values, tuple(dict.fromkeys(engrams)))


def _store(db: sqlite3.Connection, statement: Statement) -> tuple[StatedFact | None, list[StatedFact]]:
    """The new fact and the others of its slot that hold; None and the stored fact if it is known."""
    if statement.origin is not Origin.USER:
        raise UntrustedFact(statement.slot, statement.origin)
    engram = db.execute("SELECT number, user_id FROM engrams WHERE engram_id = ?", (statement.engram_id,)).fetchone()
    if engram is None:
        raise NotOnRecord(f"there is no engram {statement.engram_id}; it may have been deleted")
    user_id, key, value = engram["user_id"], slot_key(statement.slot), masked(statement.value.strip())
    if known := _facts(db, "facts.number = ? AND slot_key = ? AND value = ?", (engram["number"], key, value)):
        return None, known
    (fact_id,) = db.execute(
        "INSERT INTO facts (user_id, number, slot, slot_key, value, stated_at)"
        " VALUES (?, ?, ?, ?, ?, ?) RETURNING fact_id",
        (user_id, engram["number"], _spelt(db, user_id, statement.slot), key, value, statement.stated_at),
    ).fetchone()
    fact = _fact(db, fact_id)
    return fact, [other for other in _current_of(db, fact) if other.fact_id != fact_id]


def _mark(db: sqlite3.Connection, old: StatedFact, new: StatedFact) -> None:
    """Note that a fact is superseded, and its engram, too, once none of its facts holds any more."""
    sql = "UPDATE facts SET superseded_by = ?, superseded_at = ? WHERE fact_id = ?"
    db.execute(sql, (new.fact_id, new.stated_at, old.fact_id))
    if old.engram_id == new.engram_id or old.value.casefold() == new.value.casefold():
        return  # said again: what the old engram says holds
    db.execute(
        "UPDATE engrams SET superseded_by = ? WHERE engram_id = ? AND NOT EXISTS"
        " (SELECT 1 FROM facts WHERE facts.number = engrams.number AND superseded_at IS NULL)",
        (new.engram_id, old.engram_id),
    )


def _current_of(db: sqlite3.Connection, fact: StatedFact) -> list[StatedFact]:
    where = "facts.user_id = ? AND slot_key = ? AND superseded_at IS NULL ORDER BY stated_at DESC"
    return _facts(db, where, (fact.user_id, slot_key(fact.slot)))


def _fact(db: sqlite3.Connection, fact_id: int) -> StatedFact:
    return _facts(db, "fact_id = ?", (fact_id,))[0]


def _facts(db: sqlite3.Connection, where: str, key: Sequence[object]) -> list[StatedFact]:
    sql = f"SELECT facts.*, engram_id FROM facts JOIN engrams USING (number) WHERE {where}"
    return [
        StatedFact(row["fact_id"], row["user_id"], row["engram_id"], row["slot"], row["value"], row["stated_at"],
             row["superseded_by"], row["superseded_at"])
        for row in db.execute(sql, tuple(key)).fetchall()
    ]  # fmt: skip


def _spelt(db: sqlite3.Connection, user_id: str, slot: str) -> str:
    """A slot as it was first written."""
    sql = "SELECT slot FROM facts WHERE user_id = ? AND slot_key = ? ORDER BY fact_id LIMIT 1"
    known = db.execute(sql, (user_id, slot_key(slot))).fetchone()
    return str(known["slot"]) if known else " ".join(slot.split())


PENDING, CLASSIFIED, UNPARSED = 0, 1, 2  # the column `classified`


class Way(StrEnum):
    """What a fact does to the others of its slot."""

    SUPERSEDE = "supersede"
    CONTRADICT = "contradict"  # nobody knows which holds
    RETRACT = "retract"  # they hold no more, and nothing takes their place


@dataclass(frozen=True, slots=True)
class FactFinding:
    """One fact that a user stated, or took back: then the value says nothing."""

    way: Way
    slot: str
    value: str


@dataclass(frozen=True, slots=True)
class Classified:
    """What is to be noted of an exchange. `is_parsed` is False where the model's reply could not be read."""

    is_parsed: bool
    intent: str | None = None
    entities: tuple[str, ...] = ()
    findings: tuple[FactFinding, ...] = ()


def oldest_pending(db: sqlite3.Connection, limit: int) -> list[Engram]:
    """The oldest exchanges with the users' respondent that no model has looked at."""
    sql = "SELECT * FROM engrams WHERE classified = 0 AND searchable ORDER BY number LIMIT ?"
    return [stored_engram(row) for row in db.execute(sql, (limit,)).fetchall()]


def note(db: sqlite3.Connection, engram_id: str, classified: Classified) -> list[StatedFact]:
    """Note what a model made of an exchange; returns the facts stated in it. Raises `NotOnRecord`.

    What was noted before stays as it is.
    """
    row = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (engram_id,)).fetchone()
    if row is None:
        raise NotOnRecord(f"there is no engram {engram_id}; it may have been deleted")
    if row["classified"] == PENDING:
        db.execute(
            "UPDATE engrams SET classified = ?, intent = ?, entities = ? WHERE engram_id = ?",
            (CLASSIFIED if classified.is_parsed else UNPARSED, classified.intent,
             json.dumps(classified.entities, ensure_ascii=False), engram_id),
        )  # fmt: skip
        engram = stored_engram(row)
        for finding in classified.findings:
            _apply(db, engram, finding)
    return of_engram(db, engram_id)


def _apply(db: sqlite3.Connection, engram: Engram, finding: FactFinding) -> None:
    stated = Statement(engram.engram_id, finding.slot, finding.value, engram.asked_at, Origin.USER)
    match finding.way:
        case Way.SUPERSEDE:
            supersede(db, stated)
        case Way.CONTRADICT:
            contradict(db, stated)
        case Way.RETRACT:
            retract(db, engram.user_id, finding.slot, engram.asked_at)
